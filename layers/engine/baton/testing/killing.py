"""Death of a worker at a step that a test chooses, with all effects to come. deployment.py delivers again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar

import msgspec

from baton.core.log.slots import Slot, slot_of
from baton.ports import HeldMoney, HoldRequest, Offload, Performer, StepContext, UnitLog
from baton.ports.process import Draft
from baton.testing.operations import FunctionNodes, is_label
from baton.tools.define import Registry

P = ParamSpec("P")
T = TypeVar("T")
BEFORE, DURING, AFTER = MOMENTS = ("before", "during", "after")
UNDO = "#undo"
"""Behind a place, names the call of its inverse."""
UNIT = ": "
"""Stands between a place and the name of a unit of its tool's journal."""
LAST_S = 60.0  # virtual seconds that tools have which do not let themselves be cancelled
Moments = Mapping[str, str | Sequence[str]]


class Killed(BaseException):
    """Death of a process. Code of the process must not catch it: it is no ordinary exception."""


class Kills:
    """Calls at which a worker dies: by node, `NODE@ROUND`, operation, or with `#undo` for its inverse, the
    moments. `NODE: UNIT` is a unit of the tool's journal there.
    """

    def __init__(
        self,
        moments: Mapping[str, Sequence[str]],
        tools: Mapping[str, Collection[str]],
        functions: FunctionNodes,
    ) -> None:
        self._left = {place: list(its) for place, its in moments.items()}
        self._tools, self._functions = tools, functions
        self._process = _Process()
        self.has_units = any(UNIT in place for place in moments)

    def left(self) -> list[str]:
        """Return the places where a worker was to die and did not."""
        return [place for place, moments in self._left.items() if moments]

    def at(self, tool: str, context: StepContext) -> str:
        """Return the moment of this call at which the worker dies, empty if it does not."""
        of_item = slot_of(context.node, context.iteration, context.item)
        if Slot.parse(of_item).scope:
            named = [place.removesuffix(UNDO) for place in self.left() if place.endswith(UNDO)]
            label = self._functions.named(named, of_item)
            moments = self._left.get(of_item) or self._left.get(f"{label}{UNDO}")
            return moments.pop(0) if moments else ""
        if tool not in self._tools.get(context.node, ()):
            return ""
        of_round = slot_of(context.node, context.iteration)
        for place in (of_round, self._functions.named(self.left(), of_item) or context.node):
            if moments := self._left.get(place):
                return moments.pop(0)
        return ""

    def at_unit(self, context: StepContext, unit: str) -> str:
        """Return the moment of this unit at which the worker dies, empty if it does not."""
        of_item, end = slot_of(context.node, context.iteration, context.item), f"{UNIT}{unit}"
        named = [place.removesuffix(end) for place in self.left() if place.endswith(end)]
        of_round = slot_of(context.node, context.iteration)
        for place in (of_item, of_round, self._functions.named(named, of_item) or context.node):
            if moments := self._left.get(place + end):
                return moments.pop(0)
        return ""

    async def die(self) -> None:
        """End the process. Never returns."""
        await self._process.die()

    def die_here(self) -> NoReturn:
        """End the process in code that cannot wait. Raises `Killed`."""
        self._process.died.set()
        raise Killed

    async def live(self, work: Callable[[Offload], Coroutine[Any, Any, T]]) -> T | None:
        """Return the result of a process's work, whose port calls use an `Offload`; None if it died."""
        before = asyncio.all_tasks()
        self._process = process = _Process()
        task = asyncio.create_task(work(process.offload))
        died = asyncio.create_task(process.died.wait())
        await asyncio.wait([task, died], return_when=asyncio.FIRST_COMPLETED)
        if not process.died.is_set():
            died.cancel()
            return task.result()
        rest = asyncio.all_tasks() - before
        for one in rest:
            one.cancel()
        if rest:
            await asyncio.wait(rest, timeout=LAST_S)
        for one in {task, *rest, *process.tasks}:
            with suppress(asyncio.InvalidStateError, asyncio.CancelledError):
                one.exception()  # it is known why; otherwise the loop would report it
        return None


class _Process:
    """A process that may die. `tasks` have made port calls."""

    def __init__(self) -> None:
        self.died = asyncio.Event()
        self.tasks: set[asyncio.Task[Any]] = set()

    async def die(self) -> None:
        self.died.set()
        await asyncio.get_running_loop().create_future()

    async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if (task := asyncio.current_task()) is not None:
            self.tasks.add(task)
        if self.died.is_set():
            raise Killed
        return function(*args, **kwargs)


