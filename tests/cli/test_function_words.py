"""Sentences of `baton events` about a function: its operations by their labels, and no word of an item."""

from __future__ import annotations

from typing import Any

from baton.cli.text.render import EventLines
from baton.core.log import events as ev
from baton.core.log.functions import AskedOperation
from baton.core.read.views import entry_view
from tests.kit.sentences import Says

T0 = 1_795_458_562_846
SEND = "notify-3--send"
RAN: dict[str, Any] = {
    "node": "f", "item": SEND, "attempt": 1, "started_at": T0, "ended_at": T0, "tool": "mail.send", "tool_version": "1", "schema_hash": "",
}  # fmt: skip
ASKED = ev.OperationsBegan(
    node="f",
    at=T0,
    operations=(
        AskedOperation(item="charge", digest="d", tool="pay.charge"),
        AskedOperation(item=SEND, digest="d", label="notify[3]/send", tool="mail.send"),
        AskedOperation(item="sleep", digest="d", node={"kind": "wait", "wait_ms": 1}),
    ),
)


def said(*events: ev.Event) -> list[str]:
    entry = ev.Entry(version=2, branch=0, at=T0, epoch=1, invocation="i", events=events)
    lines = [" ".join(str(line)[21:].split()) for line in EventLines().of(entry_view(entry))][1:]
    return [line.partition(" f ")[2] for line in lines]


def test_its_operations_are_named_by_their_labels(says: Says) -> None:
    failure = ev.Failure("no_address", "none known", "f")
    lines = said(
        ev.FunctionBegan(node="f", given=ev.Value(v={"a": 1}), at=T0),
        ASKED,
        ev.StepSucceeded(**RAN, output=ev.Value(v=5)),
        ev.StepFailed(**RAN, failure=failure, is_result=True),
        ev.WaitOpened(node="f", item="sleep", until=0),
        ev.OperationsBegan(node="f", at=T0, heard=(SEND,), left=("sleep",)),
        ev.OperationsBegan(node="f", at=T0, heard=("charge",)),
        ev.FunctionClosed(node="f", output=ev.Value(v=1), heard=("charge",)),
    )
    assert lines[2].startswith("notify[3]/send: 5")
    assert lines[4] == "sleep"
    says(lines)


def test_an_operation_is_named_by_its_label_when_it_is_undone() -> None:
    _, began, done = said(
        ASKED,
        ev.UndoStepBegan(node="f", item=f"undo-{SEND}", version=3, index=0, tool="mail.recall", at=T0),
        ev.StepSucceeded(**{**RAN, "item": f"undo-{SEND}", "tool": "mail.recall"}, output=ev.Value()),
    )
    assert [line.count("notify[3]/send") for line in (began, done)] == [1, 1]


def test_an_operation_that_began_before_what_is_shown_has_the_name_of_the_log() -> None:
    assert said(ev.StepSucceeded(**RAN, output=ev.Value(v=5)))[0].startswith(SEND)
