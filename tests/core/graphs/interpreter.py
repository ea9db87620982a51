"""A second reading of docs/semantics.md: what a graph does, given how each of its steps ends and in which order.

Shares no code with the engine, and is of another make: nothing is emitted, consumed or forgotten. It keeps what
became of every slot, which round each loop is in and how each was left, and asks from there what an edge says.
Tasks, waits and passes that are `open` end when the test says so; all that follows at once, follows in `settle`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

from tests.core.graphs.facts import Breaks, End, Error, Fate, Firing, Rounds, Slot, Word, item_of, owner_of
from tests.core.graphs.failing import class_of
from tests.core.graphs.items import Item, Run, pause_of
from tests.core.graphs.known import Outer
from tests.core.graphs.language import Broken, holds, into, render
from tests.core.graphs.mapped import Mapped
from tests.core.graphs.plan import Document, names


class Interpreter(Mapped):
    """A saga, carried on."""

    def __init__(self, document: Document, given: Any = None, outer: Outer | None = None) -> None:
        super().__init__(document, given, outer)
        self.stopped: set[Slot] = set()
        self.cancels: list[Slot] = []
        self.ended: End | None = None
        self.is_early = False
        """Whether a node has ended it before all had their turn."""
        self.failures: list[tuple[str, str]] = []
        self.now = 0
        self._look()

    # ---- what the test says --------------------------------------------------------------------------------

    def settle(self, slot: Slot, value: Any) -> None:
        """The step at `slot` ended with success."""
        del self.open[slot]
        if "#" in slot[0]:
            self._item(slot, Item(succeeded=True, value=value))
        else:
            if not self._leaves(slot):
                self._clear(slot)
            self._done(slot, value)
        self._look()

    def fail(self, slot: Slot, code: str, attempt: int = 0) -> None:
        """The step at `slot` failed: by this attempt, or without any."""
        broken = self.open.pop(slot)
        if "#" in slot[0]:
            self._item(slot, Item(succeeded=False, value=code, attempt=attempt))
        else:
            self.is_early = self.is_early or "fail" in self.plan.nodes[slot[0]]
            self._clear(slot)
            self._failed(slot, code, attempt, broken.batch if isinstance(broken, Breaks) else "")
        self._look()

    def pass_time(self, now: int) -> None:
        """It is so late now."""
        self.now = now
        if any(time <= now for time in self.rests.values()):
            self.rests = {slot: time for slot, time in self.rests.items() if time > now}
            self._look()

    # ---- maps ----------------------------------------------------------------------------------------------

    def begin_items(self, slot: Slot, count: int) -> None:
        """So many further items begin together."""
        run = self.maps[slot]
        self.maps[slot] = replace(run, begun=run.begun + count)
        for index in range(run.begun, run.begun + count):
            self._enter(item_of(slot, index))

    def map_over(self, slot: Slot) -> None:
        """All items are over that a map has left running."""
        del self.maps[slot]
        self._look()

    def finish(self, slot: Slot) -> None:
        """The end at `slot` was reached: the saga completes with its result, whatever else is under way."""
        self.is_early = True
        self.ended = End("completed", self.open[slot])

    def open_of(self, kind: str) -> dict[Slot, Any]:
        return {slot: given for slot, given in self.open.items() if self.plan.kind(slot[0]) == kind}

    def fork(self) -> Interpreter:
        """A second one that stands where this one does."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in (
            *("became", "open", "fired", "stopped", "rounds", "left", "cancels", "failures"),
            *("maps", "rests"),
        ):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    def is_over(self, slot: Slot) -> bool:
        """Whether its round is over, or a join stops it that it leads to."""
        return self.here(slot[0]) != slot[1] or self._is_rest(owner_of(slot))

    def _is_rest(self, slot: Slot) -> bool:
        name, at = slot
        for join, its in self.cancels:
            depth, rest = self.plan.rest[join]
            if name in rest and at[:depth] == its[:depth]:
                return True
        return False

    def _stop(self) -> None:
        """What is at work and not wanted any more stops. What a join stops is skipped; of a round that is over, nothing
        is said any more.
        """
        gone = [slot for slot in self.open if self.is_over(slot)]
        self.stopped.update(gone)
        for slot in gone:
            del self.open[slot]
            self.maps.pop(slot, None)
        for slot in [slot for slot, run in self.maps.items() if run.late and self.is_over(slot)]:
            del self.maps[slot]
        for slot in gone:
            if "#" not in slot[0] and self.here(slot[0]) == slot[1]:
                self._skipped(slot, ())

    def _look(self) -> None:
        """Let everything happen that follows by itself."""
        while True:
            self._stop()
            # What has been said by now is heard everywhere before anything more is said.
            found = [(slot, turn) for slot in self._waiting() if (turn := self._join(slot)) is not None]
            if not found:
                break
            for slot, turn in found:
                self._hear(slot, turn)
            for slot, turn in found:
                self._act(slot, turn)
        if self.failures:
            self.ended = End("failed", code=self.failures[0][0], node=self.failures[0][1])
        elif not self.open and not self.rests and not self.maps:
            self._complete()

    def _complete(self) -> None:
        for name in self.plan.nodes:
            if not self.plan.loops[name]:
                slot = (name, ())
                assert slot in self.became, f"{name} waits for ever"
        self.ended = End(
            "completed", render(self.plan.document.get("output"), lambda path: self.ask(("", ()), path))
        )

    # ---- joins ---------------------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[Slot]:
        for name in self.plan.order:
            at = self.here(name)
            if at is not None:
                slot = (name, at)
                if (
                    slot not in self.became
                    and slot not in self.fired
                    and (slot not in self.rests or self._is_rest(slot))
                ):
                    yield slot

    def _hear(self, slot: Slot, turn: Firing | tuple[Error, ...]) -> None:
        """The join is ready: nodes that it does not wait for any more are stopped from now on."""
        if isinstance(turn, Firing) and not self._is_rest(slot):
            self.fired[slot] = turn
            if turn.early and self.plan.join(slot[0])[2] == "cancel":
                self.cancels.append(slot)

    def _act(self, slot: Slot, turn: Firing | tuple[Error, ...]) -> None:
        if self.here(slot[0]) != slot[1]:
            return
        if isinstance(turn, tuple) or self._is_rest(slot):
            self._skipped(slot, turn if isinstance(turn, tuple) else ())
        elif turn.fails:
            self._cannot_begin(slot, "join_failed")
        else:
            self._begin(slot)

    def _join(self, slot: Slot) -> Firing | tuple[Error, ...] | None:
        """How it fires or fails, the errors with which it is skipped, or nothing yet."""
        name, at = slot
        if self._is_later_round(slot):
            return Firing()
        before = self.plan.before[name]
        if not before:
            return Firing()
        said = {source: self._says(source, name, at) for source in before}
        heard = {source: word for source, word in said.items() if word is not None}
        alive = tuple(source for source, word in heard.items() if word.alive)
        silent = len(said) - len(heard)
        blamed = {
            source: [error for error in word.errors if not self._is_rescued(error, name, alive)]
            for source, word in heard.items()
            if not word.alive
        }
        failed = [source for source, errors in blamed.items() if any(not error.by for error in errors)]
        lost = [source for source, errors in blamed.items() if errors and source not in failed]
        need, tolerated, _ = self.plan.join(name)
        newest = sorted(heard, key=lambda source: heard[source].at, reverse=True)
        errors = _each_once(error for source in newest for error in blamed.get(source, ()))
        errors = tuple(sorted(errors, key=lambda error: bool(error.by)))
        told = _each_once(
            error
            for source in newest
            for error in (heard[source].errors if source in alive else blamed[source])
            if source in alive or not need or not error.by
        )
        if tolerated is not None and len(failed) > tolerated:
            return Firing(early=silent > 0, fails=True)
        if need:
            if len(alive) >= need:
                return Firing(alive, told, early=silent > 0)
            if tolerated is not None and failed and len(alive) + silent < need:
                return Firing(early=silent > 0, fails=True)
            return None if silent else errors
        if silent:
            return None
        if tolerated is None:
            return errors if failed or lost or not alive else Firing(alive, told)
        if len(failed) + len(lost) > tolerated:
            return Firing(fails=True)
        return Firing(alive, told) if alive or failed or lost else ()

    def _is_rescued(self, error: Error, name: str, alive: Collection[str]) -> bool:
        """True if a failure that was caught is as good as none here: a live edge comes from its handlers, or from behind."""
        if error.by and any(name in self.plan.handlers(source) for source in alive):
            return True
        return any(source in self.plan.ahead[handler] for handler in error.by for source in alive)

    def _is_later_round(self, slot: Slot) -> bool:
        """Whether a header becomes ready by a back edge."""
        name, at = slot
        return any(at[len(at) - len(self.plan.headed[name]) :])

    def _says(self, source: str, name: str, at: Rounds) -> Word | None:
        """What the edge from `source` says to `name` in its rounds `at`; None: nothing yet."""
        common = self.plan.common(source, name)
        slot = self.sender(source, name, at)
        fate = self.became.get(slot)
        if len(self.plan.loops[source]) > common:
            leaver = self.left.get((self.plan.loops[source][common], at[:common]))
            if leaver is None:
                return None
            if leaver != slot:
                its = self.became[leaver]
                errors = its.errors or its.caught
                errors = errors if all(error.by for error in errors) else ()
                return self._dead(source, name, errors, leaver)
        if fate is None or fate.again:
            return None
        errors = fate.errors or fate.caught
        if name in fate.to:
            return Word(alive=True, errors=errors, at=[*self.became].index(slot))
        return self._dead(source, name, errors, slot)

    def _dead(self, source: str, name: str, errors: Iterable[Error], by: Slot) -> Word:
        """A caught failure loses no edge that is only there for when its sender fails. `by`: the slot that speaks."""
        is_handler = name in self.plan.handlers(source)
        errors = tuple(error for error in errors if not (is_handler and error.by))
        return Word(alive=False, errors=errors, at=[*self.became].index(by))

    def _begin(self, slot: Slot) -> None:
        node = self.plan.nodes[slot[0]]
        try:
            if "when" in node and not holds(node["when"], lambda path: self.ask(slot, path)):
                self._skipped(slot, ())
                return
        except Broken:
            self._cannot_begin(slot, "condition")
            return
        self._enter(slot)

    def _enter(self, slot: Slot) -> None:
        node, kind = self.plan.of(slot[0]), self.plan.kind(slot[0])
        try:
            if kind == "map":
                said = node["map"]
                over = render(said["over"], lambda path: self.ask(slot, path))
                self.open[slot] = over if isinstance(over, list) else Breaks("map_invalid")
                if isinstance(over, list):
                    self.maps[slot] = Run(over)
                return
            if "fail" in node:
                self.open[slot] = Breaks(node["fail"]["code"])
                return
            if "end" in node:
                self.open[slot] = render(node["end"].get("result"), lambda path: self.ask(slot, path))
                return
            given = node.get("with") if kind in ("task", "child") else node.get("value")
            if (
                "graph" in node
            ):  # of several things that it may be given, the input of its starter is the last
                given = node.get("input", node.get("with", "${input}"))
            self.open[slot] = render(given, lambda path: self.ask(slot, path))
        except Broken:
            self.open[slot] = Breaks("input_unbound")

    def _cannot_begin(self, slot: Slot, code: str) -> None:
        """It fails before it begins. Where that is caught, it is a beginning itself, and waits for what is skipped."""
        if self.is_caught(slot, code):
            self.open[slot] = Breaks(code)
        else:
            self._failed(slot, code)

    # ---- what becomes of a slot ----------------------------------------------------------------------------

    def _done(self, slot: Slot, value: Any) -> None:
        name, at = slot
        node = self.plan.nodes[name]

        def ask(path: tuple[str, ...]) -> Any:
            return into(value, path[1:]) if path[0] == "output" else self.ask(slot, path)

        try:
            if "loop" in node and holds(node["loop"]["while"], ask):
                if at[-1] + 1 < node["loop"]["max_iterations"]:
                    self.became[slot] = Fate("done", value, again=True)
                    self.rounds[(name, at[:-1])] = at[-1] + 1
                    header = self.plan.header(name)
                    if pause := pause_of(node["loop"], at[-1]):
                        self.rests[header, self.here(header) or ()] = self.now + pause
                    return
                to = set(names(node["loop"].get("timeout_path")))
                if not to:
                    self._failed(slot, "poll_exhausted" if "poll" in node else "loop_exhausted")
                    return
            else:
                to = self._ways(name, ask)
        except Broken:
            self._failed(slot, "condition")
            return
        self.became[slot] = Fate("done", value, frozenset(to))
        self._leave(slot, to)

    def _ways(self, name: str, ask: Any) -> set[str]:
        node = self.plan.nodes[name]
        branch = node.get("branch", {})
        loop = node.get("loop", {})
        conditional = self.plan.targets(name)
        conditional |= set(names(loop.get("timeout_path"))) - set(names(loop.get("break_path")))
        chosen: Any = None
        if "choose" in branch:
            chosen = ask(tuple(branch["choose"].split(".")))
            if chosen and not set(names(chosen)) <= set(names(branch["among"])):
                raise Broken(str(chosen))
        else:
            chosen = next((rule["then"] for rule in branch.get("rules", ()) if holds(rule["if"], ask)), None)
        to = set(names(chosen) or names(branch.get("default")))
        conditional |= self.plan.handlers(name)
        return to | {target for target in self.plan.after[name] if target not in conditional}

    def _leave(self, slot: Slot, to: set[str]) -> None:
        """Leave the loops that the alive edges lead out of; a tail that comes here leaves its own."""
        name, at = slot
        depth = min([self.plan.common(name, target) for target in to], default=len(at))
        if "loop" in self.plan.nodes[name]:
            depth = min(depth, len(at) - 1)
        if depth < len(at):
            self.left[(self.plan.loops[name][depth], at[:depth])] = slot
        self.rests = {other: time for other, time in self.rests.items() if self.here(other[0]) == other[1]}

    def _skipped(self, slot: Slot, errors: tuple[Error, ...]) -> None:
        self.became[slot] = Fate("skipped", errors=errors)
        self.rests.pop(slot, None)
        self._leave(slot, set())

    def _failed(self, slot: Slot, code: str, attempt: int = 0, batch: str = "") -> None:
        error = Error(slot[0], code, class_of(code), attempt, batch=batch)
        to = self.caught(slot, error)
        if to is not None:
            self.became[slot] = Fate("failed", to=to, caught=(replace(error, by=to),))
            self._leave(slot, set(to))
            return
        if slot[0] not in self.plan.tolerated:
            # What fails at the same moment may be the first as well: nothing says which.
            self.failures.append((code, slot[0]))
            self.became[slot] = Fate("failed", to=frozenset(), again=True)
            return
        self.became[slot] = Fate("failed", errors=(error,))
        self._leave(slot, set())


def _each_once(errors: Iterable[Error]) -> tuple[Error, ...]:
    return tuple(dict.fromkeys(errors))
