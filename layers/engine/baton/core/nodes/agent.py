"""An agent: it asks a model, makes the calls that the answer asks for, and asks again, until an answer asks
for none. In a conversation it then waits for the next message.

Turns and calls are steps at slots of items, with nodes of their own that the compiler has made. The
performance of a turn is in runtime/models/model_caller.py; the agent's state and its events are in
core/log/scopes.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from baton.core.graph.graph import AgentParts, Node
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import ASKED, turns_of
from baton.core.log.records import Segment
from baton.core.log.scopes import (
    ENDS,
    Agent,
    Progress,
    agent_call_item,
    call_digest,
    calls_words,
    is_turn,
    item_words,
    place_of,
    stand_in_answer,
    turn_item,
)
from baton.core.log.work import Open
from baton.core.nodes.base import (
    Activation,
    Done,
    Failed,
    Moved,
    Next,
    NodeContext,
    Opened,
    Run,
    Spread,
    UnfitError,
    work_of,
)
from baton.core.nodes.task import TaskKind

QUESTION_TEXTS = ("title", "message")
_NOTHING_LEFT = "it has no turn or no tokens left"
EXHAUSTED, NOT_ALLOWED, TOO_MANY = "agent_exhausted", "call_not_allowed", "too_many_calls"


class AgentKind(TaskKind):
    """An agent, whose items are turns and calls.

    A turn gives an answer: `calls`, each with `tool` and `arguments` or an `error`, or else `data`; and
    `tokens`: those that it has read, those that it has written, and those of a summary. A call `repeats` an
    equal one that is in a segment of the transcript. An answer that `ends` a conversation has its output.
    """

    name = "agent"

    def part(self, node: Node, work: Open | None, item: str) -> Node:
        parts = _parts(node)
        if is_turn(item):
            asked = {name: cap for name, cap in node.limits.items() if name in ASKED}
            schema = None if parts.idle_ms else node.output_schema
            if schema is None and not asked and not parts.tokens:
                return parts.turn
            return replace(parts.turn, output_schema=schema, limits=asked, agent=parts)
        tool = work.calls.get(item, "") if isinstance(work, Agent) else ""
        # A graph that was edited at a fork may not allow it any more.
        return parts.by_name.get(tool, node)

    def begun_with(self, node: Node, work: Open) -> dict[str, Any]:
        """Return what the agent was given, and the calls of its turn: it may get other tools for the next."""
        assert isinstance(work, Agent), "nothing else is opened here"
        calls = _parts(node).by_name
        asked = {name: calls.get(name) for name in work.calls.values()}
        known = {name: call and work_of(call) for name, call in asked.items()}
        return {**work_of(node), "agent": known}

    def keeps_failure(self, item: str) -> bool:
        return bool(item) and not is_turn(item)

    def instead(self, item: str, output: Any) -> Any:
        return stand_in_answer(output) if item and is_turn(item) else output

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        if not at.place.item:
            given = context.value(at)
            return Opened(ev.AgentBegan(**at.place.fields, given=given, listens=at.node.signal))
        if not is_turn(at.place.item):
            return super().begin(at, context)
        if at.node.agent is not None:
            work = context.state.open[at.place.owner]
            assert isinstance(work, Agent), "nothing else has items"
            # An answer that was refused was read and written, too.
            if spent := _exhausted("tokens", at.node.agent.tokens, work.used.tokens, at):
                return spent
        return Run({}) if context.may_spend(at) else None

    def gives(self, at: Activation, context: NodeContext) -> Mapping[str, Any] | None:
        """Return the arguments of a call. Raises `UnfitError` if the agent may not make it any more."""
        if at.node.agent is not None:
            work = context.state.open[at.place.owner]
            assert isinstance(work, Agent), "nothing else has items"
            raise UnfitError(_not_allowed(at.node.agent, work.calls[at.place.item]))
        if is_turn(at.place.item):
            return {}  # its conversation is what it is given
        turn, index = place_of(at.place.item)
        answer = context.state.items[at.place.child(turn_item(turn)).text]
        assert answer is not None, "its calls begin behind it"
        arguments: Mapping[str, Any] = context.content(at, answer)["calls"][index]["arguments"]
        if at.node.asks is not None:  # whom a question is for, and its answers, are the document's to say
            return {name: arguments[name] for name in QUESTION_TEXTS if name in arguments}
        return arguments

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        if not isinstance(work, Agent):
            return super().resume(at, work, context)
        if not work.turn:
            return _next_turn(at, work, {}, work.used, context)
        items, begin, turn = context.state.items, f"{at.slot}#", turn_item(work.turn)
        if missing := tuple([item for item in (turn, *work.calls) if begin + item not in items]):
            return Spread(missing)
        given = items[begin + turn]
        if given is None or (work.calls and None in [items[begin + item] for item in work.calls]):
            return None
        answer = context.content(at, given)
        if work.calls:
            return _next_turn(at, work, answer, work.used, context)
        if work.until:
            return _after_message(at, work, answer, context)
        used = _used(work, answer)
        if answer["calls"]:
            calls = tuple(_calls(_parts(at.node), work, answer["calls"]))
            begun = sum(one.result is None for one in calls)
            used = replace(used, calls=used.calls + begun)
            at_ms = context.now if all(one.failure is not None for one in calls) else 0
            return Moved(
                ev.CallsBegan(**at.place.fields, calls=calls, used=used, at=at_ms),
                begins=tuple(one.item for one in calls if one.result is None),
            )
        parts = _parts(at.node)
        if _has_turn(parts, work, used, context) and _has_room(
            parts, used, answer
        ):  # else the answer is the answer
            if parts.idle_ms and ENDS not in answer:
                until = context.now + parts.idle_ms
                return Moved(ev.MessageAwaited(**at.place.fields, until=until, used=used))
            if not parts.idle_ms and _heard(work, context)[0]:  # its user has said something else meanwhile
                return _next_turn(at, work, answer, used, context)
        return _closed(at, work, answer, used, _NOTHING_LEFT, context)

    def node_view(self, node: Node) -> dict[str, Any]:
        parts = _parts(node)
        return {
            "model": node.arguments["model"],
            "tools": [*parts.by_name],
            "turns": parts.turns,
        }

    def label(self, work: Open | None, item: str) -> str:
        return item_words(item, work.calls.get(item, "") if isinstance(work, Agent) else "")

    def says(self, event: ev.Moving) -> tuple[str, str]:
        if not isinstance(event, ev.CallsBegan):
            return "", ""
        return turn_item(place_of(event.calls[0].item)[0]), f"it asks for {calls_words(event.calls)}"


def _parts(node: Node) -> AgentParts:
    assert node.agent is not None, "the compiler gives it them"
    return node.agent


def _not_allowed(parts: AgentParts, tool: str) -> ev.Failure:
    known = ", ".join(sorted(parts.by_name))
    return ev.failed_with(NOT_ALLOWED, f"`{tool}` is none of the tools that may be called: {known}")


def _used(work: Agent, answer: Mapping[str, Any]) -> Progress:
    """Return the agent's use with this answer."""
    tokens = answer["tokens"]
    return replace(work.used, tokens=work.used.tokens + sum(tokens), read=tokens[0])


