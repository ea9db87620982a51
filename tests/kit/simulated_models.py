"""An agent in the simulation: its model, what it is asked, and what must hold of its requests whatever goes wrong.

The model is no process of the engine. What it says depends on the messages alone, so that a repeated request gets the same answer.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from baton import StepFailure
from baton.core.log.events import CallbackOpened, Entry, FunctionBegan, StepSucceeded
from baton.core.log.folding.forks import fork_in
from baton.core.log.questions import Answer
from baton.core.models.messages import Message, request_bytes
from baton.core.models.usage import Price, most_of, usage_cost
from baton.core.money import MICRO
from baton.errors import EngineFault, NotAllowedNow, NotFound
from baton.ports.models import ModelAnswer, ModelRequest, Models, Over
from tests.kit.external_work import carry_out
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, HANG, LATE, STALL, THROTTLE, Crash
from tests.kit.process import Process
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.shared_limit import of_limits
from tests.kit.virtual_time import until_something_happens

if TYPE_CHECKING:
    from baton.runtime.requests.service import Service
    from tests.kit.world import World

THINKS = """
name: thinks
nodes:
  before: {tool: work, with: {n: 4}}
  think:
    agent:
      model: m
      instructions: Find a table, and pay.
      prompt: 'A table for ${ctx.before.output.n}.'
      tools: [add, work, take_table, fails_as_told, remit]
      signal: word
    after: before
    timeout: 20s
    output_schema: {type: object, required: [heard], properties: {heard: {type: array}}}
  after: {tool: work, after: think, with: {n: 5}}
output: '${ctx.think.output.heard}'
"""
SURVEYS = """
name: surveys
nodes:
  ask:
    map: {over: [1, 2, 3, 4], concurrency: 3}
    model: {name: m, prompt: 'n ${item}'}
    timeout: 20s
    output_schema: {type: object}
  after: {tool: work, after: ask, with: {n: 5}}
