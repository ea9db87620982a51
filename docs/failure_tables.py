"""The tables of docs/failures.md, made of the data in core/failures.

Markers and pages are in generate.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from baton.core.failures.codes import CLASSES, CODES, DEFECTS, ERRORS, class_of
from baton.core.failures.matrix import DEFAULTS, GENERAL, MATRIX
from baton.core.failures.names import OTHER_4XX, OTHER_5XX, STATUSES
from baton.core.failures.policy import (
    BACKOFFS,
    DOMAINS,
    HINTS,
    HOOKS,
    JITTERED,
    PRESETS,
    PolicyEntry,
    RetryPolicy,
)
from baton.core.failures.strategies.ladder import entry_of
from baton.core.failures.strategies.registry import END, STRATEGIES


def failure_classes() -> str:
    """Every class, and the ladder that it begins with."""
    rows = [
        (f"`{kind}`", says, " → ".join((_done(DEFAULTS[kind])[0], *DEFAULTS[kind].ladder[1:])))
        for kind, says in CLASSES.items()
    ]
    return _table(("class", "meaning", "strategies, in order"), rows)


def failure_codes() -> str:
    """Every code: its class, what a person is told, what to do."""
    rows = [(f"`{code}`", row.class_, row.says, row.advice) for code, row in CODES.items()]
    return _table(("code", "class", "what happened", "what to do"), rows)


def failure_defects() -> str:
    """The closed list of defects, and the errors of Python that are some."""
    return _meanings("code", DEFECTS)


def failure_bugs() -> str:
    """The errors of Python that are defects."""
    return ", ".join(f"`{name}`" for name in ERRORS)


def failure_statuses() -> str:
    """Every status of HTTP that says something of a failure."""
    found: dict[str, list[str]] = {}
    for status, code in STATUSES.items():
        found.setdefault(code, []).append(str(status))
    found[OTHER_4XX], found[OTHER_5XX] = ["other 4xx"], ["other 5xx"]
    rows = [
        (", ".join(names), f"`{code}`", class_of(code), *_done(entry_of(code, class_of(code))))
        for code, names in found.items()
    ]
    return _table(("status", "code", "class", "first", "hints and hooks"), rows)


def failure_matrix() -> str:
    """Every cell of the matrix, first those of no domain."""
    rows = [("any", f"`{code}`", *_done(entry_of(code, class_of(code)))) for code in GENERAL]
    for domain, cells in MATRIX.items():
        for code in cells:
            class_ = code if code in CLASSES else class_of(code)
            rows.append((f"`{domain}`", f"`{code}`", *_done(entry_of(code, class_, domain))))
    return _table(("domain", "code or class", "first", "hints and hooks"), rows)


def failure_domains() -> str:
    """What a tool can be about."""
    return _meanings("domain", DOMAINS)


def failure_strategies() -> str:
    """The strategies of the ladder, and how often each is used for one step."""
    rows = [(f"`{one.name}`", one.says, str(one.most)) for one in STRATEGIES.values()]
    return _table(
        ("strategy", "what it does", "most times, until a person decides"),
        [*rows, (f"`{END.name}`", END.says, "")],
    )


def failure_hints() -> str:
    """What a replan can do."""
    return _meanings("hint", HINTS)


def failure_hooks() -> str:
    """What can be done before a retry."""
    return _meanings("hook", HOOKS)


def backoffs() -> str:
    """The kinds of back-off."""
    return _meanings("`backoff`", BACKOFFS)


def retry_presets() -> str:
    """The presets with their numbers."""
    rows = [
        (
            f"`{name}`",
            str(policy.max_attempts),
            policy.backoff,
            _time(policy.base_ms),
            _time(policy.max_delay_ms),
            f"{policy.jitter:g}" if policy.backoff == JITTERED else "",
            _time(policy.budget_ms) if policy.budget_ms else "none",
        )
        for name, policy in PRESETS.items()
    ]
    return _table(("preset", "attempts", "back-off", "base", "longest pause", "jitter", "budget"), rows)


def _done(entry: PolicyEntry) -> tuple[str, str]:
    first = entry.ladder[0]
    hints = [*entry.before_retry, *entry.hints] if STRATEGIES[first].repeats else entry.hints
    return f"{first} {_retries(entry.policy)}" if STRATEGIES[first].repeats else first, ", ".join(
        f"`{name}`" for name in hints
    )


def _retries(policy: RetryPolicy) -> str:
    pause = _time(policy.base_ms)
    if policy.max_delay_ms != policy.base_ms:
        pause = f"{pause} to {_time(policy.max_delay_ms)}"
    return f"{policy.max_attempts - 1} times, {policy.backoff}, {pause}"


def _meanings(head: str, rows: Mapping[str, str]) -> str:
    return _table((head, "meaning"), [(f"`{name}`", says) for name, says in rows.items()])


def _time(ms: int) -> str:
    for unit, size in (("min", 60_000), ("s", 1_000)):
        if ms >= size and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * (lines[0].count("|") - 1), *lines[1:]])
