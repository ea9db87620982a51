"""Forks of the corpus's sagas at each of their entries, with nothing changed: the world outside says again what it said after the cut.

What must hold: the new branch ends as the saga had ended, by the same steps, and no effect happens again.
"""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import msgspec

from baton.core.log import events as ev
from baton.core.log.folding.forks import fork_in
from baton.core.log.folding.received import CALLBACK, FAILURE, SUCCESS, CallbackReport
from baton.core.log.questions import USE, Answer
from baton.core.log.state import ANSWER
from baton.errors import NotAllowedNow, UserError
from baton.ports import Head
from baton.runtime.requests.service import Service
from tests.kit.corpus import Scenario, patiently, shown
from tests.kit.external_work import carry_out
from tests.kit.faults import Plan
from tests.kit.patch_scenarios import patch
from tests.kit.schedule import undisturbed
from tests.kit.toolbox import Books
from tests.kit.verdict import Verdict, run
from tests.kit.virtual_time import until_something_happens
from tests.kit.world import World

QUIET_S = 20
"""Seconds without a write before the world outside says its next word."""
LONGEST_QUIET = 300
_Asks = ev.QuestionOpened | ev.StrategyChosen
END, STEPS, REPEATED = "end", "steps", "repeated"


@dataclass(frozen=True)
class Outcome:
    """End of a branch, and all that had happened outside by then."""

    end: tuple[str, Any, str]
    steps: tuple[str, ...]
    keys: frozenset[str]
    deeds: Counter[str]

    @classmethod
    def of(cls, books: Books, head: Head, log: Sequence[ev.Entry]) -> Outcome:
        entries = history_of(log)
        last = entries[-1].events[-1]
        end: tuple[str, Any, str] = (head.status, None, "")
        if isinstance(last, ev.SagaEnded):
            end = (last.status, last.output.v or last.output.ref, last.failure.code if last.failure else "")
        settled = (event for entry in entries for event in entry.events)
        steps = sorted({one.slot for one in settled if isinstance(one, ev.StepSucceeded | ev.StepFailed)})
        loans = Counter(books.loans.in_force.values())
        return cls(end, tuple(steps), frozenset(books.done), Counter(books.happened) + loans)


@dataclass
class ForkRun:
    """A saga that is forked when it has ended. `refused`: why it may not be; `before` and `after` are its outcomes."""

    scenario: Scenario
    cut: int
    refused: str = ""
    before: Outcome | None = None
    after: Outcome | None = None
    verdict: Verdict | None = None

    def differences(self) -> Iterator[str]:
        """Sentences about what is not as it was."""
        assert self.verdict is not None
        yield from self.verdict.broken
        before, after = self.before, self.after
        if before is None or after is None:
            return
        if before.end != after.end and not self.scenario.has_open_end:
            yield f"{END}: {after.end} instead of {before.end}"
        if before.steps != after.steps and self.scenario.same_steps and not self.scenario.has_open_end:
            yield f"{STEPS}: {sorted({*before.steps} ^ {*after.steps})}"
        if more := after.keys - before.keys:
            yield f"{REPEATED}: keys {sorted(more)}"
        if again := after.deeds - before.deeds:
            yield f"{REPEATED}: {dict(again)}"


def fork_at(scenario: Scenario, cut: int, number: int = 0) -> ForkRun:
    """Run the scenario to its end, fork the saga of this number at this version, and let the branch come to its end."""
    found = ForkRun(scenario, cut)
    worlds: list[World] = []

    async def drive(world: World) -> str:
        worlds.append(world)
        first = await scenario.drive(world)
        await world.settle()
        head = world.log.heads()[number]
        saga = head.ref.id
        found.before = Outcome.of(world.books, head, world.entries(saga))
        echo = Echo(world, saga, cut, is_parked=scenario.expected == "parked")
        try:
            await patiently(
                world, lambda service: service.fork(saga, cut, "nothing has changed", "unchanged")
            )
        except UserError as error:
            found.refused, found.before = str(error), None
            return first
        await echo.speak()
        return first

    found.verdict = run(replace(scenario, drive=drive), Plan())
    if found.before is not None:
        found.after = Outcome.of(worlds[0].books, *found.verdict.logs[number])
    return found


def places(scenario: Scenario) -> list[tuple[int, int]]:
    """Every entry of every saga of a scenario, as the number of its saga and its version."""
    logs = undisturbed(scenario).logs
    return [(number, entry.version) for number, (_, entries) in enumerate(logs) for entry in entries]


def history_of(entries: Sequence[ev.Entry]) -> list[ev.Entry]:
    """The entries of the newest branch and of those that it goes on from."""
    histories: dict[int, list[ev.Entry]] = {0: []}
    for entry in entries:
        fork = fork_in(entry)
        known = histories[entry.version - 1 if fork is None else fork.cut]
        histories[entry.version] = [*known, entry]
    return histories[len(entries)]