class MortalPerformer:
    """Performer that calls tools as `inner` does, in a worker that dies at some of the calls."""

    def __init__(self, inner: Performer, kills: Kills) -> None:
        self._inner, self._kills = inner, kills

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if self._kills.has_units and context.units is not None:
            units = partial(_MortalUnits, context.units, self._kills, context)
            context = msgspec.structs.replace(context, units=units)
        moment = self._kills.at(tool, context)
        if moment == BEFORE:
            await self._kills.die()
        call = self._inner.perform(tool, arguments, context)
        if moment == DURING:
            asyncio.create_task(call)  # noqa: RUF006  # it goes with the process
            await asyncio.sleep(0)  # the call goes on until it waits for the first time
            await self._kills.die()
        try:
            return await call
        except asyncio.CancelledError:
            moment = ""  # its time was over, or its process is gone
            raise
        finally:
            if moment == AFTER:
                await self._kills.die()


class _MortalUnits:
    """The `UnitLog` of a call whose worker dies at some of the units."""

    def __init__(self, make: Callable[[], UnitLog], kills: Kills, context: StepContext) -> None:
        self._inner, self._kills, self._context = make(), kills, context
        self._moments: dict[str, str] = {}

    @property
    def has_units(self) -> bool:
        return self._inner.has_units

    def recorded(self) -> Mapping[str, Any]:
        return self._inner.recorded()

    def check(self, name: str) -> None:
        self._inner.check(name)
        moment = self._moments[name] = self._kills.at_unit(self._context, name)
        if moment == BEFORE:
            self._kills.die_here()

    async def record(self, name: str, key: str, result: Any) -> None:
        if self._moments.pop(name, "") == AFTER:
            await self._kills.die()
        await self._inner.record(name, key, result)

    async def hold(self, asked: HoldRequest) -> HeldMoney:
        return await self._inner.hold(asked)

    def draft(self) -> AbstractContextManager[Draft]:
        return self._inner.draft()


def moments_of(given: Moments) -> dict[str, tuple[str, ...]]:
    """Return the moments of calls by place. Raises `ValueError` for invalid moments."""
    if not isinstance(given, Mapping):
        raise ValueError('kills: write moments by node, such as {"charge": "after"}')
    found = {}
    for place, said in given.items():
        moments = (said,) if isinstance(said, str) else tuple(said)
        known = f"there are: {', '.join(MOMENTS)}"
        if not moments:
            raise ValueError(f"kill at `{place}`: it says no moment; {known}")
        if strange := [moment for moment in moments if moment not in MOMENTS]:
            raise ValueError(f"kill at `{place}`: `{strange[0]}` is no moment of a step; {known}")
        if UNIT in place and DURING in moments:
            raise ValueError(f"kill at `{place}`: write `{BEFORE}` or `{AFTER}` the unit")
        found[place] = moments
    return found


def node_at(place: str) -> str:
    """Return the node or the operation of a place. Raises `ValueError` for an invalid round."""
    place = place.partition(UNIT)[0]
    if is_label(label := place.removesuffix(UNDO)):
        return label
    try:
        return Slot.parse(place).node
    except ValueError as error:
        text = "write a node, or one of its rounds as NODE@ROUND, counted from 0"
        raise ValueError(f"kill at `{place}`: {text}") from error


def check_kills(
    moments: Mapping[str, Sequence[str]],
    tools: Mapping[str, Collection[str]],
    registry: Registry,
    inverses: Mapping[str, Collection[str]],
) -> None:
    """Raise `ValueError` for a kill that could never occur.
    `tools` are those that each node calls, `inverses` those that undo it.
    """
    for place, its in moments.items():
        node = node_at(place)
        if node not in tools:
            continue  # an operation of a function, whose tool only the function knows
        of_step = place.partition(UNIT)[0]
        is_undone = not is_label(of_step) and bool(Slot.parse(of_step).scope)
        named = inverses.get(node, ()) if is_undone else tools[node]
        if not named and is_undone:
            raise ValueError(f"kill at `{place}`: nothing undoes `{node}`")
        if not named:
            raise ValueError(f"kill at `{place}`: it calls no tool, and a worker dies at the call of one")
        plain = [name for name in named if name in registry and not registry[name].is_async]
        if DURING in its and plain:
            raise ValueError(
                f"kill at `{place}`: `{plain[0]}` is a plain function, which a test cannot stop in the middle; "
                f"write `{BEFORE}` or `{AFTER}`, or give an `async` stand-in"
            )
