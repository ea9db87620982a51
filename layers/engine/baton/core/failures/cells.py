"""A cell of the failure matrix: what is done about one kind of failure, and how a cell is changed by a rule.

The matrix itself is in matrix.py, the choice of a cell's next strategy in ladder.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.core.failures.retry import RetryChange, RetryPolicy, changed

RETRY, REPLAN, ASK_USER, ROLLBACK, ESCALATE = "retry", "replan", "ask_user", "rollback", "escalate"
FAIL = "fail"
ASK = "ask"

STRATEGIES: Mapping[str, str] = {
    RETRY: "Try the same again after a pause.",
    REPLAN: "Try it another way: carry out one of the hints.",
    ASK_USER: "Ask a person, and wait for the answer.",
    ROLLBACK: "Undo what was done, and end.",
    ESCALATE: "Open an incident, tell the person on call, and wait for a decision.",
}
"""The rungs of the ladder in their order, each with what it does. After the last the step fails."""

LAST: Mapping[str, tuple[str, ...]] = {
    ASK: (ASK_USER, ROLLBACK, ESCALATE),
    ESCALATE: (ESCALATE, ROLLBACK),
    FAIL: (),
}
"""What comes after the retries and the other ways of a failure, by the word that says so. A document's `escalate` is the
strategy itself; a deployment has all three."""

HINTS: Mapping[str, str] = {
    "refresh_credentials": "Renew the credentials.",
    "find_alternative_resource": "Look for another resource that serves as well.",
    "fallback_model": "Use the next model of the list.",
    "truncate_context": "Leave out the oldest part of the context.",
    "summarise_context": "Replace the context by a summary.",
    "chunk_context": "Do it in parts that fit.",
    "rephrase_request": "Say the request in other words.",
    "alternative_source": "Use another source, such as an official interface.",
    "alternative_path": "Look for the file elsewhere.",
    "alternative_provider": "Use another provider of the same.",
    "request_permissions": "Ask for the permission.",
}
"""What a replan can do, each with what it means."""

HOOKS: Mapping[str, str] = {
    "refresh_page": "Load the page anew.",
    "clear_cache": "Forget cached answers.",
    "optimize_query": "Run the query with less work or more time.",
    "refresh_and_retry": "Read the present state first.",
}
"""What can be done before a retry, each with what it means."""

QUESTIONS: Mapping[str, str] = {
    "error_resolution": "what is to be done about the failure",
    "browser_takeover": "to take over the browser and hand it back",
    "decision": "to choose one of several ways",
    "input": "for data",
    "approval": "to approve or reject",
}
"""The kinds of question that a failure can ask a person."""

SEVERITIES = ("low", "medium", "high", "critical")


class Cell(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is done about one kind of failure.

    `kind` is its class. `ladder` are the strategies in their order, `policy` is that of `retry`, `at_most` says how
    often the others are used, 0 for never; one that it does not name has the number of `Bounds`. `hints` are tried one
    after the other. `before_retry` are hooks. `message` is told to a person in place of the code's own sentence.
    `may_change` are the arguments that an answer may change.
    """

    kind: str
    ladder: tuple[str, ...]
    policy: RetryPolicy = RetryPolicy()
    at_most: dict[str, int] = {}
    hints: tuple[str, ...] = ()
    before_retry: tuple[str, ...] = ()
    message: str = ""
    question: str = "error_resolution"
    severity: str = "medium"
    may_change: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule changes of a cell: what is not None. A class without a ladder brings the ladder of that class.

    `last`, a word of `LAST`, leaves `retry` and `replan` as they are, and replaces the rest of the ladder.
    """

    kind: str | None = None
    ladder: tuple[str, ...] | None = None
    last: str | None = None
    retry: RetryChange | None = None
    at_most: dict[str, int] | None = None
    hints: tuple[str, ...] | None = None
    before_retry: tuple[str, ...] | None = None
    message: str | None = None
    question: str | None = None
    severity: str | None = None
    may_change: tuple[str, ...] | None = None


def merge(cell: Cell, change: Change) -> Cell:
    """The cell as the change leaves it. `at_most` is added to what is there; everything else replaces it."""
    said: dict[str, Any] = {
        name: value for name in Cell.__struct_fields__ if (value := getattr(change, name, None)) is not None
    }
    if change.last is not None:
        said["ladder"] = (*unasked(said.get("ladder", cell.ladder)), *LAST[change.last])
    if change.retry is not None:
        said["policy"] = changed(cell.policy, change.retry)
    if change.at_most is not None:
        said["at_most"] = cell.at_most | change.at_most
    return msgspec.structs.replace(cell, **said)


def unasked(ladder: tuple[str, ...]) -> tuple[str, ...]:
    """The strategies of a ladder that ask no person and undo nothing."""
    return tuple(strategy for strategy in ladder if strategy in {RETRY, REPLAN})


def merge_changes(first: Change, second: Change) -> Change:
    """One change that says what both say, the second where they differ."""
    said: dict[str, Any] = {
        name: value for name in Change.__struct_fields__ if (value := getattr(second, name)) is not None
    }
    return msgspec.structs.replace(first, **said)