output: '${ctx.ask.output}'
"""
_LAST = by_turn(
    asks_for(("add", {"numbers": [1, 2]}), ("work", {"n": 1}), ("take_table", {"table": "agent"})),
    asks_for(("fails_as_told", {"n": 9, "fails": ["bad_request"]}), ("work", {"n": 2}), ("work", {"n": 1})),
    asks_for(("remit", {"amount": 300}), ("nonsense", {}), ("add", {"numbers": [3]})),
    says("That is all."),
)
STANDS_STILL_S = 3 * 86_400
"""A saga without an entry for so long stands still."""
TOO_LATE_S = 90.0
"""So long a model that hangs takes: longer than any step may."""


@dataclass(frozen=True)
class Asked:
    """A request to a model, in seconds of the loop. `bill`: the most that it may cost, and when it is answered what it has cost; `most` stays.

    `heard`: the answer, where its process lived to hear it.
    """

    at: float
    process: Process
    request: ModelRequest
    bill: list[Decimal]
    most: Decimal
    heard: list[ModelAnswer] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, str]:
        """The saga and the slot."""
        saga, _, slot, _ = self.request.key.removesuffix("/summary").rsplit("/", 3)
        return saga, slot


class ModelsOf:
    """The models as one process reaches them: it may die while they answer, and a script that raises `Crash` takes it along."""

    def __init__(self, process: Process, models: Models) -> None:
        self._process, self._models = process, models

    def price(self, model: str) -> Price | None:
        return self._models.price(model)

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        asked, fate = await self._begun("answer", request)
        try:
            answer = await self._models.answer(request)
        except Crash:
            self._process.die()
        finally:
            self._process.check()  # it may have died meanwhile
        await self._ended(fate, request.until)
        asked.bill[:] = [_cost(answer, self.price(request.model))]
        asked.heard.append(answer)
        return answer

    async def submit(self, request: ModelRequest) -> str:
        asked, fate = await self._begun("submit", request)
        try:
            response = await self._models.submit(request)
        except StepFailure:
            asked.bill[:] = [Decimal(0)]
            raise
        except Crash:
            self._process.die()
        finally:
            self._process.check()
        self._process.world.thinking[response] = asked
        await self._ended(fate, request.until)
        return response

    async def collect(self, model: str, response: str) -> ModelAnswer | None:
        process, asked = self._process, self._process.world.thinking[response]
        fate = await self._fate("collect", asked.place[0])
        answer = await self._models.collect(model, response)
        await self._ended(fate, process.clock.now())
        if answer is not None:
            process.spends.append([*asked.bill])  # it may die before it gives anything back
            asked.bill[:] = [_cost(answer, self.price(model))]
        return answer

    async def cancel(self, model: str, response: str) -> None:
        await self._fate("cancel", self._process.world.thinking[response].place[0])
        await self._models.cancel(model, response)

    async def heard(self, profile: str, headers: Mapping[str, str], body: bytes) -> Over | None:
        return await self._models.heard(profile, headers, body)

    async def _begun(self, what: str, request: ModelRequest) -> tuple[Asked, Any]:
        """The request, for which the provider may bill the most that it can cost."""
        process, world = self._process, self._process.world
        price = self.price(request.model) or Price(input=0, output=0)
        read = request_bytes(request.messages, [request.tools, request.schema])
        bill = [Decimal(most_of(price, read, request.most_output)) / MICRO]
        asked = Asked(asyncio.get_running_loop().time(), process, request, bill, bill[0])
        fate = await self._fate(what, asked.place[0])
        world.asked.append(asked)
        process.spends.append(bill)
        if fate in (STALL, FREEZE):
            process.freeze()
        if fate == HANG:
            await asyncio.sleep(TOO_LATE_S)
        return asked, fate

    async def _fate(self, what: str, saga: str) -> Any:
        """What goes wrong with a call of the provider; it may be that it is never made."""
        process, world = self._process, self._process.world
        world.starts.append((asyncio.get_running_loop().time(), process.id, saga))
        await process.thawed()
        fate = world.plan.next(what, True)
        if fate in (CRASH_BEFORE, CRASH_AFTER, HANG, LATE, STALL, FREEZE, THROTTLE):
            world.faults.append(f"{process.id}: {fate} at a model's {what}")
        if fate == CRASH_BEFORE:
            process.die()
        if fate == THROTTLE:
            raise StepFailure("rate_limited", "slow down")
        return fate

    async def _ended(self, fate: Any, until: int) -> None:
        if fate == LATE:
            await asyncio.sleep(max(until - self._process.clock.now(), 0) / 1_000 - 0.001)
        await self._process.thawed()
        if fate == CRASH_AFTER:
            self._process.die()


def _cost(answer: ModelAnswer, price: Price | None) -> Decimal:
    return Decimal(usage_cost(answer.usage, price or Price(input=0, output=0))) / MICRO


def model() -> Scripted:
    """It forgets how it has to answer until it is told, and says what it has heard."""

    def script(request: ModelRequest, number: int) -> ModelAnswer:
        answer = _LAST(request, number)
        if answer.calls or not is_corrected(request.messages[-1]):
            return answer
        heard = [one["content"] for one in request.messages if one["role"] == "tool"]
        return says(json.dumps({"heard": heard}))

    return Scripted(script, types="That is what it says.")


class Announcing(Scripted):
    """Announces what is over: every second request twice, every third late, every fourth never."""

    def __init__(self, world: World, patiently: Callable[..., Any]) -> None:
        super().__init__(model().script)
        self._world, self._patiently = world, patiently

    async def submit(self, request: ModelRequest) -> str:
        response = await super().submit(request)
        self._world.spawn(self._announce(response, len(self.requests)))
        return response

    async def _announce(self, response: str, number: int) -> None:
        await asyncio.sleep(self.thinks_s + (200 if number % 3 == 0 else 0.5))
        for _ in range(0 if number % 4 == 0 else 2 if number % 2 == 0 else 1):
            await self._patiently(self._world, lambda service: service.announced("m", {}, response.encode()))


async def ponders(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """The agent of `thinks`, whose model is asked in the background."""
    said = THINKS.replace("name: thinks", "name: ponders").replace("timeout: 20s", "timeout: 10m")
    document = said.replace("      model: m\n", "      model: m\n      background: true\n")
    return await through(world, start, patiently, Announcing(world, patiently), document, "ponders")


async def thinks(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """An agent that calls tools of every effect, one that fails, one that is none, and one that a person approves, twice.

    Its user says something while it is at work.
    """
    return await through(world, start, patiently, model(), THINKS, "thinks")


async def through(
    world: World,
    start: Callable[..., Awaitable[str]],
    patiently: Callable[..., Any],
    models: Models,
    document: str,
    name: str,
) -> str:
    world.models = models
    saga = await start(world, document, {}, name)
    with suppress(NotAllowedNow):  # it has ended
        await patiently(world, lambda service: service.signal(saga, "word", "By the window.", "w-1"))
    return await attended(world, saga, patiently)


def first_of(ask: Mapping[str, Any], answer: str) -> str:
    """Return the answer to a question that takes it; to another one, the first that it takes."""
    return answer if answer in ask["options"] else str(ask["options"][0])


async def attended(
    world: World,
    saga: str,
    patiently: Callable[..., Any],
    says: Callable[[Mapping[str, Any]], str] = lambda ask: first_of(ask, "approve"),
) -> str:
    """A person looks when the log has grown, answers every question twice, and resumes what is parked, also children."""
    known = 0
    while world.end(saga) is None and world.troubles is None and quiet_s(world, saga) < STANDS_STILL_S:
        before, known = known, len(world.entries(saga))
        view = await patiently(world, partial(shown, world, saga)) if known > before else {"questions": []}
        for ask in view["questions"] * 2:
            action = says(ask) if ask["node"] else ask["options"][0]
            said = partial(approve, saga=saga, answer=Answer(ask=ask["id"], action=action))
            with suppress(NotAllowedNow, NotFound):
                await patiently(world, said)
        for head in world.log.heads():
            if head.status == "parked" and head.ref.id != saga:
                with suppress(NotAllowedNow):
                    await patiently(world, lambda service, child=head.ref.id: service.resume(child))
        await until_something_happens(1)
    return saga


def quiet_s(world: World, saga: str) -> float:
    """Return the seconds since the newest entry of a saga was written."""
    ends = (at for (ref, _), at in world.written.items() if ref.endswith(saga))
    return asyncio.get_running_loop().time() - max(ends, default=0)


DELEGATES = """
name: delegates
nodes:
  lead:
    agent:
      model: m
      prompt: Lead.
      tools:
        - {graph: scout}
        - {graph: errand, timeout: 90d}
        - {ask: manager, options: [{id: later, default: true}, {id: yes}], expires: 90d}
        - {tool: hand_over, callback: 5m}
        - work
    timeout: 20s
  after: {tool: work, after: lead, with: {n: 5}}
