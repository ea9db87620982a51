"""The environment of a function's process: the template's variables, Lambda's own, and the way to the local AWS.

Nothing of the surrounding shell reaches a function except PATH.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from baton.local.aws.ministack import CREDENTIALS, REGION
from baton.local.functions.model_keys import meant_for
from baton.local.template.declared import Function

BUILD = "BATON_BUILD"


def build_of(layers: Iterable[Path]) -> str:
    """The time of the last change to a file of the layers. It names their code, as versions do on AWS."""
    return str(max((_changed(layer) for layer in layers), default=0) // 1_000_000)


def _changed(folder: Path) -> int:
    newest = 0
    with os.scandir(folder) as found:
        for one in found:
            if one.is_dir(follow_symlinks=False):
                newest = max(newest, 0 if one.name == "__pycache__" else _changed(Path(one.path)))
            else:
                newest = max(newest, one.stat(follow_symlinks=False).st_mtime_ns)
    return newest


def aws_environment(endpoint: str, lambda_endpoint: str, key: str) -> dict[str, str]:
    """Variables by which any boto3 client talks to this local run. key: its access key id, without which no function is invoked."""
    return {
        **CREDENTIALS,
        "AWS_ACCESS_KEY_ID": key,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ENDPOINT_URL_LAMBDA": lambda_endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }


def of_process(function: Function, aws: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """For one process (the log stream's name is its own). `extra` wins over the template."""
    now = datetime.now(UTC)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        # On Lambda a later layer overwrites the files of an earlier one; here the first one found wins.
        "PYTHONPATH": os.pathsep.join(map(str, reversed(function.layers))),
        **aws,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{now:%Y/%m/%d}/[$LATEST]{uuid.uuid4().hex}",
        "LAMBDA_TASK_ROOT": str(function.code),
        "_HANDLER": function.handler,
        **function.environment,
        **({BUILD: build_of(function.deployed)} if BUILD in function.environment else {}),
        **meant_for(function.environment, extra),
    }
