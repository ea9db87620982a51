"""What the rules of a node say about the failure of the child saga that it has started."""

from __future__ import annotations

from baton.core.failures.codes import CHILD_FAILED, class_of
from baton.core.failures.matrix import DEFAULTS, RETRY
from baton.core.failures.policy import ANY, PolicyEntry, Rules
from baton.core.failures.retry import PRESETS
from baton.core.failures.strategies.ladder import laid_over
from baton.core.log.records import Failure


def cause_of(failure: Failure, rules: Rules) -> tuple[str, str]:
    """The code and the class by which rules are asked: what the child has failed with, where a rule names that code."""
    first = failure.errors[0] if failure.errors else failure
    cause, kind = first.code, first.kind or class_of(first.code)
    named = set(rules)
    for change in rules.values():
        if change.retry is not None:
            named |= {*(change.retry.on or ()), *(change.retry.never or ())}
    return (cause if cause in named else failure.code), kind


def entry_of_child(failure: Failure, rules: Rules) -> PolicyEntry:
    """Without a rule nothing is done: the child has done what it could. `retry` is for what goes away by itself, or what a rule names.

    A rule for `child_failed` is for all failures, as one for `any`: neither starts another child after a permanent one.
    """
    code, kind = cause_of(failure, rules)
    ladder = (RETRY,) if RETRY in DEFAULTS[kind].ladder else ()
    entry = PolicyEntry(kind=kind, ladder=ladder, policy=PRESETS["none"])
    return laid_over(entry, code, kind, (rules,), general=(ANY, CHILD_FAILED))
