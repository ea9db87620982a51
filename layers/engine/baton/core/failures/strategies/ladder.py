"""The ladder of a failure: entry_of(code, …) returns its entry, next_step(situation) the reaction to take
now.

The rules over the defaults, the walk, and the history as data are here. The defaults are in
core/failures/matrix.py; each strategy has a file of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from baton.core.failures.codes import PERMANENT, class_of
from baton.core.failures.matrix import DEFAULTS, GENERAL, LAST, MATRIX, REPLAN
from baton.core.failures.policy import (
    ANY,
    ASK,
    FAIL,
    PRESETS,
    PolicyChange,
    PolicyEntry,
    Rules,
    changed_policy,
)
from baton.core.failures.strategies.base import STARTER, FailureContext, History, LadderStep
from baton.core.failures.strategies.registry import END, STRATEGIES, of
from baton.core.limits import USUAL, Limits


def entry_of(
    code: str,
    class_: str,
    domain: str = "",
    rules: Sequence[Rules] = (),
    *,
    is_handled: bool = False,
    last: str = ASK,
    is_defect: bool = False,
    on_purpose: bool = False,
    limits: Limits = USUAL,
    is_inverse: bool = False,
) -> PolicyEntry:
    """Return the reaction to a failure: the defaults, and over them the rules, each list more important than
    the last.

    `rules` are those of the document, then those of the node. Within one, `any` counts least and the code
    most. If the graph itself goes on from a failure (`is_handled`), the defaults keep only the strategies
    that ask no person and revert nothing; a document's own ladder stays as it is. `last`, a word of `LAST`,
    is the deployment's reaction in place of a question that the defaults ask.

    A rule for `any` failure never retries a `permanent` one. For a defect, only rules that name its code
    count.
    A code that a tool gave `on_purpose` has the defaults of its class. `limits`: those of the deployment; its
    retries are not for an inverse.
    """
    rules = [_naming(code, level) for level in rules] if is_defect else rules
    class_ = next((change.kind for change in _in_turn(code, class_, reversed(rules)) if change.kind), class_)
    entry = DEFAULTS[class_]
    if limits.retry_policy != USUAL.retry_policy and not is_inverse:
        entry = replace(entry, policy=PRESETS[limits.retry_policy])
    for change in _changes(code, class_, ({} if on_purpose else GENERAL, MATRIX.get(domain, {}))):
        entry = merge(entry, change)
    if is_handled:
        entry = merge(entry, PolicyChange(last=FAIL))
    elif last != ASK and any(of(name).asks == STARTER for name in entry.ladder):
        entry = merge(entry, PolicyChange(last=last))
    return completed(laid_over(entry, code, class_, rules), limits)


def completed(entry: PolicyEntry, limits: Limits) -> PolicyEntry:
    """Return the entry with what a deployment says where the rules say nothing."""
    if limits is USUAL:
        return entry
    return replace(
        entry,
        at_most={REPLAN: limits.replan_attempts, **entry.at_most},
        expires_ms=entry.expires_ms or limits.question_timeout_ms,
    )


def laid_over(entry: PolicyEntry, code: str, class_: str, rules: Sequence[Rules]) -> PolicyEntry:
    """Return the entry with the changes of rules."""
    for change in _changes(code, class_, rules):
        entry = merge(entry, change)
    return entry


def is_said(code: str, class_: str, rules: Sequence[Rules]) -> bool:
    """Return true if the rules name strategies for a failure, in place of the default ones."""
    found = _changes(code, class_, rules)
    return any(change.ladder is not None or change.last is not None for change in found)


def merge(entry: PolicyEntry, change: PolicyChange) -> PolicyEntry:
    """Return the entry with the change.

    `at_most` is added to the entry's; all other fields replace the entry's.
    """
    said: dict[str, Any] = {
        name: value
        for name in PolicyEntry.__struct_fields__
        if (value := getattr(change, name, None)) is not None
    }
    if change.last is not None:
        said["ladder"] = (*without_people(said.get("ladder", entry.ladder)), *LAST[change.last])
    if change.retry is not None:
        said["policy"] = changed_policy(entry.policy, change.retry)
    if change.at_most is not None:
        said["at_most"] = entry.at_most | change.at_most
    return replace(entry, **said)


def without_people(ladder: Iterable[str]) -> tuple[str, ...]:
    """Return the strategies of a ladder that ask no person and revert nothing."""
    return tuple(name for name in ladder if not of(name).asks and not of(name).reverts)


def severity_of(code: str, class_: str) -> str:
    """Return the severity of a failure unless the author gives another, in any domain; `class_` empty: that
    of the code.
    """
    return entry_of(code, class_ or class_of(code)).severity


def _naming(code: str, rules: Rules) -> Rules:
    """Return the rules that name the code, in themselves or in the `on` of their retries."""
    found = {code: rules[code]} if code in rules else {}
    for name, change in rules.items():
        if name != code and change.retry is not None and code in (change.retry.on or ()):
            return {ANY: PolicyChange(retry=change.retry), **found}
    return found


def _changes(code: str, kind: str, rules: Iterable[Rules]) -> Iterator[PolicyChange]:
    """Yield the changes that apply, the most important one of each level last."""
    for level in rules:
        yield from reversed([*_in_turn(code, kind, (level,))])


def _in_turn(code: str, kind: str, rules: Iterable[Rules]) -> Iterator[PolicyChange]:
    """Yield the changes that apply, the most important one first."""
    for level in rules:
        for name in (code, kind, ANY):
            if name in level:
                yield _never_again(level[name]) if name == ANY and kind == PERMANENT else level[name]


def _never_again(change: PolicyChange) -> PolicyChange:
    """Return a rule for all failures as it applies to a permanent one, which stays permanent and is not
    retried.
    """
    ladder = change.ladder
    if ladder is not None:
        ladder = tuple(name for name in ladder if not of(name).repeats)
    return replace(change, kind=None, ladder=ladder)


# ---- the walk -----------------------------------------------------------------------------------------------------


def next_step(at: FailureContext) -> LadderStep:
    """Return the step of the first strategy of the entry's ladder that has one; the end of the ladder if none
    has.
    """
    why: list[str] = []
    for name in ladder_of(at.entry, at.code):
        found = of(name).next(at)
        if isinstance(found, LadderStep):
            return replace(found, why=tuple(why))
        why.append(f"{name}: {found}")
    return LadderStep(strategy=END.name, why=tuple(why))


def after_step(history: History, step: LadderStep, *, now: int) -> History:
    """Return the history with a step that is carried out for a failure at `now`."""
    return of(step.strategy).recorded(history, step, now)


def after_decision(history: History) -> History:
    """Return the history after a person's decision to retry the step: people can be asked again."""
    return replace(history, used={name: count for name, count in history.used.items() if not of(name).asks})


def ladder_of(entry: PolicyEntry, code: str) -> tuple[str, ...]:
    """Return the strategies for a code: first those that the entry wants for it, and without those it does
    not want.
    """
    ladder = entry.ladder
    for name, strategy in STRATEGIES.items():
        said = strategy.is_wanted(entry, code)
        if said is not None:
            rest = tuple(one for one in ladder if one != name)
            ladder = (name, *rest) if said else rest
    return ladder
