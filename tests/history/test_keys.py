"""Effect keys of stored logs: a key that a new version makes in another way would repeat an effect that an old one has done.

keys.json has, by log, each step that was run with its key. It grows with the logs, by `python -m tests.history.test_keys`, and what is
in it never changes. Some logs can only be read: this version writes them in another way, and they are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from baton.core.decide.decision import RunSteps
from baton.runtime.steps.steps import key_for
from tests.core.build import Saga
from tests.history.make import SHAPES

GOLDEN = Path(__file__).with_name("keys.json")


def keys_of(shape: Callable[[], Saga]) -> dict[str, str]:
    """Return the key of each step that is run while a log is made, by slot, tool and attempt."""
    keys: dict[str, str] = {}
    go = Saga.go

    def noted(saga: Saga, *outcomes: Any, **more: Any) -> Any:
        decision = go(saga, *outcomes, **more)
        run = decision.of(RunSteps)
        for step in () if run is None else run.steps:
            keys[f"{step.slot} {step.node.tool} {step.attempt}"] = key_for(
                saga.state, step, None, step.node.tool
            )
        return decision

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Saga, "go", noted)
        shape()
    return keys


def golden() -> dict[str, dict[str, str]]:
    known: dict[str, dict[str, str]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return known


@pytest.mark.parametrize("name", golden())
def test_a_step_has_the_key_that_it_always_had(name: str) -> None:
    assert keys_of(SHAPES[name]) == golden()[name]


if __name__ == "__main__":
    keys = golden()
    for name in SHAPES.keys() - keys.keys():
        with suppress(AssertionError, LookupError, ValueError):
            keys[name] = keys_of(SHAPES[name])
    GOLDEN.write_text(json.dumps(keys, indent=1, sort_keys=True) + "\n", encoding="utf-8")