output: '${ctx.lead.output}'
graphs:
  scout:
    input: {type: object, required: [n], properties: {n: {type: integer}}}
    nodes: {find: {agent: {model: m, prompt: 'Scout ${input.n}.', tools: [add]}, timeout: 20s}}
    output: '${ctx.find.output}'
  errand:
    input: {type: object, required: [n], properties: {n: {type: integer}}}
    nodes:
      rest: {wait: {for: 3s}}
      run: {tool: work, after: rest, with: {n: '${input.n}'}}
    output: '${ctx.run.output}'
"""
_SCOUTS = by_turn(asks_for(("add", {"numbers": [1, 2]})), says("Found."))
_LEADS = by_turn(
    asks_for(
        ("scout", {"n": 1}), ("errand", {"n": 2}), ("manager", {"title": "May we?"}), ("work", {"n": 3})
    ),
    asks_for(("hand_over", {"job": "quick"}), ("errand", {"n": 4}), ("errand", {"n": 2})),
    says("Done."),
)


async def delegates(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """An agent with a delegate of each kind that waits: another agent, a graph, a question, work elsewhere."""

    def script(request: ModelRequest, number: int) -> ModelAnswer:
        leads = any(one["content"] == "Lead." for one in request.messages)
        return (_LEADS if leads else _SCOUTS)(request, number)

    world.models = Scripted(script)
    saga = await start(world, DELEGATES, {}, "delegates")
    world.spawn(carry_out(world, saga, partial(patiently, world)))
    return await attended(world, saga, patiently, lambda ask: first_of(ask, "yes"))


CONVERSES = """
name: converses
nodes:
  talk:
    agent: {model: m, prompt: 'Hello.', tools: [add], conversation: {idle: 30d}, session: chat}
    timeout: 20s
  after: {tool: work, after: talk, with: {n: 5}}
