"""The policy for a kind of failure: an entry of the failure matrix, and retry policies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

FIXED, LINEAR, FIBONACCI, CUSTOM = "fixed", "linear", "fibonacci", "custom"
EXPONENTIAL, JITTERED = "exponential", "exponential_jitter"
BACKOFFS: Mapping[str, str] = {
    FIXED: "always `base`",
    EXPONENTIAL: "`base`, then each time `multiplier` times as long",
    JITTERED: "as `exponential`, shorter or longer by chance, by up to the share `jitter` of it",
    LINEAR: "`base`, twice `base`, three times `base`, …",
    FIBONACCI: "`base` times 1, 1, 2, 3, 5, 8, …",
    CUSTOM: "the pauses that `schedule` lists, then `max_delay`",
}
"""The kinds of back-off, each with its pauses."""

# A service may ask for a longer pause than a policy would make, but not for any.
LONGEST_RETRY_AFTER_MS = 86_400_000
MOST_ATTEMPTS = 100


class RetryPolicy(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Retries of a step. Times in milliseconds.

    `max_attempts` counts the first attempt, too. `budget_ms` is the time from the end of the first attempt to
    the beginning of the last, 0 for no limit. `never` are codes and classes that are not retried; `on`, if
    not empty, are the only ones that are. Without either, the failure matrix decides.
    """

    max_attempts: int = 5
    backoff: str = EXPONENTIAL
    base_ms: int = 1_000
    multiplier: float = 2.0
    max_delay_ms: int = 30_000
    jitter: float = 0.5
    schedule: tuple[int, ...] = ()
    budget_ms: int = 0
    on: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


PRESETS: Mapping[str, RetryPolicy] = {
    "critical": RetryPolicy(
        max_attempts=10, backoff=JITTERED, base_ms=100, max_delay_ms=30_000, jitter=0.3, budget_ms=300_000
    ),
    "standard": RetryPolicy(
        max_attempts=5, backoff=EXPONENTIAL, base_ms=1_000, max_delay_ms=30_000, budget_ms=120_000
    ),
    "quick": RetryPolicy(max_attempts=3, backoff=FIXED, base_ms=500, max_delay_ms=500, budget_ms=30_000),
    "rate_limited": RetryPolicy(
        max_attempts=10, backoff=JITTERED, base_ms=5_000, max_delay_ms=120_000, jitter=0.5, budget_ms=900_000
    ),
    "immediate": RetryPolicy(max_attempts=3, backoff=FIXED, base_ms=0, max_delay_ms=0, budget_ms=10_000),
    "none": RetryPolicy(max_attempts=1, backoff=FIXED, base_ms=0, max_delay_ms=0),
}
"""Policies by name."""


class RetryChange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A document's change of a policy: the fields that are not None are its own, the others those of
    `preset`.

    Without a preset the others stay as they are where the change applies.
    """

    preset: str = ""
    max_attempts: int | None = None
    backoff: str | None = None
    base_ms: int | None = None
    multiplier: float | None = None
    max_delay_ms: int | None = None
    jitter: float | None = None
    schedule: tuple[int, ...] | None = None
    budget_ms: int | None = None
    on: tuple[str, ...] | None = None
    never: tuple[str, ...] | None = None


_PACE = ("max_attempts", "backoff", "base_ms", "max_delay_ms", "schedule")


def changed_policy(policy: RetryPolicy, change: RetryChange) -> RetryPolicy:
    """Return the policy with the change applied.

    A change of the number or the pace lifts a budget that it does not name, because that was meant for other
    numbers. A schedule stands for `backoff: custom` and for as many retries as it has pauses.
    """
    said: dict[str, Any] = {
        name: value for name in RetryPolicy.__struct_fields__ if (value := getattr(change, name)) is not None
    }
    if any(name in said for name in _PACE):
        said.setdefault("budget_ms", 0)
    if "schedule" in said:
        said.setdefault("backoff", CUSTOM)
        said.setdefault("max_attempts", len(said["schedule"]) + 1)
        said.setdefault("max_delay_ms", max(said["schedule"]))
    elif said.get("base_ms", 0) > (PRESETS.get(change.preset, policy)).max_delay_ms:
        said.setdefault("max_delay_ms", said["base_ms"])
    return msgspec.structs.replace(PRESETS.get(change.preset, policy), **said)


def policy_allows(policy: RetryPolicy, code: str, kind: str) -> bool | None:
    """Return true or false if the policy's own lists decide about a retry; None if they do not."""
    if code in policy.never or kind in policy.never:
        return False
    return code in policy.on or kind in policy.on if policy.on else None