def _heard(work: Agent, context: NodeContext) -> tuple[tuple[str, ...], str]:
    """Return the keys of the signals that are messages to the agent, in the order of the log, and the key of
    the one after which no message follows: it has a failure.
    """
    heard = list[str]()
    if work.listens:
        for one in context.state.signals:
            if one.name == work.listens and one.is_in_time(work.due):
                if one.failure is not None:
                    return tuple(heard), one.key
                heard.append(one.key)
    return tuple(heard), ""


def _after_message(
    at: Activation, work: Agent, answer: Mapping[str, Any], context: NodeContext
) -> Next | None:
    """Resume a conversation that waits: with a turn for the messages that came in time, or with its end."""
    heard, ends = _heard(work, context)
    if heard and _has_turn(_parts(at.node), work, work.used, context):
        return _next_turn(at, work, answer, work.used, context)
    if heard:  # another agent of the saga has had the last turn that its caller left
        return _closed(at, work, answer, work.used, _NOTHING_LEFT, context)
    if ends:
        return _closed(at, work, answer, work.used, "a person has ended it", context)
    if context.now < work.until:
        return None
    return _closed(at, work, answer, work.used, "no message has come in time", context)


def _closed(
    at: Activation, work: Agent, answer: Mapping[str, Any], used: Progress, why: str, context: NodeContext
) -> Done | Failed:
    """Return the end of the agent with its last answer. That of a conversation takes the signal that ends it,
    for whatever reason it ends, so that no later one is ended by it.
    A conversation whose output has a schema fails if the agent has not given it; `why`: the end of it.
    """
    is_talk = _parts(at.node).idle_ms
    by = _heard(work, context)[1] if is_talk else ""
    if is_talk and at.node.output_schema is not None and ENDS not in answer:
        text = f"the conversation is over, and the agent has not given its output: {why}"
        return Failed(ev.failed_with(EXHAUSTED, text, at.node.name), by=by)
    output = ev.Value(v=answer["data"])
    return Done(ev.AgentClosed(**at.place.fields, output=output, turns=work.turn, used=used, by=by))