output: '${ctx.talk.output}'
"""
SAID = ("one", "two", "three")


async def converses(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """A conversation to which a user says one thing, and later two at once; each is sent twice.

    The agent calls a tool for each turn of its user. It ends once it has heard all, with what it has heard.
    """

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        heard = [str(one["content"]) for one in request.messages if one["role"] == "user"][1:]
        if {*SAID} <= {*heard}:
            return asks_for(("end_conversation", {"output": " ".join(sorted(heard))}))
        if request.messages[-1]["role"] == "user" and heard:
            return asks_for(("add", {"numbers": [len(heard)]}))
        return says(f"I have heard {len(heard)}.")

    async def send(saga: str, text: str) -> None:
        for _ in range(2):
            with suppress(NotAllowedNow):  # it has heard all, and has ended
                await patiently(world, lambda service: service.say(saga, text, f"said-{text}"))

    world.models = Scripted(script)
    saga = await start(world, CONVERSES, {}, "converses")
    await asyncio.sleep(10)
    await send(saga, SAID[0])
    await asyncio.sleep(20)
    for text in SAID[1:]:
        world.spawn(send(saga, text))
    return await attended(world, saga, patiently)


async def surveys(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """A model that is asked about each item of a list, and is wrong about one of them until it is told."""

    def script(request: ModelRequest, _: int) -> ModelAnswer:
        (about,) = (one["content"] for one in uncorrected(request.messages))
        is_told = len(request.messages) > 1
        return says(json.dumps({"of": about}) if is_told or about != "n 2" else "two")

    world.models = Scripted(script)
    return await attended(world, await start(world, SURVEYS, {}, "surveys"), patiently)


async def watched(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """The same, with two viewers."""

    async def looks(saga: str) -> None:
        for _ in range(60):  # where only the reconciler is left, a saga takes hours
            if world.end(saga) is not None:
                return
            with suppress(Crash, EngineFault):
                await world.queries().live(saga)
            await asyncio.sleep(0.7)

    async def began(*arguments: Any) -> str:
        saga = await start(*arguments)
        for _ in range(2):
            world.spawn(looks(saga))
        return saga

    return await thinks(world, began, patiently)


async def shown(world: World, saga: str, _: Service) -> dict[str, Any]:
    return await world.queries().show(saga)


async def approve(service: Service, saga: str, answer: Answer) -> None:
    await service.answer(saga, answer, "k")


def of_requests(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """What is answered is not asked for again, and each request begins with all that was said before, but where that was refused as too long."""
    yield from of_limits(world, logs)
    answered = {place: at for saga, entries in logs.items() for place, at in _answered(world, saga, entries)}
    talks: dict[tuple[str, str], dict[int, list[list[Message]]]] = defaultdict(dict)
    most, refused = getattr(world.models, "most", math.inf), set[tuple[str, str]]()
    functions = set[tuple[str, str]]()
    # The user of a forked one may say something at another moment.
    forked = {saga for saga, entries in logs.items() if any(map(fork_in, entries))}
    for saga, entries in logs.items():
        yield from _paid_twice(entries)
        began = (event for entry in entries for event in entry.events if isinstance(event, FunctionBegan))
        functions.update((saga, event.slot) for event in began)
    for one in world.asked:
        saga, slot = one.place
        at, by = answered.get(one.place, (math.inf, ""))
        if one.at > at and one.process.lost_time_at == math.inf and _has_read(world, one, at, by):
            yield f"{saga}: {slot} was asked for at {one.at:.3f} s, and its answer was in the log"
        if is_of_a_summary(one.request) or saga in forked:
            continue
        owner, _, item = slot.partition("#")
        if item.isdecimal() or (saga, owner) in functions:  # one of many is asked about apart
            owner = slot
        number = item[1:] if item[1:].isdecimal() else "0"  # a plan is no turn
        said = uncorrected(one.request.messages)
        known = talks[saga, owner].setdefault(int(number), [said])
        if said not in known:
            if one.place not in refused:
                yield f"{saga}: {slot} was asked for in other words than before"
            known.append(said)
        if length_of(one.request) > most:
            refused.add(one.place)
    for (saga, owner), turns in talks.items():
        for (_, before), (turn, after) in pairwise(sorted(turns.items())):
            if after[0][: len(before[-1])] != before[-1]:
                yield f"{saga}: turn {turn} of {owner} does not begin with the messages of the turn before"


def _paid_twice(entries: list[Entry]) -> Iterator[str]:
    """Of a request that has its answer the log has what that has cost, and not what was held besides."""
    held = {
        event.callback: event.response.held
        for entry in entries
        for event in entry.events
        if isinstance(event, CallbackOpened) and event.response is not None
    }
    for entry in entries:
        for event in entry.events:
            if not isinstance(event, StepSucceeded) or event.callback not in held:
                continue
            if event.cost != sum(one.cost for one in event.usage) - held[event.callback]:
                yield f"the answer of {event.callback} was paid twice"


def _has_read(world: World, one: Asked, at: float, by: str) -> bool:
    """Return true if a worker can know of an answer: it wrote it, or has read the log since. A late entry lands behind its back."""
    reads = one.process.read_at.get(_key(world, one.place[0]), [])
    return by == one.process.id or not reads or any(at <= read <= one.at for read in reads)


def _key(world: World, saga: str) -> str:
    return str(next(head.ref for head in world.log.heads() if head.ref.id == saga))


def _answered(
    world: World, saga: str, entries: list[Entry]
) -> Iterator[tuple[tuple[str, str], tuple[float, str]]]:
    """When the answer to a turn was in the log, and by which worker; a fork may go back behind it."""
    if any(map(fork_in, entries)):
        return
    key = _key(world, saga)
    for entry in entries:
        at = world.written.get((key, entry.version), math.inf)
        for event in entry.events:
            if isinstance(event, StepSucceeded) and event.item:
                yield (saga, event.slot), (at, entry.invocation)


def uncorrected(messages: Sequence[Message]) -> list[Message]:
    """The messages without a correction and the answer that it refuses."""
    said = list(messages)
    if said and is_corrected(said[-1]):
        is_repeated = said[-2]["role"] == "assistant" and not said[-2].get("tool_calls")
        del said[-2 if is_repeated else -1 :]
    return said


def length_of(request: ModelRequest) -> int:
    """The number of messages, a correction as one."""
    return len(uncorrected(request.messages)) + is_corrected(request.messages[-1])


def is_corrected(message: Message) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith("Your last answer was refused")


def is_of_a_summary(request: ModelRequest) -> bool:
    return request.key.endswith("/summary")
