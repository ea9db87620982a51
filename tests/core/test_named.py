"""Which values a log names by their hash: blobs in events and in the state, and what a summary stands for."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.graph.graph import hash_of
from baton.core.log import events as ev
from baton.core.log.codec import SCHEME, value_of
from baton.core.log.state import Origin, State

BLOB = ev.Value(ref=SCHEME + "a" * 64, size=9_000)
TOKEN = ev.Token("a", "b", ())


def succeeded(**more: Any) -> ev.StepSucceeded:
    given: dict[str, Any] = {
        "tool": "t",
        "tool_version": "",
        "schema_hash": "",
        "started_at": 1,
        "ended_at": 2,
    }
    default: dict[str, Any] = {"node": "a", "emits": (TOKEN,), "attempt": 1, "output": ev.Value(v=1)}
    return ev.StepSucceeded(**default | given | more)


@pytest.mark.parametrize(
    "part",
    [
        succeeded(output=BLOB),
        succeeded(full=BLOB),
        State(outputs={"a": ev.Value(v=1), "b": BLOB}),
        State(open={}, origin=Origin(input=BLOB)),
    ],
)
def test_a_blob_is_named_by_the_value_that_refers_to_it(part: Any) -> None:
    assert value_of(part, BLOB.ref) == BLOB
    assert value_of(part, SCHEME + "b" * 64) is None


def test_text_that_looks_like_a_reference_names_nothing() -> None:
    told = {"ref": BLOB.ref, "size": 9_000, "deep": [BLOB.ref]}
    assert value_of(succeeded(output=ev.Value(v=told)), BLOB.ref) is None
    assert value_of(State(origin=Origin(input=ev.Value(v=told))), BLOB.ref) is None


def test_what_a_summary_stands_for_is_named_by_its_hash_where_the_entry_still_holds_it() -> None:
    full = ev.Value(v={"text": "long"})
    ref = SCHEME + hash_of(b'{"text":"long"}')
    assert value_of(succeeded(full=full), ref) == full
    assert value_of(succeeded(full=full), BLOB.ref) is None
    assert value_of(succeeded(output=full), ref) is None
