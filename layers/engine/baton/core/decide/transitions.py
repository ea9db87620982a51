"""The way on of a saga from a node that is done, was skipped or failed: the settlement of the event.

`loop`, `branch`, the end of a round, and the outputs that are no longer read are here. The readiness of nodes
is in program.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NoReturn, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from baton.core.conditions import ConditionError
from baton.core.conditions.schema import violations
from baton.core.decide.context import NOTHING, EvaluationContext
from baton.core.decide.program import Program
from baton.core.expressions import (
    LONGEST_MS,
    ExpressionError,
    compile_template,
    duration_text,
    parse_duration,
)
from baton.core.failures import quoted, sanitised
from baton.core.failures.codes import OUTPUT_INVALID, class_of
from baton.core.graph.graph import Loop, Node, Pause, Poll
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import Caps, json_bytes
from baton.core.log.records import Paused
from baton.core.log.slots import Slot, owner_of
from baton.core.log.state import State
from baton.core.summary import summary_of

_Event = TypeVar("_Event", bound=ev.Settles)


class RouteError(Exception):
    """The transition from here cannot be computed."""

    def __init__(self, code: str, message: str, answer: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.answer = answer


class Settlement(Struct, frozen=True, kw_only=True, gc=False):
    """The consequences of an event. The fields have the meaning that they have in an event.

    `output`, `keep` and `full` are those of a node that is done.
    """

    emits: tuple[ev.Token, ...] = ()
    errors: tuple[ev.Failure, ...] = ()
    way: str = ""
    drops: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    fault: ev.Failure | None = None
    output: ev.Value | None = None
    keep: bool = True
    full: ev.Value | None = None
    is_result: bool = False
    paused: Paused | None = None

    def on(self, event: _Event) -> _Event:
        """Return the event of a node, completed with its consequences."""
        if self.paused is not None:
            event = replace(event, paused=self.paused)
        if isinstance(event, ev.Gives):
            return replace(
                event,
                emits=self.emits,
                errors=self.errors,
                way=self.way,
                drops=self.drops,
                carry=self.carry,
                forget=self.forget,
                fault=self.fault,
                output=self.output,
                keep=self.keep,
                full=self.full,
            )
        if self.is_result:
            return replace(event, is_result=True)
        return replace(
            event,
            emits=self.emits,
            errors=self.errors,
            way=self.way,
            drops=self.drops,
            carry=self.carry,
            forget=self.forget,
            fault=self.fault,
        )


ERRORS_CARRIED = 20
_NONE: frozenset[str] = frozenset()


def done(
    context: EvaluationContext, now: int, cost: int = 0, *, began: int = 0, has_schema: bool = True
) -> Settlement:
    """Return the settlement of the node at the context's slot that has just given `context.output`, with that
    output.

    It has a `fault` if the output is invalid, a condition breaks or a limit is exceeded. `cost` has not been
    counted yet; `began`: the start of its attempt. Without `has_schema` the output is the engine's own, and
    the node's schema does not apply, or the output is known to be valid. Raises `LackingError`.
    """
    program, state, slot = context.program, context.state, context.slot
    assert context.output is not None
    if "#" in slot:
        return Settlement(output=context.output)  # of an item: its node decides what follows
    node = program.nodes[Slot.parse(slot).node]
    caps = program.caps
    output, full = context.output, None
    if caps is not None:
        output, full = caps.fit(state, node, output, context.content)
    try:
        if has_schema:
            check_output(context, node)
        if caps is None and (emits := program.plain.get(node.name)) is not None:
            return _settled(program, state, slot, emits, (), (), output=output)
        again, chosen, way = _choose(context, node)
        found = _again(program, state, slot, node) if again else _go(program, state, slot, node, chosen)
        if again and node.loop is not None and (node.loop.pause is not None or node.loop.poll is not None):
            found = replace(found, paused=loop_pause(context, node.loop, now, began))
        if caps is not None:
            _check_limits(caps, state, node, found.emits, output, cost)
    except RouteError as error:
        fault = replace(ev.failed_with(error.code, error.message, node.name), answer=error.answer)
        return replace(settle_failed(context, fault), fault=fault, output=output, full=full, keep=False)
    return replace(found, way=way, output=output, full=full)


def settle_skipped(program: Program, state: State, slot: str, *, passes_on: bool) -> Settlement:
    """Return the settlement of a node that does not run: none of its edges is taken, and the errors it got go
    on.

    The errors do not go on if its join has fired.
    """
    node = program.nodes[Slot.parse(slot).node]
    errors = EvaluationContext(program, state, NOTHING, slot).errors() if passes_on else ()
    return _go(program, state, slot, node, _NONE, errors)


def settle_failed(context: EvaluationContext, failure: ev.Failure) -> Settlement:
    """Return the settlement of the failed node at the context's slot: empty unless it is caught or a join
    tolerates it.

    If it is caught, all edges but those to its handlers are lost. An item fails its node. Raises
    `LackingError`.
    """
    if "#" in context.slot:
        if context.program.keeps_failure(context.slot):
            return Settlement(is_result=True)
        context = replace(context, slot=owner_of(context.slot))
    program, state, slot = context.program, context.state, context.slot
    node = program.nodes[Slot.parse(slot).node]
    number = catching_rule(context, failure)
    if number is None and node.name not in program.index.can_fail:
        return Settlement()
    handlers = () if number is None else node.catch[number].then
    error = replace(failure, node=node.name, handled=handlers)
    found = _go(program, state, slot, node, frozenset(handlers), (error,))
    return found if number is None else replace(found, way=f"catch {number + 1}")


def forgotten(context: EvaluationContext) -> tuple[str, ...]:
    """Return the outputs that no node reads any more once the slot is gone, and nothing follows from it."""
    return _settled(context.program, context.state, context.slot, (), (), ()).forget


def catching_rule(context: EvaluationContext, failure: ev.Failure) -> int | None:
    """Return the number of the first rule of `catch` that fits, from 0.

    A rule whose condition breaks does not fit.
    Raises `LackingError`.
    """
    node = context.program.nodes[Slot.parse(context.slot).node]
    class_ = failure.kind or class_of(failure.code)
    blamed = context.blaming(failure)
    for number, rule in enumerate(node.catch):
        if not rule.fits(failure.code, class_):
            continue
        try:
            if rule.condition is None or blamed.holds(rule.condition):
                return number
        except ConditionError:
            continue
    return None


def is_handled(context: EvaluationContext, failure: ev.Failure) -> bool:
    """Return true if the saga would go on from this failure. Raises `LackingError`."""
    program, name = context.program, Slot.parse(context.slot).node
    if program.is_one_of_many(context.slot):
        each = program.nodes[name].each
        assert each is not None, "only a map has such items"
        if each.tells_all:
            return True
        context = replace(context, slot=owner_of(context.slot))
    elif program.keeps_failure(context.slot):
        return True
    return name in context.program.index.can_fail or catching_rule(context, failure) is not None


def check_output(context: EvaluationContext, node: Node) -> None:
    """Check an output against the node's schema.

    Raises `RouteError` for an invalid output, and `LackingError`.
    """
    is_part = bool(node.tool) and "#" in context.slot and not context.program.is_one_of_many(context.slot)
    if node.output_schema is None or context.output is None or is_part:
        return
    for problem in violations(node.output_schema, context.content(context.output), ""):
        raise RouteError(
            OUTPUT_INVALID,
            f"the output does not match output_schema: at {problem.path or '/'}: {problem.message}",
        )


def _check_limits(
    caps: Caps, state: State, node: Node, emits: Iterable[ev.Token], output: ev.Value, cost: int
) -> None:
    live = sum(token.alive for token in emits)
    failure = caps.fault(state, node, live, json_bytes(output), cost)
    if failure is not None:
        raise RouteError(failure.code, failure.message)


def _choose(context: EvaluationContext, node: Node) -> tuple[bool, frozenset[str], str]:
    """Return true if the loop goes round again; the chosen receivers if not; and both in words."""
    chosen, words = frozenset(node.after), []
    if node.catch:
        chosen -= frozenset(name for rule in node.catch for name in rule.then)
    loop = node.loop
    if loop is not None:
        if _holds(context, loop.condition, "loop.while" if loop.poll is None else "poll.until"):
            # A poll says itself when it gives up.
            if loop.poll is not None or Slot.parse(context.slot).iteration[-1] + 1 < loop.max_iterations:
                return True, _NONE, "again"
            if not loop.timeout_path:
                text = f"after {loop.max_iterations} rounds its condition still holds, and it has no `timeout_path`"
                raise RouteError("loop_exhausted", text)
            return False, frozenset(loop.timeout_path), "timeout"
        words.append("break")
        chosen -= frozenset(loop.timeout_path) - frozenset(loop.break_path)
    if node.branch is not None:
        names, word = _branch(context, node)
        chosen = (chosen - node.branch.targets) | names
        words.append(word)
    return False, chosen, ", ".join(words)


def _branch(context: EvaluationContext, node: Node) -> tuple[frozenset[str], str]:
    branch = node.branch
    assert branch is not None
    if branch.choose:
        named = _named(context, node)
        return (named, "chosen") if named else (frozenset(branch.default), "default")
    for number, rule in enumerate(branch.rules, 1):
        if _holds(context, rule.condition, f"rule {number} of branch"):
            return frozenset(rule.then), f"rule {number}"
    return frozenset(branch.default), "default"


def _named(context: EvaluationContext, node: Node) -> frozenset[str]:
    """Return the nodes that the value of `choose` names."""
    branch = node.branch
    assert branch is not None
    try:
        value = context.read(context.program.choices[node.name])
    except ExpressionError as error:
        raise RouteError("branch_unbound", f"branch.choose: {error}") from error
    names = value if isinstance(value, list) else [] if value in (None, "") else [value]
    strange = [name for name in names if name not in branch.among]
    if strange:
        known = ", ".join(branch.among)
        raise RouteError(
            "branch_not_allowed",
            f"branch.choose names {sanitised(str(strange[0])[:2_000])[:100]!r}; it may name {known}",
        )
    return frozenset(names)


def _holds(context: EvaluationContext, condition: Any, where: str) -> bool:
    try:
        return context.holds(condition)
    except ConditionError as error:
        raise RouteError(error.code, f"{where}: {error.message}") from error


def _again(program: Program, state: State, slot: str, node: Node) -> Settlement:
    """Return the settlement of the next round: outputs of the last one become the previous ones, or are
    forgotten.
    """
    iteration = Slot.parse(slot).iteration
    header, following = program.index.again(node.name, iteration)
    body = program.index.body[node.name]
    given = {*state.outputs, node.name}
    carry = tuple(f"{node.name}/{name}" for name in program.carried.get(node.name, ()) if name in given)
    stale = [name for name in state.outputs if name in body]
    stale += [key for key in state.previous if key.partition("/")[0] in body and key not in carry]
    emits = (ev.Token(node.name, header, following),)
    drops = _round(program, state, slot, node.name, iteration)
    return _settled(program, state, slot, emits, drops, stale, carry=carry)


def _go(
    program: Program,
    state: State,
    slot: str,
    node: Node,
    chosen: Collection[str],
    errors: tuple[ev.Failure, ...] = (),
) -> Settlement:
    """Return the settlement with tokens along the node's own edges, or all edges out of the loops that end
    with it.
    """
    index = program.index
    iteration = Slot.parse(slot).iteration
    depth = len(iteration)
    level = min((index.shared(node.name, name) for name in chosen), default=depth) if depth else 0
    if node.loop is not None:
        level = min(level, depth - 1)
    edges: Iterable[tuple[str, str]]
    if level < depth:
        tail = node.loops[level]
        edges, drops = index.exits[tail], _round(program, state, slot, tail, iteration[: level + 1])
        stale = [key for key in state.previous if key.partition("/")[0] in index.body[tail]]
    else:
        edges, drops, stale = index.inner[node.name], (), []
    emits = tuple(
        ev.Token(
            src,
            dst,
            index.arriving(src, dst, iteration),
            src == node.name and dst in chosen,
        )
        for src, dst in edges
    )
    return _settled(program, state, slot, emits, drops, stale, errors[:ERRORS_CARRIED])


def _round(
    program: Program, state: State, slot: str, tail: str, iteration: tuple[int, ...]
) -> tuple[str, ...]:
    """Return the slots with remains of a round of a loop, its own included if that fired early."""
    body, depth = program.index.body[tail], len(iteration)
    header = program.index.header[tail]
    found = []
    for other in {**state.tokens, **state.closed}:
        place = Slot.parse(other)
        if (name := place.node) not in body or place.iteration[:depth] != iteration:
            continue
        # The edges into a loop come from outside of it: its join goes on absorbing them.
        is_heard = name == header and other not in state.tokens
        if not is_heard and (other != slot or (slot in state.closed and name != header)):
            found.append(other)
    return tuple(found)


def _settled(
    program: Program,
    state: State,
    slot: str,
    emits: tuple[ev.Token, ...],
    drops: tuple[str, ...],
    stale: Collection[str],
    errors: tuple[ev.Failure, ...] = (),
    carry: tuple[str, ...] | None = None,
    output: ev.Value | None = None,
) -> Settlement:
    name, ahead = Slot.parse(slot).node, 0
    if state.outputs or program.is_read(name):
        gone = {slot, *drops}
        late = state.late.difference(drops) if program.has_late else ()
        if late:
            gone |= late
        if state.items:  # what items read is read for their node
            gone |= {other for other in state.tokens if owner_of(other) in gone}
        reached = (token.slot for token in emits)
        ahead = program.ahead_of(
            [other for other in state.tokens if other not in gone]
            + [other for other in reached if other not in state.closed],
            late,
        )
    unread = [one for one in state.outputs if one not in stale and not program.is_needed(one, ahead)]
    keep = program.is_needed(name, ahead)
    if carry is not None:  # what goes on into the next round is there as the previous one's only
        keep = f"{name}/{name}" in carry
        unread += [name] * keep
    return Settlement(
        emits=emits,
        errors=errors,
        drops=drops,
        carry=carry or (),
        forget=(*stale, *unread),
        keep=keep,
        output=output,
    )


GIVEN_UP = "poll_exhausted"
LONGEST_ANSWER = 4_096
"""Most bytes of the last answer that the failure of a poll keeps; of a longer answer it keeps the
beginning.
"""
_NONE_AT_ALL = re.compile(r" *0+(\.0+)? *(ms|s|m|h|d)? *")


def loop_pause(context: EvaluationContext, loop: Loop, now: int, began: int) -> Paused | None:
    """Return the pause before the next round. The last try of a poll is made at its deadline.

    Raises `RouteError`, for a poll also if its tries or its time are used up, and `LackingError`.
    """
    by = 0
    if loop.poll is not None:
        by = _deadline(context, loop.poll, began)
        rounds = Slot.parse(context.slot).iteration[-1] + 1
        if rounds >= loop.max_iterations:
            _give_up(context, rounds, "the most there may be")
        if by and now >= by:
            _give_up(context, rounds, f"for {duration_text(loop.poll.within_ms)}")
    until = now + (0 if loop.pause is None else _length(context, loop, loop.pause))
    until = min(until, by) if by else until
    return Paused(until=until, ends_by=by) if by or until > now else None


def _give_up(context: EvaluationContext, rounds: int, most: str) -> NoReturn:
    assert context.output is not None, "it has answered"
    last = context.content(context.output)
    encoded = msgspec.json.encode(last)
    text = f"it was asked {rounds} time{'s' * (rounds > 1)}, {most}, and `until` does not hold; the last answer: {encoded.decode()[:300]}"
    if len(encoded) > LONGEST_ANSWER:
        last = summary_of(last, LONGEST_ANSWER, len(encoded), "in the log")
    raise RouteError(GIVEN_UP, quoted(text), msgspec.json.encode(last).decode())


def _deadline(context: EvaluationContext, poll: Poll, began: int) -> int:
    """Return the deadline of a poll, counted from the first attempt of the first try; 0: none."""
    if not poll.within_ms:
        return 0
    if (before := context.state.pauses.get(context.slot)) is not None:
        return before.ends_by
    failing = context.state.failing.get(context.slot)
    since = 0 if failing is None else failing.history.since
    return (since or began) + poll.within_ms


def _length(context: EvaluationContext, loop: Loop, pause: Pause) -> int:
    if pause.of is None:
        rounds = Slot.parse(context.slot).iteration[-1]
        # A large power is no number any more.
        grown = pause.ms * pause.factor ** min(rounds, 100)
        return round(min(grown, pause.most_ms or LONGEST_MS))
    try:
        given: Any = context.render(compile_template(pause.of))
        return 0 if _NONE_AT_ALL.fullmatch(str(given)) else parse_duration(given)
    except (ExpressionError, ValueError) as error:
        which = "loop.pause" if loop.poll is None else "poll.every"
        raise RouteError("wait_invalid", f"{which}: {error}") from error