@dataclass
class Echo:
    """The world outside, which says after a fork what it had said after the cut, each thing when nothing else happens."""

    world: World
    saga: str
    cut: int
    is_parked: bool
    words: list[ev.Event] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    answers: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        log = self.world.entries(self.saga)
        cancels = (
            e
            for entry in history_of(log[: self.cut])
            for e in entry.events
            if isinstance(e, ev.CancelRequested)
        )
        later = (e for entry in log[self.cut :] if not entry.epoch for e in entry.events if _is_said(e))
        self.words = [*cancels, *later]
        done = (e for entry in log for e in entry.events if isinstance(e, ev.StepSucceeded) and not e.item)
        self.outputs = {event.node: event.output.v for event in done}
        self.answers = defaultdict(list)
        for head in self.world.log.heads():
            its = self.world.entries(head.ref.id)
            nodes = {e.ask.id: e.node for one in its for e in one.events if isinstance(e, _Asks) and e.ask}
            for entry in its:
                for event in entry.events:
                    if isinstance(event, ev.SignalReceived) and event.name == ANSWER:
                        said = event.payload.v
                        self.answers[nodes.get(said["ask"], "")].append(said)

    @cached_property
    def tokens(self) -> dict[str, str]:
        """The tokens of what was handed over before the fork, by callback."""
        known = self.world.books.jobs.all
        return {json.loads(urlsafe_b64decode(one.partition(".")[0] + "=="))["c"]: one for one in known}

    async def speak(self) -> None:
        """Say one thing after the other until there is nothing left to say."""
        jobs = asyncio.create_task(self._work() if self.world.books.jobs.all else asyncio.sleep(0))
        quiet = 0
        while quiet < LONGEST_QUIET:
            known = len(self.world.written)
            await until_something_happens(QUIET_S)
            is_quiet = len(self.world.written) == known and not await self._reply() and not await self._say()
            quiet = quiet + 1 if is_quiet else 0
            if is_quiet and self.world.end(self.saga) is not None:
                break
        jobs.cancel()

    async def _work(self) -> None:
        """Carry out what is handed over anew."""
        await carry_out(self.world, self.saga, partial(patiently, self.world), {*self.world.books.jobs.all})

    async def _reply(self) -> bool:
        """Answer an open question as it was answered, or resume what is parked."""
        for head in self.world.log.heads():
            if head.status not in ("suspended", "parked"):
                continue
            view = await shown(self.world, head.ref.id)
            for question in view["questions"]:
                if said := self._answer_to(question):
                    answer = msgspec.convert({**said, "ask": question["id"]}, Answer)
                    with suppress(UserError):
                        await self.world.service().answer(head.ref.id, answer, f"echo-{question['id']}")
                        return True
            if view["status"] == "parked" and not self.is_parked and not self.words:
                with suppress(NotAllowedNow):
                    await self.world.service().resume(head.ref.id)
                    return True
        return False

    def _answer_to(self, question: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer as it was given then; of work that is reported no more, its result as it was then."""
        node = question["node"] or ""
        if known := self.answers.get(node):
            return known.pop(0) if len(known) > 1 else known[0]
        if node in self.outputs and USE in question["options"]:
            return {"action": USE, "output": self.outputs[node]}
        return None

    async def _say(self) -> bool:
        """Say the next of the things that were said after the cut."""
        if not self.words:
            return False
        word = self.words.pop(0)
        with suppress(UserError):
            if isinstance(word, ev.GraphChanged):
                operations = word.patch and word.patch.v
                await patch(self.world, self.saga, operations, f"echo-{len(self.words)}", patiently)
            else:
                await patiently(self.world, partial(self._said, word=word, number=len(self.words)))
        return True

    async def _said(self, service: Service, word: ev.Event, number: int) -> Any:
        if isinstance(word, ev.SignalReceived) and word.name == CALLBACK:
            token = self.tokens.get(word.key)  # none: a model's provider speaks for itself
            return token and await service.callback(token, _report(word))
        if isinstance(word, ev.SignalReceived):
            return await service.signal(self.saga, word.name, word.payload.v, f"echo-{number}")
        if isinstance(word, ev.CancelRequested):
            return await service.cancel(self.saga, word.reason, word.grace_ms, undo=word.undo)
        if isinstance(word, ev.Parked):
            return await service.pause(self.saga, word.message)
        if isinstance(word, ev.Forked):
            wanted = ev.CancelRequested(
                reason="again", by="", at=0, grace_ms=0, undo=True, back_to=word.back_to
            )
            return await service.rollback(self.saga, wanted, f"echo-{number}")
        return await service.resume(self.saga, word.budget if isinstance(word, ev.Resumed) else 0)


def _report(word: ev.SignalReceived) -> CallbackReport:
    if word.failure is None:
        return CallbackReport(status=SUCCESS, output=word.payload.v)
    return CallbackReport(status=FAILURE, code=word.failure.code, message=word.failure.message)


def _is_said(event: ev.Event) -> bool:
    if isinstance(event, ev.SignalReceived):
        return event.name != ANSWER
    if isinstance(event, ev.Forked):
        return event.undo
    if isinstance(event, ev.GraphChanged):
        return bool(event.key)  # an operator migrates many sagas at once
    return isinstance(event, ev.CancelRequested | ev.Parked | ev.Resumed)
