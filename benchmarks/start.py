"""Import time of each handler in a new process, with `.pyc` files, and what dominates it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from benchmarks.figures import Bench, Figure, Sample

ROOT = Path(__file__).parents[1]
FUNCTIONS = ("worker", "api", "relay", "reconciler")
LIBRARIES = (
    "boto3",
    "botocore",
    "pydantic",
    "msgspec",
    "aws_lambda_powertools",
    "httpx",
    "jsonschema_rs",
    "yaml",
    "asyncio",
)
ENVIRONMENT = {
    "BATON_TABLE": "t",
    "BATON_BUCKET": "b",
    "BATON_QUEUE_URL": "http://127.0.0.1/q",
    "BATON_DEAD_LETTER_URL": "http://127.0.0.1/d",
    "BATON_WORKER": "w",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_EC2_METADATA_DISABLED": "true",
    "TABLE_STACK_URL": "http://127.0.0.1:1",
    "OPEN_DELIVERY_URL": "http://127.0.0.1:1",
}
_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)([\w.]+)")


def _times(function: str) -> dict[str, float]:
    """Milliseconds by module: its own and all that it imports, as `-X importtime` reports."""
    code = f"import sys; sys.path[:0] = ['layers/engine', 'layers/app', 'functions/{function}']; import app"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code],
        cwd=ROOT,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = (_LINE.match(line) for line in done.stderr.splitlines())
    return {match[4]: int(match[2]) / 1_000 for match in found if match}


def measure() -> Sample:
    sample: dict[str, float] = {}
    for function in FUNCTIONS:
        times = _times(function)
        sample[function] = times["app"]
        if function == "worker":
            sample |= {f"worker {library}": times.get(library, 0.0) for library in LIBRARIES}
    return sample


BENCH = Bench(
    "start",
    "import time of the handlers (python -X importtime, which itself costs about a fifth)",
    {
        **{name: Figure(name, "ms", 350 if name == "worker" else None, digits=0) for name in FUNCTIONS},
        **{f"worker {name}": Figure(f"  of the worker: {name}", "ms", digits=0) for name in LIBRARIES},
    },
    measure,
)
