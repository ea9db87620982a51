"""What is done about one kind of failure, an entry of the failure matrix, and what a rule changes of it: the shapes.

The matrix itself is in matrix.py, the choice of an entry's next strategy in strategies/ladder.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.core.failures.retry import RetryChange, RetryPolicy

ASK, FAIL = "ask", "fail"
"""Words of documents and deployments for what comes after retries and alternatives: people are asked, or the step fails."""

ANY = "any"
"""Where a rule names a code or a class: it holds for any failure."""

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

DOMAINS: Mapping[str, str] = {
    "model_call": "a call of a language model",
    "browser_action": "something done in a browser",
    "file_operation": "reading and writing files",
    "external_api": "a call of a third party's service",
    "database": "reading and writing a database",
}
"""What a tool can be about; one that does not say has the defaults of no domain."""

SEVERITIES = ("low", "medium", "high", "critical")


class PolicyEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is done about one kind of failure.

    `kind` is its class. `ladder` are the strategies in their order, `policy` is that of `retry`, `at_most` says how
    often the others are used, 0 for never; one that it does not name has its own number. `hints` are tried one
    after the other. `before_retry` are hooks. `message` is told to a person in place of the code's own sentence.
    `may_change` are the arguments that an answer may change. `escalate`: what happens to the question while there is no
    answer, as a document has it, with `after_ms` from the asking on.
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
    escalate: tuple[dict[str, Any], ...] = ()


class Change(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule changes of an entry: what is not None. A class without a ladder brings the ladder of that class.

    `last`, a word of `LAST` (matrix.py), replaces the part of the ladder that asks people or undoes something.
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
    escalate: tuple[dict[str, Any], ...] | None = None


Rules = Mapping[str, Change]
"""Changes by code, by class, or for `any` failure."""


def merge_changes(first: Change, second: Change) -> Change:
    """One change that says what both say, the second where they differ."""
    said: dict[str, Any] = {
        name: value for name in Change.__struct_fields__ if (value := getattr(second, name)) is not None
    }
    return msgspec.structs.replace(first, **said)
