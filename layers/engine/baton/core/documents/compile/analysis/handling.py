"""A document's handling of failures, as the graph keeps it: rules by code or class, and failover policies.

From the models (core/documents/parts/failing.py) to frozen data, and the names in them that have to be known. The
models check shapes; what is wrong with rules is in compile/rules.py and compile/failing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.expressions.spelling import nearest
from baton.core.failures.failover import DAY_MIN, DAYS, Action, Match, Policy, Window
from baton.core.failures.policy import ANY, ASK, FAIL, HINTS, HOOKS, Change, merge_changes
from baton.core.failures.strategies.registry import STRATEGIES

if TYPE_CHECKING:
    from baton.core.conditions.model import Condition
    from baton.core.documents.parts.failing import (
        MatchModel,
        PolicyModel,
        ReactionModel,
        RetryModel,
        WindowModel,
    )


def rules_of(retry: RetryModel | None, on_failure: Mapping[str, ReactionModel]) -> dict[str, Change]:
    """The rules of a node or a document. Its `retry` holds for any failure, unless `on_failure` says otherwise."""
    rules = {code: _change_of(code, reaction) for code, reaction in on_failure.items()}
    if retry is not None:
        general = Change(retry=retry.change())
        rules[ANY] = merge_changes(general, rules[ANY]) if ANY in rules else general
    return rules


def ladder_of_word(word: str) -> tuple[str, ...]:
    """The strategies that one word stands for: its own, and those after it."""
    if STRATEGIES[word].parks:
        # The operator who decides about the incident can still let the saga undo what it has done.
        return (word, *(name for name, strategy in STRATEGIES.items() if strategy.undoes))
    names = (*STRATEGIES,)
    return names[names.index(word) :]


def _change_of(code: str, model: ReactionModel) -> Change:
    said: str | Sequence[str] | None = model.ladder
    last = None
    if isinstance(said, str):
        # To undo is a word for all failures. A rule that names one says what is done about it, and nothing before that.
        is_last = said in (ASK, FAIL) or (code == ANY and STRATEGIES[said].undoes)
        last, said = (said, None) if is_last else (None, ladder_of_word(said))
    return Change(
        kind=model.class_,
        ladder=_tuple(said),
        last=last,
        retry=None if model.retry is None else model.retry.change(),
        at_most=model.at_most or None,
        hints=_tuple(model.hints),
        before_retry=_tuple(model.before_retry),
        message=model.message,
        question=model.question,
        severity=model.severity,
        may_change=_tuple(model.may_change),
        escalate=None if model.escalate is None else tuple(step.said() for step in model.escalate),
    )


def policies_of(
    models: Sequence[PolicyModel], read: Callable[[int, Any], Condition | None]
) -> tuple[Policy, ...]:
    """The policies. `read` makes the condition at a place of the list, as it stands in the document, a condition."""
    return tuple(
        Policy(
            name=model.name,
            when=_match_of(model.when, None if model.when.if_ is None else read(index, model.when.if_)),
            then=Action(
                strategy=model.then.strategy,
                hint=model.then.hint or "",
                tool=model.then.tool or "",
                arguments=dict(model.then.with_),
            ),
            message=model.message,
            at_most=model.at_most,
        )
        for index, model in enumerate(models)
    )


def _match_of(model: MatchModel, condition: Condition | None) -> Match:
    attempt = model.attempt
    return Match(
        nodes=tuple(model.node),
        tools=tuple(model.tool),
        domains=tuple(model.domain),
        codes=tuple(model.code),
        kinds=tuple(model.class_),
        attempt=(1, 0) if attempt is None else (attempt.from_, attempt.to or 0),
        times=tuple(map(_window_of, model.time)),
        parameters={path: tuple(values) for path, values in model.parameters.items()},
        condition=condition,
    )


def _window_of(model: WindowModel) -> Window:
    sign = -1 if model.utc_offset.startswith("-") else 1
    return Window(
        begins=_minutes(model.from_),
        ends=_minutes(model.to),
        days=tuple(sorted({DAYS.index(day) for day in model.days})),
        offset=sign * _minutes(model.utc_offset[1:]),
    )


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")
    return (int(hours) * 60 + int(minutes)) % DAY_MIN


def _tuple(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


# ---- names ---------------------------------------------------------------------------------------------------------


def strange_names(
    rules: Mapping[str, Change],
    tools: Collection[str],
    meant: Callable[[str, Iterable[str]], str] = nearest,
) -> Iterator[tuple[str, str, str]]:
    """Unknown hints and hooks: neither the engine's own nor a tool of the application.

    Of each the place below `on_failure`, what is wrong, and what may have been meant, which `meant` says.
    """
    for code, change in rules.items():
        for field, known in (("hints", HINTS), ("before_retry", HOOKS)):
            for index, name in enumerate(getattr(change, field) or ()):
                if name not in known and name not in tools:
                    what = "hint" if field == "hints" else "hook"
                    message = f"there is no {what} and no tool `{name}`"
                    yield f"/{code}/{field}/{index}", message, meant(name, [*known, *tools])
