"""The interpreter of a saga whose steps may be tried several times: graphs as in interpreter.py, failures as in failing.py.

A parked saga begins nothing and hears nothing until it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.core.graphs.facts import Breaks, End, Slot
from tests.core.graphs.failing import ASK, ESCALATE, Trying, after_failure, after_silence
from tests.core.graphs.interpreter import Interpreter
from tests.core.graphs.known import Outer
from tests.core.graphs.plan import Document


class World(Interpreter):
    """A saga. `trying` are the steps some of whose attempts have failed."""

    def __init__(self, document: Document, given: Any = None, outer: Outer | None = None) -> None:
        self.trying: dict[Slot, Trying] = {}
        self.is_parked = False
        self.children: dict[Slot, str] = {}
        """The ids of the children that have begun and have not been heard."""
        super().__init__(document, given, outer)

    def fork(self) -> World:
        twin = super().fork()
        assert isinstance(twin, World)
        twin.trying, twin.children = dict(self.trying), dict(self.children)
        return twin

    # ---- what the test says --------------------------------------------------------------------------------

    def attempt_fails(self, slot: Slot, code: str, now: int, cause: str = "", kind: str = "") -> str:
        """An attempt failed: what is done about it. Empty: it was the step's last word.

        `cause`: what a child has failed with, of a node with rules of its own; `kind`: of which class that is.
        """
        before = self.trying.get(slot, Trying())
        handled = self.is_handled(slot, code, before.attempts + 1)
        found = after_failure(self.plan, slot[0], before, code, now, handled=handled, cause=cause, kind=kind)
        return self._go_on(slot, code, before.attempts + 1, found)

    def child_fails(self, slot: Slot, cause: str, now: int, *, again: bool, kind: str) -> str:
        """A child failed with `cause`, and another may be started in its place (`again`). As `attempt_fails`."""
        del self.children[slot]
        if again and self.plan.of(slot[0]).keys() & {"retry", "on_failure"}:
            return self.attempt_fails(slot, "child_failed", now, cause, kind)
        self.fail(slot, "child_failed")
        return ""

    def expires(self, slot: Slot, now: int) -> str:
        """No answer came in time: what is done then. Empty: the step has failed."""
        before = self.trying[slot]
        assert before.doing == ASK
        assert before.asks
        assert now >= before.expires
        handled = self.is_handled(slot, before.code, before.attempts)
        found = after_silence(self.plan, slot[0], before, now, handled=handled)
        return self._go_on(slot, before.code, before.attempts, found)

    def answer(self, slot: Slot, action: str, arguments: Mapping[str, Any], output: Any) -> None:
        """A person has answered the question about a step."""
        before = self.trying[slot]
        assert before.asks, f"no question is open about {slot}"
        decided = len(before.did) if action == "retry" else before.decided
        arguments = {**before.arguments, **arguments}
        self.trying[slot] = replace(before, asks=False, arguments=arguments, decided=decided)
        if action == "use":
            self.settle(slot, output)
        elif action == "fail":
            self.fail(slot, before.code, before.attempts)

    def gives_late(self, slot: Slot, value: Any) -> None:
        """A step that was at work when the saga failed has ended: nothing begins any more, but its output is there."""
        del self.open[slot]
        if "#" not in slot[0]:
            self._done(slot, value)

    def resume(self) -> None:
        """A parked saga goes on: what the person on call was to decide about is tried again."""
        assert self.is_parked
        self.is_parked = False
        for slot, trying in self.trying.items():
            if trying.doing == ESCALATE:
                self.trying[slot] = replace(trying, asks=False, decided=len(trying.did))
        self._look()

    # ---- what is to be seen --------------------------------------------------------------------------------

    def attempt(self, slot: Slot) -> int:
        """The number of the attempt that is under way, or the next."""
        return self.trying.get(slot, Trying()).attempts + 1

    def given_to(self, slot: Slot) -> Any:
        """What the attempt is called with."""
        given = self.open[slot]
        assert not isinstance(given, Breaks), f"{slot} fails when it begins"
        arguments = self.trying.get(slot, Trying()).arguments
        if "graph" in self.plan.of(slot[0]) and not isinstance(given, Mapping):
            return given  # there are no fields to be changed
        return {**(given or {}), **arguments}

    def may_start(self, now: int) -> set[Slot]:
        """The children that are at work, or would be if none was yet."""
        return {
            slot
            for slot in self.open_of("child")
            if slot in self.children or (not self.is_parked and self._is_free(slot, now))
        }

    def may_run(self, now: int) -> set[Slot]:
        """The tasks that are at work, or would be if none was yet."""
        return (
            set() if self.is_parked else {slot for slot in self.open_of("task") if self._is_free(slot, now)}
        )

    def at_work(self) -> set[Slot]:
        """The tasks that may still be at work: what began before the saga was parked may end."""
        return {slot for slot in self.open_of("task") if not self.is_over(slot)}

    def _is_free(self, slot: Slot, now: int) -> bool:
        trying = self.trying.get(slot)
        return trying is None or (now >= trying.due and not trying.asks)

    def due(self, now: int) -> int | None:
        """When time alone changes something."""
        if self.is_parked or self.ended is not None:
            return None
        times = [one.expires if one.asks else one.due for one in self.trying.values()]
        times += self.rests.values()
        return min((time for time in times if time > now), default=None)

    # ---- how it goes on ------------------------------------------------------------------------------------

    def _go_on(self, slot: Slot, code: str, attempt: int, found: Trying | None) -> str:
        if found is None:
            self.fail(slot, code, attempt)
            return ""
        self.trying[slot] = found
        self.is_parked = self.is_parked or found.doing == ESCALATE
        return found.doing

    def _look(self) -> None:
        if not self.is_parked:
            super()._look()
        elif self.failures:
            self.ended = End("failed", code=self.failures[0][0], node=self.failures[0][1])
        self.trying = {slot: trying for slot, trying in self.trying.items() if slot in self.open}
        self.children = {slot: child for slot, child in self.children.items() if slot in self.open}
