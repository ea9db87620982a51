"""What a step costs the core, with 10 to 10,000 steps or rounds behind it: it must not depend on them.

Only the core: outcome in, events out, folded. No log, no adapters, no loop of events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from baton.core.conditions.model import Cel
from baton.core.decide.decide import advance
from baton.core.decide.decision import RunSteps
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.graph.graph import Graph, Loop, Node
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.state import State
from baton.core.nodes.registry import KINDS
from benchmarks.figures import Bench, Figure, Sample

LENGTHS = (10, 100, 1_000, 10_000)
MEASURED = 200
BODY = ("draft", "review", "check")


def _chain(length: int) -> Program:
    def node(i: int) -> Node:
        reads = {"n": f"${{ctx.s{i - 1}.output.n}}"} if i else {"n": 0}
        before = (f"s{i - 1}",) if i else ()
        after = (f"s{i + 1}",) if i + 1 < length else ()
        return Node(name=f"s{i}", kind="task", tool="t", before=before, after=after, arguments=reads)

    return Program(Graph(name="chain", nodes=tuple(map(node, range(length)))), KINDS)


def _loop(rounds: int) -> Program:
    """Three steps, round and round; each reads the one before it, the first what the last round gave."""
    nodes = []
    for i, name in enumerate(BODY):
        source = f"ctx.{BODY[i - 1]}.output.n" if i else f"ctx.{BODY[-1]}.previous.n"
        is_last = i == len(BODY) - 1
        again = Loop(
            condition=Cel(expression="output.n >= 0"),
            max_iterations=rounds,
            back_to=BODY[0],
            timeout_path=("end",),
        )
        nodes.append(
            Node(
                name=name,
                kind="task",
                tool="t",
                before=(BODY[i - 1],) if i else (),
                after=("end",) if is_last else (BODY[i + 1],),
                arguments={"n": f"${{{source}}}"},
                loops=(BODY[-1],),
                loop=again if is_last else None,
            )
        )
    end = Node(name="end", kind="task", tool="t", before=(BODY[-1],), arguments={})
    return Program(Graph(name="loop", nodes=(*nodes, end)), KINDS)


class _Saga:
    """A saga in the core alone."""

    def __init__(self, program: Program) -> None:
        self.program = program
        first = program.graph.nodes[0]
        start = ev.SagaStarted(
            workflow="w",
            graph="g",
            tenant="t",
            user="u",
            saga="s",
            input=ev.Value(),
            at=0,
            emits=(ev.Token("", first.name, (0,) * len(first.loops)),),
        )
        self.state = fold(State(), ev.Entry(version=1, at=0, invocation="i", events=(start,)))
        self.ready = advance(program, self.state, (), 0).decision.of(RunSteps)

    def step(self) -> None:
        """The one step that is ready succeeds, and what follows is folded."""
        assert self.ready is not None
        (run,) = self.ready.steps
        outcome = Outcome(slot=run.slot, attempt=1, started_at=0, ended_at=1, output=ev.Value(v={"n": 1}))
        step = advance(self.program, self.state, (outcome,), 1)
        entry = ev.Entry(version=self.state.version + 1, at=1, epoch=1, invocation="i", events=step.events)
        self.state = fold(self.state, codec.decode_entry(codec.encode_entry(entry)))
        self.ready = step.decision.of(RunSteps)


def _cost(program: Program, behind: int, measured: int) -> float:
    """Microseconds for each of the steps that come after `behind` others."""
    saga = _Saga(program)
    for _ in range(behind):
        saga.step()
    before = time.process_time()
    for _ in range(measured):
        saga.step()
    return (time.process_time() - before) * 1_000_000 / measured


def measure(lengths: Sequence[int] = LENGTHS, measured: int = MEASURED) -> Sample:
    sample = {}
    for length in lengths:
        sample[f"chain{length}"] = _cost(_chain(length + measured + 1), length, measured)
        rounds = length + measured
        sample[f"loop{length}"] = _cost(_loop(rounds), length * len(BODY), measured)
    return sample


_KINDS = {"chain": "finished nodes", "loop": "rounds of a loop of 3"}

BENCH = Bench(
    "decide",
    f"CPU of the core for a step, after {LENGTHS[0]} to {LENGTHS[-1]:,} others",
    {
        **{
            f"{kind}{length}": Figure(f"per step, after {length:,} {what}", "µs", digits=1, cpu=True)
            for kind, what in _KINDS.items()
            for length in LENGTHS
        },
        **{
            f"{kind} ratio": Figure(
                f"after {LENGTHS[-1]:,} {what}, against {LENGTHS[0]}",
                "×",
                1.5,
                digits=2,
                ratio=(f"{kind}{LENGTHS[-1]}", f"{kind}{LENGTHS[0]}"),
            )
            for kind, what in _KINDS.items()
        },
    },
    measure,
    runs=3,
)
