"""Old logs still fold. The logs in tests/history were stored by earlier versions and are never rewritten.

A log that does not fold any more, or to another state, would be a user's running saga that is lost or
changed by a deployment. `python -m tests.history.make` adds logs of new shapes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baton.core.log.codec import TAGS, decode_entry, encode_entry
from baton.core.log.snapshots import decode_state, encode_state
from tests.core.build import replay
from tests.history.make import HERE, SHAPES, make, read_log, state_as_text

LOGS = sorted(HERE.glob("*.jsonl"))
each_log = pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)


@each_log
def test_a_stored_log_folds_to_the_state_it_always_had(log: Path) -> None:
    expected = (HERE / f"{log.stem}.state.json").read_text(encoding="utf-8")
    assert state_as_text(replay(read_log(log.stem))) == expected


@each_log
def test_nothing_that_was_stored_is_passed_over(log: Path) -> None:
    """A renamed optional field would decode without a word, as if it had never been written."""
    for line in log.read_bytes().splitlines():
        assert json.loads(encode_entry(decode_entry(line))) == json.loads(line)


@each_log
def test_the_state_of_a_stored_log_survives_a_snapshot(log: Path) -> None:
    state = replay(read_log(log.stem))
    assert decode_state(encode_state(state)) == state


def test_every_kind_of_event_is_in_some_stored_log() -> None:
    stored = b"".join(log.read_bytes() for log in LOGS).decode()
    assert {kind for kind in TAGS if f'"kind":"{kind}"' in stored} == TAGS


def test_every_shape_has_its_log_and_every_log_its_shape() -> None:
    assert {log.stem for log in LOGS} == set(SHAPES)


def test_making_them_again_writes_nothing() -> None:
    before = {file.name: file.read_bytes() for file in HERE.iterdir() if file.is_file()}
    assert make(list(SHAPES), states=False) == []
    assert {file.name: file.read_bytes() for file in HERE.iterdir() if file.is_file()} == before
