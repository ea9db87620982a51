"""Checks of a document's `events` and `schedule`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from baton.core.conditions import blobs_of, names_of
from baton.core.conditions.document import read_condition
from baton.core.conditions.model import Condition, Python, leaves
from baton.core.conditions.schema import input_violations
from baton.core.documents.parts.triggers import MOST_RULES
from baton.core.expressions import EVENT, SCHEDULE, ExpressionError, UnknownRoot, expressions_in
from baton.core.graph.graph import SKIP, Events, SignalRule, StartRule
from baton.core.log.labels import MOST, label_problems
from baton.core.outside import USER_SHAPE, is_user
from baton.core.schedules import ScheduleRecord, input_at_tick
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source
    from baton.core.documents.parts.triggers import SignalRuleModel, StartRuleModel

MOST_BYTES = 8_192


def check_events(source: Source) -> Iterator[Problem]:
    """Yield the problems of `events`."""
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


def event_rules(source: Source) -> Events | None:
    """Return the rules for events of a document without problems."""
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
                tag=rule.tag,
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
    """Return the fields that both kinds of rules have."""
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
            f"{place}/when",
            "conditions on events are evaluated at once: they use neither Python nor blobs",
            "write it in CEL",
        )


_SOME_TICK = 1_767_225_600_000


def check_schedule(source: Source) -> Iterator[Problem]:
    """Yield the problems of `schedule`."""
    if (model := source.model.schedule) is None:
        return
    if bool(model.cron) == bool(model.rate):
        said = "has both `cron` and `rate`" if model.cron else "has neither `cron` nor `rate`"
        yield Problem("/schedule", f"the schedule {said}; write one of them")
    if model.rate and "timezone" in model.model_fields_set:
        yield Problem(
            "/schedule/timezone", "a rate follows elapsed time, in every time zone alike", "leave it out"
        )
    if model.overlap == SKIP and (model.catch_up or 0) > 1:
        message = "with `overlap: skip` one of the missed ticks is started, the newest"
        yield Problem(
            "/schedule/catch_up", message, "write `overlap: queue` or `overlap: allow`, or at most 1"
        )
    if len(msgspec.json.encode(model.input)) > MOST_BYTES:
        yield Problem("/schedule/input", f"the input of a schedule has at most {MOST_BYTES:,} bytes")
    yield from label_problems(model.labels, "/schedule/labels")
    wrong = list(_expressions(source))
    yield from wrong or _input(source)


def _expressions(source: Source) -> Iterator[Problem]:
    assert source.model.schedule is not None
    for place, found in expressions_in(source.model.schedule.input, "/schedule/input"):
        if isinstance(found, ExpressionError):
            yield Problem(place, str(found))
        elif found.root != SCHEDULE:
            message = f"`{found.text}`: the input of a schedule can name `schedule.time` and `schedule.name`"
            yield Problem(place, message)


def _input(source: Source) -> Iterator[Problem]:
    model = source.model
    if model.input is None or model.schedule is None:
        return
    example = ScheduleRecord(
        tenant="",
        workflow=model.name,
        number=0,
        version=0,
        by="",
        anchor=0,
        schedule=model.schedule.schedule(),
    )
    for problem in input_violations(model.input, input_at_tick(example, _SOME_TICK)):
        yield Problem(f"/schedule{problem.path}", f"the workflow's `input` refuses it: {problem.message}")
