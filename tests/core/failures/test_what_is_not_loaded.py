"""A step that does not fail loads nothing of what is done about those that do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

RUN = """
import json, sys
from baton.core.decide.context import NOTHING
from baton.core.decide.decide import advance
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.graph.graph import Graph, Node
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.state import State
from baton.core.nodes.registry import KINDS

def went(outcome):
    program = Program(Graph(name="w", nodes=(Node(name="a", kind="task", tool="t"),)), KINDS)
    emits = (ev.Token("", "a", ()),)
    start = ev.SagaStarted(workflow="w", graph="g", tenant="t", user="u", saga="s", at=1, input=ev.Value(), emits=emits)
    state = apply(State(), start)
    for outcomes in ((), (Outcome(slot="a", attempt=1, started_at=1, ended_at=2, **outcome),), ()):
        for event in advance(program, state, outcomes, 3, [], NOTHING).events:
            state = apply(state, event)
    loaded = [name for name in sys.modules if name in {LATE}]
    return state.counts.steps, sorted(loaded)

print(json.dumps([went({"output": ev.Value(v=1)}), went({"failure": ev.Failure("timeout", "late", "a")})]))
"""
LATE = [
    "baton.core.decide.failure_handling",
    "baton.core.failures.matrix",
    "baton.core.failures.strategies.ladder",
    "baton.core.failures.strategies.registry",
]


@pytest.mark.no_cover
def test_what_is_done_about_failures_is_loaded_with_the_first_one() -> None:
    made = subprocess.run(
        [sys.executable, "-c", RUN.replace("{LATE}", repr(set(LATE)))],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert json.loads(made.stdout) == [[1, []], [0, LATE]]
