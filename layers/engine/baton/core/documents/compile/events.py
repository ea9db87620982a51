"""What does not go together in a document's `events`, and what the rules name that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.conditions import blobs_of, names_of
from baton.core.conditions.composite import leaves
from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Condition, Python
from baton.core.documents.parts.outside import MOST_RULES
from baton.core.expressions import EVENT, ExpressionError, UnknownRoot, expressions_in
from baton.core.graph.outside import Events, SignalRule, StartRule
from baton.core.log.labels import MOST, label_problems
from baton.core.outside.users import USER_SHAPE, is_user
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.parts.outside import SignalRuleModel, StartRuleModel

MOST_BYTES = 8_192


def check(source: Source) -> Iterator[Problem]:
    """All of it."""
    model = source.model.events
    if model is None:
        return
    if not (model.start or model.signal):
        yield Problem("/events", "there is no rule", "write `start` or `signal`, each a list of rules")
    for name, rules in (("start", model.start), ("signal", model.signal)):
        if len(rules) > MOST_RULES:
            yield Problem(f"/events/{name}", f"there are {len(rules)} rules, and {MOST_RULES} are the most")
    for index, start in enumerate(model.start):
        yield from _start(source, f"/events/start/{index}", start)
    for index, signal in enumerate(model.signal):
        yield from _signal(source, f"/events/signal/{index}", signal)


def rules_of(source: Source) -> Events | None:
    """Those of a document without problems."""
    model = source.model.events
    if model is None:
        return None
    return Events(
        start=tuple(
            StartRule(
                **_shared(source, f"/events/start/{index}", rule),
                input=rule.input,
                labels=rule.labels,
                user=rule.user,
            )
            for index, rule in enumerate(model.start)
        ),
        signal=tuple(
            SignalRule(
                **_shared(source, f"/events/signal/{index}", rule), signal=rule.signal, payload=rule.payload
            )
            for index, rule in enumerate(model.signal)
        ),
    )


def _shared(source: Source, place: str, rule: StartRuleModel | SignalRuleModel) -> dict[str, Any]:
    """What both kinds of rules have."""
    return {
        "type": rule.type,
        "source": rule.source,
        "when": _read(source, place, rule.when)[0],
        "correlation_key": rule.correlation_key,
    }


def _start(source: Source, place: str, rule: StartRuleModel) -> Iterator[Problem]:
    yield from _condition(source, place, rule.when)
    yield from _template(f"{place}/correlation_key", rule.correlation_key)
    yield from _template(f"{place}/input", rule.input)
    yield from _template(f"{place}/labels", rule.labels)
    yield from _template(f"{place}/user", rule.user)
    if rule.user and "${" not in rule.user and not is_user(rule.user):
        yield Problem(f"{place}/user", f"`{rule.user[:60]}` is no user", USER_SHAPE)
    fixed = {name: text for name, text in rule.labels.items() if "${" not in text}
    yield from label_problems(rule.labels if len(rule.labels) > MOST else fixed, f"{place}/labels")


def _signal(source: Source, place: str, rule: SignalRuleModel) -> Iterator[Problem]:
    yield from _condition(source, place, rule.when)
    yield from _template(f"{place}/correlation_key", rule.correlation_key)
    yield from _template(f"{place}/payload", rule.payload)
    taken = sorted({kind.signal(source.nodes[name]) for name, kind in source.kinds.items()} - {""})
    if rule.signal not in taken:
        hint = source.hint(rule.signal, taken) or (
            f"there are {', '.join(taken[:10])}"
            if taken
            else f"write a node `wait: {{signal: {rule.signal}}}`"
        )
        yield Problem(f"{place}/signal", f"no node waits for the signal `{rule.signal}`", hint)


def _template(place: str, value: Any) -> Iterator[Problem]:
    if len(msgspec.json.encode(value)) > MOST_BYTES:
        yield Problem(place, f"what a rule says here has at most {MOST_BYTES:,} bytes")
    for pointer, found in expressions_in(value, place):
        if isinstance(found, UnknownRoot):
            yield Problem(
                pointer, f"`{found.source}` must begin with `event`", "write for example `event.data`"
            )
        elif isinstance(found, ExpressionError):
            yield Problem(pointer, str(found))
        elif found.root != EVENT:
            yield Problem(pointer, f"`{found.text}`: a rule can name `event` alone, such as `event.data`")


def _read(source: Source, place: str, value: Any) -> tuple[Condition | None, list[Problem]]:
    if value is None:
        return None, []
    return read_condition(value, f"{place}/when", source.model.schemas, of=EVENT)


def _condition(source: Source, place: str, value: Any) -> Iterator[Problem]:
    source.go_on(place)
    condition, problems = _read(source, place, value)
    yield from problems
    if condition is None:
        return
    for path in names_of(condition):
        if path.root != EVENT:
            yield Problem(
                f"{place}/when", f"`{path.text}`: a rule can name `event` alone, such as `event.data`"
            )
    if blobs_of(condition) or any(isinstance(leaf, Python) for leaf in leaves(condition)):
        yield Problem(
            f"{place}/when", "an event is judged at once, without Python and without blobs", "write it in CEL"
        )