def _has_turn(parts: AgentParts, work: Agent, used: Progress, context: NodeContext) -> bool:
    """Return true if the agent and its caller have a turn left."""
    allowed = context.state.origin.allowed
    of_caller = allowed is None or not allowed.turns or turns_of(context.state) < allowed.turns
    return work.turn + used.turns < parts.turns and of_caller


def _has_room(parts: AgentParts, used: Progress, answer: Mapping[str, Any]) -> bool:
    """Return true if one more turn can fit into the agent's tokens: it reads again all that this one has
    read, and its answer.
    """
    return not parts.tokens or used.tokens + sum(answer["tokens"][:2]) < parts.tokens


def _exhausted(name: str, most: int, found: int, at: Activation, more: str = "") -> Failed | None:
    if not most or found < most:
        return None
    why = f"the agent has no answer yet, and has used its {name}: {found:,} of {most:,}{more}"
    return Failed(ev.failed_with(EXHAUSTED, why, at.node.name))


def _next_turn(
    at: Activation, work: Agent, answer: Mapping[str, Any], used: Progress, context: NodeContext
) -> Next:
    parts, allowed = _parts(at.node), context.state.origin.allowed
    by_delegates = f", {used.turns:,} of them by its delegates" if used.turns else ""
    for name, most, found, more in (
        ("turns", parts.turns, work.turn + used.turns, by_delegates),
        ("turns", allowed.turns if allowed else 0, turns_of(context.state), " that its caller has left"),
        ("tokens", parts.tokens, used.tokens, ""),
    ):
        if spent := _exhausted(name, most, found, at, more):
            return spent
    said = answer.get("segments")
    segments = None if said is None else tuple(Segment(ref, turns) for ref, turns in said)
    return Moved(
        ev.TurnBegan(
            **at.place.fields,
            turn=work.turn + 1,
            heard=_heard(work, context)[0],
            segments=segments,
            used=used,
        ),
        begins=(turn_item(work.turn + 1),),
    )


def _calls(parts: AgentParts, work: Agent, asked: list[dict[str, Any]]) -> Iterator[ev.Called]:
    made, known = dict(work.made), parts.by_name
    left = parts.calls_in_all - work.used.calls
    for index, one in enumerate(asked):
        item, tool = agent_call_item(work.turn, index), str(one["tool"])
        if (error := one.get("error")) is not None:
            yield ev.Called(item=item, tool=tool, failure=ev.failed_with(error["code"], error["message"]))
            continue
        if tool not in known:
            yield ev.Called(item=item, tool=tool, failure=_not_allowed(parts, tool))
            continue
        digest = call_digest(tool, one["arguments"])
        first = made.get(digest) or one.get("repeats", "")
        if first and tool not in parts.repeatable:
            yield ev.Called(item=item, tool=tool, digest=digest, repeats=first)
        elif left <= 0 or index >= parts.calls_in_a_turn:
            which = "in this agent" if left <= 0 else f"in one answer: {parts.calls_in_a_turn} are made"
            failure = ev.failed_with(TOO_MANY, f"no more calls are made {which}")
            yield ev.Called(item=item, tool=tool, failure=failure)
        else:
            left -= 1
            made[digest] = item
            yield ev.Called(item=item, tool=tool, digest=digest)
