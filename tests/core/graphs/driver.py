"""Carries a pair to its end: in which order steps end, how many at once, and with what bad luck.

What must hold is in pair.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from baton.core.decide.outcomes import Outcome
from baton.core.decide.spending import DEFAULT
from baton.core.log import events as ev
from tests.core.graphs.facts import slot_name, slot_of
from tests.core.graphs.pair import Pair, Told
from tests.core.graphs.plan import inner_document
from tests.core.graphs.script import Script
from tests.core.graphs.watched import HANDLER

MOST_STEPS = 600
STOPPED = 0.1
"""How often a graph of the document is stopped by an operator, and does not come to its end."""
MOST_TOLD = 60
"""Of one order of ends: a graph of six nodes has come to its end by then."""


@dataclass(frozen=True)
class Luck:
    """How one run goes: steps that end at once, room in an entry, chances of deaths, early signals, late outcomes.

    `cut`: of steps cut off by the end of their invocation; `stray`: of answers without a question.
    """

    together: int = 1
    room: int = DEFAULT.entry_bytes
    death: float = 0.0
    early: float = 0.0
    late: float = 0.0
    look: float = 0.0
    cut: float = 0.0
    stray: float = 0.0


def ending(pair: Pair, slot: str, value: Any = None, code: str = "") -> Outcome:
    """The end of the attempt that was begun last: with this value, or a failure."""
    times: dict[str, Any] = {"attempt": pair.last[slot], "started_at": pair.now, "ended_at": pair.now}
    if code:
        return Outcome(slot=slot, failure=ev.Failure(code, "it broke", slot_of(slot)[0]), **times)
    return Outcome(slot=slot, output=ev.Value(v=value), **times)


def outcome_of(pair: Pair, script: Script, slot: str) -> Outcome:
    key = slot_of(slot)
    code = script.fails(key, pair.last[slot])
    return ending(pair, slot, code=code) if code else ending(pair, slot, script.value(key))


def from_outside(pair: Pair) -> list[str]:
    """Whatever else can move the saga on: signals, answers, the decision to go on, and time."""
    if pair.world.ended is not None:
        return []
    waits = (pair.world.plan.of(slot[0])["wait"] for slot in sorted(pair.world.open_of("wait")))
    found = [f"signal {name}" for name in dict.fromkeys(wait["signal"] for wait in waits)]
    found += [f"child {slot_name(slot)}" for slot in sorted(pair.world.children)]
    found += [f"answer {ask}" for ask, slot in sorted(pair.mirror.asks.items()) if pair.mirror.is_asked(slot)]
    if pair.world.is_parked:
        found.append("resume")
    if pair.world.due(pair.now) is not None:
        found.append("time")
    return found


def happen(pair: Pair, script: Script, what: str) -> None:
    """One thing from outside, but for what the engine makes of it."""
    kind, _, name = what.partition(" ")
    draw = random.Random(f"{script.seed}?{what}/{len(pair.told)}")
    if kind == "signal":
        pair.signal(name, script.value((name, (len(pair.entries),))))
    elif kind == "resume":
        pair.resume()
    elif kind == "time":
        due = pair.world.due(pair.now)
        assert due is not None
        # Not yet, just in time, or later.
        pair.let_time_pass(due + draw.choice((-1, 0, 0, 0, 0, 5)))
    elif kind == "child":
        child_ends(pair, script, name, draw)
    else:
        said: dict[str, Any] = {"action": draw.choice(("retry", "retry", "use", "fail"))}
        if said["action"] == "retry" and draw.random() < 0.5:
            said["arguments"] = {"hint": draw.randint(0, 9)}
        if said["action"] == "use":
            said["output"] = script.value(pair.mirror.asks[name]) if name in pair.mirror.asks else None
        pair.answer(name, said)


def child_ends(pair: Pair, script: Script, name: str, draw: random.Random, late: str = "") -> None:
    """The child at this slot, or one that was there before (`late`), says how it has ended."""
    slot = slot_of(name)
    child = late or pair.world.children[slot]
    if child in pair.mirror.graphs:
        pair.report(name, child, **end_of_graph(pair, child, f"{script.seed}/{child}", draw))
        return
    code = script.fails(slot, pair.world.attempt(slot) if slot in pair.world.open else 1)
    if not code:
        pair.report(name, child, status="completed", output=ev.Value(v=script.value(slot)))
        return
    status = draw.choice(("failed", "failed", "rolled_back", "cancelled"))
    pair.report(name, child, status=status, failure=ev.Failure(code, "it broke", "inside"))


def end_of_graph(pair: Pair, child: str, seed: str, draw: random.Random) -> dict[str, Any]:
    """How a graph of the document ends, which is a saga of its own, and sees what was there when it was started."""
    if draw.random() < STOPPED:
        return {"status": "cancelled", "failure": ev.Failure("cancelled", "it was stopped")}
    inner = pair.mirror.graphs[child]
    document, program = inner_document(pair.document, inner.name), pair.graphs.program(inner.name)
    its = Pair(document, program, inner=inner, graphs=pair.graphs)
    its.go()
    script = Script(its.world.plan, seed)
    script.anywhere = draw.choice((0.0, script.anywhere, 0.5))
    carry_on(its, script, random.Random(seed), Luck(together=draw.choice((1, 3))))
    ended = its.state.ended
    assert ended is not None
    return {"status": ended.status, "output": ended.output, "failure": ended.failure}


def handled(pair: Pair, script: Script, draw: random.Random) -> None:
    """Let the failure handler run, if there is one."""
    if HANDLER in pair.mirror.graphs:
        end_of_graph(pair, HANDLER, f"{script.seed}/{HANDLER}", draw)


def carry_on(pair: Pair, script: Script, draw: random.Random, luck: Luck) -> int:
    """Let everything end that can, in any order. How many entries a check looked at."""
    looks = 0
    seen: set[str] = set()
    for _ in range(MOST_STEPS):
        if pair.world.ended is not None and not pair.running:
            handled(pair, script, draw)
            return looks
        seen |= pair.running
        outside = from_outside(pair)
        choices = [*sorted(pair.running), *outside]
        chosen = draw.sample(choices, min(len(choices), draw.randint(1, luck.together)))
        for what in chosen:
            if what in outside:
                happen(pair, script, what)
        if draw.random() < luck.early and pair.world.ended is None:
            names = [node["wait"]["signal"] for node in pair.world.plan.nodes.values() if "wait" in node]
            if names:
                happen(pair, script, f"signal {draw.choice(names)}")
        if pair.mirror.known_children and draw.random() < luck.late and pair.world.ended is None:
            known, now = pair.mirror.known_children, pair.world.children
            # Rather one that another has followed.
            followed = sorted(child for child, slot in known.items() if now.get(slot, child) != child)
            late = draw.choice(followed or sorted(known))
            child_ends(pair, script, slot_name(known[late]), draw, late)
        if draw.random() < luck.stray and pair.mirror.known_asks and pair.world.ended is None:
            happen(pair, script, f"answer {draw.choice(sorted(pair.mirror.known_asks))}")
        if pair.running and draw.random() < luck.cut and not pair.state.recovery.interruptions:
            pair.interrupt(draw.choice(sorted(pair.running)))
        outcomes = [outcome_of(pair, script, slot) for slot in chosen if slot in pair.running]
        gone = sorted(seen - pair.running)
        if gone and draw.random() < luck.late:
            outcomes.insert(draw.randint(0, len(outcomes)), outcome_of(pair, script, draw.choice(gone)))
        dies = draw.random() < luck.death
        pair.go(*outcomes, dies=dies)
        # What was lost with an invocation does not come a second time, but the first.
        if not dies and draw.random() < luck.look:
            looks += 1
            pair.check_restart()
            pair.check_twice(outcomes)
    raise AssertionError("it does not end")


def carry_on_together(pair: Pair, told: Sequence[Told], most: int) -> None:
    """Tell what was told before, in the same order, but as much of it at once as is at work by then."""
    left = list(told)
    while left:
        outcomes: list[Outcome] = []
        while left and len(outcomes) < most and left[0].what in pair.running:
            outcomes.append(left.pop(0).value)
            pair.now = max(pair.now, outcomes[-1].ended_at)
        if not outcomes:
            tell(pair, left.pop(0))
        pair.go(*outcomes)


def tell(pair: Pair, told: Told) -> None:
    """What comes from outside is an entry of its own; what is not at work any more is not told."""
    kind, _, name = told.what.partition(" ")
    pair.now = max(pair.now, told.at)
    if kind == "signal":
        pair.signal(name, told.value)
    elif kind == "answer":
        pair.answer(name, told.value)
    elif kind == "child":
        child, how = told.value
        pair.report(name, child, **how)
    elif kind == "resume" and pair.world.is_parked:
        pair.resume()


def every_order(pair: Pair, script: Script, most: int) -> Iterator[Pair]:
    """Every order in which what is at work at the same time may end, one by one, up to `most` of them."""
    stack = [pair]
    while stack and most > 0:
        here = stack.pop()
        if len(here.told) > MOST_TOLD:
            continue  # a step that always fails is decided to be tried again without an end
        if here.world.ended is not None and not here.running:
            most -= 1
            yield here
            continue
        for slot in sorted(here.running):
            twin = here.fork()
            twin.go(outcome_of(twin, script, slot))
            stack.append(twin)
        for what in from_outside(here):
            twin = here.fork()
            happen(twin, script, what)
            twin.go()
            stack.append(twin)
