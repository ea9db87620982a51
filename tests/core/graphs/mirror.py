"""The interpreter looks on: every event that the engine writes is held against what the interpreter says of the saga.

One event after the other, and what must stand beside it in its entry. What holds between entries is in pair.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from baton.core.log import events as ev
from tests.core.graphs.facts import Breaks, Slot, slot_name, slot_of
from tests.core.graphs.failing import ESCALATE
from tests.core.graphs.items import DONE
from tests.core.graphs.known import Outer
from tests.core.graphs.plan import Document
from tests.core.graphs.script import INPUT
from tests.core.graphs.watched import HANDLER, Watched, code_of, place_of, plain
from tests.core.graphs.world import World

STOPPED = ".stopped"
"""The end of the key of a notice that says of a step at work that it is stopped."""


class Mirror(Watched):
    """The interpreter of one saga, and what it was told of signals, questions and answers."""

    def __init__(self, document: Document, given: Any = INPUT, outer: Outer | None = None) -> None:
        super().__init__(World(document, given, outer))
        self.skipped: set[Slot] = set()
        self.queues: dict[str, list[tuple[str, Any]]] = {}
        """Signals that no wait has taken yet, by name: the key and the payload."""
        self.asks: dict[str, Slot] = {}
        """Questions that are not closed, with their slots."""
        self.known_asks: set[str] = set()
        self.answers: list[tuple[str, str, Mapping[str, Any]]] = []
        """Answers of people that the engine has not taken yet: the question, the key, what they said."""
        self.listening: set[Slot] = set()
        """The waits that have opened."""
        self.expected: list[tuple[type, Slot]] = []
        """What the next events of this entry must be, because of what is done about a failure."""

    def fork(self) -> Mirror:
        """A second one that stands where this one does."""
        twin = object.__new__(Mirror)
        self.copy_to(twin)
        twin.skipped, twin.listening = set(self.skipped), set(self.listening)
        twin.queues = {name: list(queue) for name, queue in self.queues.items()}
        twin.asks, twin.known_asks = dict(self.asks), set(self.known_asks)
        twin.answers, twin.expected = list(self.answers), list(self.expected)
        return twin

    def look_on(self, events: Sequence[ev.Event], told: set[str], now: int) -> None:
        """An entry was written at this time; `told` are the slots whose ends are in it."""
        self.world.pass_time(now)
        self.was_over = self.world.ended is not None
        for index, event in enumerate(events):
            self.world.now = getattr(event, "ended_at", now)
            if isinstance(event, ev.SagaEnded):
                self._check_end(event)
            if isinstance(event, ev.NoticeDue) and event.notice.key.endswith(STOPPED):
                # A step was cut off with its invocation, and is stopped, or its saga ends, before it could begin again; or it is
                # stopped by the end of another, before which this is said.
                self.stopping.append(slot_of(event.notice.key.partition("/0.")[2].removesuffix(STOPPED)))
            elif self.expected:
                kind, slot = self.expected.pop(0)
                place = slot if getattr(event, "notice", None) else place_of(event, slot[1])
                place = slot if isinstance(event, ev.Parked) else place
                assert (type(event), place) == (kind, slot), f"not at once: {kind} of {slot}"
            elif self.look_on_many(event, now):
                continue
            elif isinstance(event, ev.WaitOpened):
                self._listens(place_of(event))
            elif isinstance(event, ev.AttemptFailed | ev.QuestionClosed):
                self._look_on_trying(event, events[index + 1 :], now)
            elif isinstance(event, ev.Resumed):
                self.world.resume()
                self.asks = {ask: slot for ask, slot in self.asks.items() if self.is_asked(slot)}
            elif isinstance(event, ev.StrategyChosen | ev.Parked | ev.NoticeDue):
                raise AssertionError(f"unexpected: {event}")
            elif isinstance(event, ev.StepSucceeded) and self._is_late(event):
                self.world.gives_late(place_of(event), event.output.v)
            elif isinstance(event, ev.Settles) and self._is_going_on(event):
                self._look_on_nodes(event, told, now)
        assert not self.expected, f"no {self.expected} in this entry"
        self.check_rounds()

    def _is_going_on(self, event: ev.Settles) -> bool:
        """Whether what becomes of a node still matters."""
        ended = self.world.ended
        return ended is None or (isinstance(event, ev.NodeSkipped) and ended.status == "completed")

    def _is_late(self, event: ev.StepSucceeded) -> bool:
        """Whether a step was at work when its saga failed, and has given something all the same."""
        ended = self.world.ended
        return ended is not None and ended.status == "failed" and place_of(event) in self.world.open

    # ---- signals -------------------------------------------------------------------------------------------

    def _listens(self, slot: Slot) -> None:
        """A wait has opened: a fresh one loses what came before under its name."""
        assert slot in self.world.open_of("wait"), f"it is not the turn of {slot_name(slot)}"
        self.listening.add(slot)
        wait = self.world.plan.of(slot[0])["wait"]
        if wait.get("fresh"):
            self.queues.pop(wait["signal"], None)

    def comes(self, name: str, key: str, payload: Any) -> bool:
        """A signal comes. Whether it is lost: no wait for it is open, and all are fresh."""
        waits = [node["wait"] for node in self.world.plan.nodes.values() if "wait" in node]
        open_waits = [slot for slot in self.world.open_of("wait") if slot in self.listening]
        is_heard = any(self.world.plan.of(slot[0])["wait"]["signal"] == name for slot in open_waits)
        is_lost = not is_heard and all(wait.get("fresh") for wait in waits if wait["signal"] == name)
        if not is_lost:
            self.queues.setdefault(name, []).append((key, payload))
        return is_lost

    # ---- nodes ---------------------------------------------------------------------------------------------

    def _look_on_nodes(self, event: Any, told: set[str], now: int) -> None:
        world, slot = self.world, place_of(event)
        name, fate = slot_name(slot), world.became.get(slot)
        if isinstance(event, ev.NodeSkipped):
            self.skipped.add(slot)
            is_skipped = fate is not None and fate.kind == "skipped"
            # A join that fails at the same moment as another that it leads to: which was first, is unknown.
            is_skipped = is_skipped or (
                fate is not None and {error.code for error in fate.errors} == {"join_failed"}
            )
            assert is_skipped or world.is_over(slot), f"{name} is not to be skipped"
        elif not isinstance(event, ev.StepFailed):
            self._look_on_end(event, slot)
        elif isinstance(broken := self.broken(slot), Breaks):
            assert code_of(event.failure.code) == broken.code, event.failure
            world.fail(slot, broken.code, broken.attempt)
        elif slot in self.reports:
            _, code, _, again, kind = self.reports.pop(slot)
            doing = world.child_fails(slot, code, now, again=again, kind=kind)
            assert not doing, f"{name} failed, instead of {doing}"
        elif name in told:
            assert slot in world.open, f"{name} has failed, but is not open"
            assert event.attempt == world.attempt(slot)
            doing = world.attempt_fails(slot, event.failure.code, event.ended_at)
            assert not doing, f"{name} failed, instead of {doing}"
        else:
            assert fate is not None, f"{name} has not failed: {event.failure}"
            blamed = (fate.errors or fate.caught)[0].code
            assert (fate.kind, blamed) == ("failed", code_of(event.failure.code))

    def _look_on_end(self, event: Any, slot: Slot) -> None:
        world, name = self.world, slot_name(slot)
        assert slot in world.open, f"{name} was settled, but is not open"
        if isinstance(event, ev.WaitClosed):
            key, payload = self.queues[world.plan.of(event.node)["wait"]["signal"]].pop(0)
            assert (event.by, event.output.v) == (key, payload)
        if event.ends:
            assert plain(event.output.v) == plain(world.open_of("end")[slot])
            world.finish(slot)
            return
        if isinstance(event, ev.MapClosed):
            found = world.turn(slot)
            assert found is not None, f"{name} is done too early"
            assert (found.what, plain(found.value)) == (DONE, plain(event.output.v)), f"{name} gave {event}"
        if isinstance(event, ev.ChildClosed):
            status, _, value, *_ = self.reports.pop(slot)
            assert (status, event.output.v) == ("completed", value), f"{name} gave {event.output.v}"
        if isinstance(event, ev.NodePassed):
            assert plain(event.output.v) == plain(world.open[slot]), f"{name} gave {event.output.v}"
        world.settle(slot, event.output.v)

    def _check_end(self, event: ev.SagaEnded) -> None:
        end = self.world.ended
        assert end is not None, f"it ended {event} although {sorted(self.world.open)} are open"
        assert event.status == end.status, f"it ended {event}, not {end}"
        if end.status == "completed":
            assert plain(event.output.v) == plain(end.output)
        else:
            assert event.failure is not None
            assert bool(event.handler) == (HANDLER in self.graphs), f"a failure handler: {event}"
            assert (code_of(event.failure.code), event.failure.node) in self.world.failures

    # ---- attempts and questions ----------------------------------------------------------------------------

    def _look_on_trying(self, event: Any, behind: Sequence[ev.Event], now: int) -> None:
        """What is done about a failure is in the same entry as the failure, or as the end of the question."""
        world, slot = self.world, place_of(event)
        name = slot_name(slot)
        if isinstance(event, ev.AttemptFailed):
            assert event.attempt == world.attempt(slot), f"attempt {event.attempt} of {name} is not under way"
            if slot in self.reports:
                _, code, _, again, kind = self.reports.pop(slot)
                doing = world.child_fails(slot, code, now, again=again, kind=kind)
            else:
                doing = world.attempt_fails(slot, event.failure.code, event.ended_at)
            self.asks = {ask: other for ask, other in self.asks.items() if other != slot}
            assert doing, f"{name} has failed, and {behind[0]} is too much"
        else:
            assert self.asks.pop(event.ask) == slot
            if event.action != "expired":
                self._hear(event, slot)
                return
            doing = world.expires(slot, now)
        if not doing:
            self.expected = [(ev.StepFailed, slot)]
            return
        chosen, trying = behind[0], world.trying[slot]
        assert isinstance(chosen, ev.StrategyChosen), f"nothing is done about {event}"
        assert (chosen.strategy, chosen.code) == (doing, trying.code), f"{name}: {chosen}, not {doing}"
        assert (chosen.due_at, chosen.way.name if chosen.way else "") == (trying.due, trying.did[-1].way)
        self.expected = [(ev.StrategyChosen, slot)]
        if trying.asks:
            assert chosen.ask is not None
            assert chosen.ask.expires_at == trying.expires
            assert chosen.ask.id not in self.known_asks, "this was asked before"
            self.known_asks.add(chosen.ask.id)
            self.asks[chosen.ask.id] = slot
            self.expected += [(ev.NoticeDue, slot), *([(ev.Parked, slot)] if doing == ESCALATE else [])]

    def is_asked(self, slot: Slot) -> bool:
        """Whether an answer to the question about this step would be heard now."""
        trying = self.world.trying.get(slot)
        return trying is not None and trying.asks and (trying.doing == ESCALATE or not self.world.is_parked)

    def _hear(self, event: ev.QuestionClosed, slot: Slot) -> None:
        """The first answer to this very question counts, and what it comes to is in the same entry."""
        heard = next((one for one in self.answers if one[0] == event.ask), None)
        assert heard is not None, f"no person has answered {event.ask}"
        self.answers.remove(heard)
        _, key, said = heard
        assert (event.by, event.action, event.arguments) == (key, said["action"], said.get("arguments", {}))
        self.world.answer(slot, event.action, event.arguments, said.get("output"))
        ends = {"use": ev.NodePassed, "fail": ev.StepFailed}
        self.expected = [(ends[event.action], slot)] if event.action in ends else []
