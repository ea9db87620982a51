"""What the tests of pipelines share: a run in one call, and the failure of one. No assertions of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from baton.core.pipelines import pipeline
from baton.core.pipelines.base import PipelineFailed

MOST = 5_242_880


def run(rows: Any, *steps: Mapping[str, Any], **others: Any) -> Any:
    """What the steps make of one input, `t`, and of others."""
    return result(rows, *steps, **others).value


def result(rows: Any, *steps: Mapping[str, Any], **others: Any) -> pipeline.PipelineResult:
    data = {"t": rows} | others
    return pipeline.run_pipeline(
        pipeline.read_pipeline([{"input": "t"} | dict(steps[0]), *steps[1:]], data), data, most_bytes=MOST
    )


def broken(rows: Any, *steps: Mapping[str, Any], **others: Any) -> tuple[str, str]:
    """The code and the message of a pipeline that does not get to its end."""
    with pytest.raises(PipelineFailed) as caught:
        run(rows, *steps, **others)
    return caught.value.code, str(caught.value)


def problems(*steps: Any, names: Mapping[str, Any] | None = None, requests: bool = False) -> list[str]:
    """What is wrong with a pipeline as it is written: `path: message (what would be right)`."""
    with pytest.raises(PipelineFailed) as caught:
        pipeline.read_pipeline([*steps], {"t": []} if names is None else names, requests=requests)
    assert caught.value.code == "pipeline_invalid"
    return str(caught.value).splitlines()