def pause(
    policy: RetryPolicy,
    attempt: int,
    *,
    elapsed_ms: int = 0,
    retry_after_ms: int | None = None,
    draw: float = 0.5,
) -> int | None:
    """Return the same as `next_delay` for a failure that is retried whatever the lists say."""
    if attempt >= policy.max_attempts:
        return None
    delay = backoff_ms(policy, attempt, draw)
    if retry_after_ms is not None:
        if retry_after_ms > LONGEST_RETRY_AFTER_MS:
            return None
        # Never sooner than the service says, and not all callers that got the same pause at the same moment.
        spread = policy.jitter * policy.base_ms * draw if policy.backoff == JITTERED else 0
        return retry_after_ms + round(spread)  # the budget is for our own pauses
    if policy.budget_ms and elapsed_ms + delay > policy.budget_ms:
        return None
    return delay


def backoff_ms(policy: RetryPolicy, attempt: int, draw: float = 0.5) -> int:
    """Return the pause by the back-off alone, never above `max_delay_ms`."""
    base, most = policy.base_ms, policy.max_delay_ms
    delay: float = base
    if policy.backoff in {EXPONENTIAL, JITTERED}:
        # The power is held down: a float ends at 1e308.
        delay = base * policy.multiplier ** min(attempt - 1, MOST_ATTEMPTS)
        if policy.backoff == JITTERED:
            delay *= 1 - policy.jitter + draw * policy.jitter * 2
    elif policy.backoff == LINEAR:
        delay = base * attempt
    elif policy.backoff == FIBONACCI:
        delay = base * _fibonacci(min(attempt, MOST_ATTEMPTS))
    elif policy.backoff == CUSTOM:
        delay = policy.schedule[attempt - 1] if attempt <= len(policy.schedule) else most
    return round(min(delay, most))


def _fibonacci(number: int) -> int:
    last, this = 0, 1
    for _ in range(number - 1):
        last, this = this, last + this
    return this


def draw_jitter(seed: str, slot: str, attempt: int) -> float:
    """Return a number of [0, 1) that is the same for equal arguments, and different for every attempt."""
    said = msgspec.json.encode([seed, slot, attempt])
    return (int.from_bytes(hashlib.sha256(said).digest()[:8], "big") >> 11) / (1 << 53)


ASK, FAIL = "ask", "fail"
"""Words of documents and deployments for the reaction after retries and alternatives: a question, or the
step's failure.
"""

ANY = "any"
"""Name of a rule for any failure, in place of a code or a class."""

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
"""The hints of a replan, each with its meaning."""

HOOKS: Mapping[str, str] = {
    "refresh_page": "Load the page anew.",
    "clear_cache": "Forget cached answers.",
    "optimize_query": "Run the query with less work or more time.",
    "refresh_and_retry": "Read the present state first.",
}
"""The hooks before a retry, each with its meaning."""

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
"""The domains of tools; a tool without one has the defaults of no domain."""

SEVERITIES = ("low", "medium", "high", "critical")


class PolicyEntry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The reaction to one kind of failure.

    `kind` is its class. `ladder` are the strategies in their order, `policy` is that of `retry`. `at_most`:
    most uses of the others, 0 for never; a strategy without an entry has its own number. `hints` are tried
    one after the other. `before_retry` are hooks. `message` is the text for a person in place of the code's
    own sentence. `may_change` are the arguments that an answer may change. `escalate`: the steps of the
    question without an answer, as in a document, with `after_ms` from the asking on. `expires_ms`: how long
    the question waits; 0: the time of its strategy.
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
    expires_ms: int = 0


class PolicyChange(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """A rule's change of an entry: the fields that are not None.

    A class without a ladder brings the ladder of that class.
    `last`, a word of `LAST` (matrix.py), replaces the part of the ladder that asks people or ends the saga.
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
    expires_ms: int | None = None


Rules = Mapping[str, PolicyChange]
"""Changes by code, by class, or for `any` failure."""


def merge_changes(first: PolicyChange, second: PolicyChange) -> PolicyChange:
    """Return one change with the fields of both, the second's where they differ."""
    said: dict[str, Any] = {
        name: value for name in PolicyChange.__struct_fields__ if (value := getattr(second, name)) is not None
    }
    return msgspec.structs.replace(first, **said)
