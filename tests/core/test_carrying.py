"""Another graph for a saga that runs: what is refused, and that what is not refused ends as it should."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.conditions.model import Compare
from baton.core.decide.carrying import carry_problems, dropped_outputs, still_to_run
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.failures.alternatives import Alternative
from baton.core.graph.graph import Cap, Join, Loop, Undo
from baton.core.log import events as ev
from baton.core.log.state import EarlierGraph, Used
from baton.core.nodes.registry import KINDS
from tests.core import compiling
from tests.core.asked import steps_of
from tests.core.build import PROPERTY, T0, Saga, done, program, ready, task, wait
from tests.core.compiling import document
from tests.core.nodes.thinking import answered, call, thinking
from tests.core.reference import Shape, Spot, shapes
from tests.core.test_random_graphs import TOOLS, Run
from tests.history.make import SHAPES
from tests.kit.sentences import Says


def changed(graph: str = "other", **more: Any) -> ev.GraphChanged:
    return ev.GraphChanged(graph=graph, workflow="w", by="ada", at=T0, **more)


def patch(saga: Saga, new: Program, **more: Any) -> None:
    """The saga goes on with another graph, whether it may or not."""
    saga.put(changed(counts=new.counts, **more), epoch=0, invocation="api")
    saga.program = new


def told(saga: Saga, new: Program, *, may_run: bool = True, **more: Any) -> list[list[str]]:
    """Each problem, with its place and its remedy."""
    found = carry_problems(saga.state, saga.program, new, may_run=may_run, **more)
    return [[one.path, one.message, one.suggestion] for one in found]


def test_a_graph_that_has_changed_a_hundred_times_changes_no_more(says: Says) -> None:
    saga = Saga(program(task("a")))
    for _ in range(100):
        assert told(saga, program(task("a"), task("b"))) == []
        patch(saga, saga.program)
    says(told(saga, program(task("a"), task("b"))))
    assert told(saga, saga.program) == [], "the same graph is no change"


# ---- any graph ---------------------------------------------------------------------------------------------


@given(shapes(), st.data())
@PROPERTY
def test_the_same_graph_carries_any_saga(shape: Shape, data: st.DataObject) -> None:
    run = Run(shape)
    while not run.reference.is_over:
        assert told(run.saga, run.saga.program) == []
        assert dropped_outputs(run.saga.state, run.saga.program, run.saga.program) == {}
        run.settle([data.draw(st.sampled_from(sorted(run.reference.open)))])


@st.composite
def other_shapes(draw: st.DrawFn, shape: Shape) -> Shape:
    """The shape with nodes added, dropped, and led to otherwise."""
    spots = list(_in_order(shape))
    for _ in range(draw(st.integers(1, 3))):
        names = [spot.name for spot in spots]
        at = draw(st.integers(0, len(spots) - 1)) if spots else 0
        match draw(st.sampled_from(("insert", "insert", "drop", "edge", "read"))) if spots else "insert":
            case "insert":
                name = f"x{len(spots)}{draw(st.integers(0, 9))}"
                if name in names:
                    continue
                before = draw(st.lists(st.sampled_from(names[:at]), unique=True, max_size=2)) if at else []
                spots.insert(at, Spot(name, "task", tuple(before), ()))
                for index in range(at + 1, len(spots)):
                    if draw(st.booleans()):
                        spots[index] = _led(spots[index], name)
                        break
            case "drop":
                gone = spots.pop(at).name
                spots = [Spot(s.name, s.kind, _less(s.before, gone), _less(s.reads, gone)) for s in spots]
            case "edge" if at:
                src = names[draw(st.integers(0, at - 1))]
                spots[at] = (
                    Spot(spots[at].name, spots[at].kind, _less(spots[at].before, src), spots[at].reads)
                    if src in spots[at].before
                    else _led(spots[at], src)
                )
            case _:
                pass
    spots = _readable(spots, draw)
    names = [spot.name for spot in spots]
    output = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
    return Shape(tuple(spots), tuple(output))


def _less(names: tuple[str, ...], gone: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != gone)


def _led(spot: Spot, src: str) -> Spot:
    return Spot(spot.name, spot.kind, (*spot.before, src), spot.reads)


def _in_order(shape: Shape) -> list[Spot]:
    order: list[Spot] = []
    while len(order) < len(shape.spots):
        known = {spot.name for spot in order}
        order += [s for s in shape.spots if s.name not in known and known >= set(s.before)]
    return order


def _readable(spots: list[Spot], draw: st.DrawFn) -> list[Spot]:
    """Reads of what has surely run before, old ones and some new ones."""
    ancestors: dict[str, set[str]] = {}
    found = []
    for spot in spots:
        ancestors[spot.name] = set(spot.before).union(*(ancestors[name] for name in spot.before))
        reads = [name for name in spot.reads if name in ancestors[spot.name]]
        rest = sorted(ancestors[spot.name] - set(reads))
        if rest and spot.kind != "wait" and draw(st.booleans()):
            reads.append(draw(st.sampled_from(rest)))
        found.append(Spot(spot.name, spot.kind, spot.before, tuple(reads)))
    return found


@given(shapes(), st.data())
@PROPERTY
def test_a_graph_that_is_not_refused_ends_as_if_it_had_been_there_all_the_time(
    shape: Shape, data: st.DataObject
) -> None:
    """No stuck token, nothing twice, and every step gets the values that its document names."""
    run = Run(shape)
    for _ in range(data.draw(st.integers(0, 4))):
        if not run.reference.is_over:
            run.settle([data.draw(st.sampled_from(sorted(run.reference.open)))])
    if run.reference.is_over:
        return
    other = data.draw(other_shapes(run.shape))
    if not other.spots:
        return
    new = Program(compile_document(other.text(), TOOLS), KINDS)
    if carry_problems(run.saga.state, run.saga.program, new, may_run=True):
        return
    values, passed = run.reference.values, _never(run, other)
    outputs = {
        name: ev.Value(v=values[old])
        for old, name in dropped_outputs(run.saga.state, run.saga.program, new).items()
    }
    patch(run.saga, new, outputs=outputs)
    rest = tuple(spot for spot in other.spots if spot.name not in passed)
    run.shape = run.reference.shape = Shape(rest, other.output)
    names = {spot.name for spot in rest}
    run.reference.values = {name: value for name, value in values.items() if name in names}
    run.started = {name: step for name, step in run.started.items() if name in names}
    run.look()
    while run.reference.open:
        assert run.running == run.reference.open_of("task")
        run.settle([data.draw(st.sampled_from(sorted(run.reference.open)))])
    result = run.reference.result
    assert run.saga.state.ended == ev.SagaEnded(status="completed", output=ev.Value(v=result))


def _never(run: Run, other: Shape) -> set[str]:
    """The new nodes whose places the saga has passed."""
    known = {spot.name for spot in run.shape.spots}
    over = set(run.reference.values)
    for spot in _in_order(other):
        if spot.name not in known and over >= set(spot.before):
            over.add(spot.name)
    return over - known


# ---- nodes that something has come to ----------------------------------------------------------------------


def chain_of(*names: str, **more: Any) -> Program:
    """One node after the other; `more` has fields of some of them."""
    nodes = [
        replace(task(name, *(names[index - 1 : index])), **more.get(name, {}))
        for index, name in enumerate(names)
    ]
    return program(*nodes)


def at_b() -> Saga:
    saga = Saga(chain_of("a", "b", "c"))
    saga.go(done("a"))
    return saga


def test_what_is_to_come_may_change_in_any_way() -> None:
    new = chain_of("a", "b", "x", "d", x={"kind": "wait", "signal": "ok"})
    assert still_to_run((saga := at_b()).state, saga.program, new) == {"b", "x", "d"}
    assert told(at_b(), new) == []


SHAPE_NAMES = sorted(SHAPES.keys() - {"undone-aside", "rounds"})  # that no engine has written


@pytest.mark.parametrize("shape", SHAPE_NAMES)
def test_the_same_graph_carries_every_state_of_every_stored_log(shape: str) -> None:
    saga = SHAPES[shape]()
    for state in saga.states[1:]:
        if state.graphs or state.ended is not None or state.undo.work is not None:
            continue
        for may_run in (True, False):
            assert carry_problems(state, saga.program, saga.program, may_run=may_run) == ()


def test_a_node_that_something_has_come_to_stays(says: Says) -> None:
    says(told(at_b(), chain_of("a", "c"))[0])


def test_it_stays_of_its_kind(says: Says) -> None:
    new = chain_of("a", "b", "c", b={"kind": "pass"})
    says(told(at_b(), new))


def test_it_stays_in_its_loops(says: Says) -> None:
    loop = Loop(condition=Compare(left=1, operator="==", right=1), max_iterations=3, back_to="b")
    new = chain_of("a", "b", "c", b={"loop": loop, "loops": ("b",)})
    says(told(at_b(), new))


LOOP = "{while: 'loop.iteration < 1', max_iterations: 3, back_to: %s}"


def compiled(nodes: str) -> Program:
    return Program(compile_document(document(nodes), compiling.TOOLS), KINDS)


ROUND = f"o: {{}}, h: {{after: o}}, b: {{after: h}}, t: {{after: b, loop: {LOOP % 'h'}}}"


@pytest.mark.parametrize(
    "nodes",
    [
        f"o: {{}}, h: {{after: o}}, b: {{after: h}}, t: {{after: b, loop: {LOOP % 'b'}}}",
        f"o: {{}}, h: {{after: o}}, b: {{after: h}}, t: {{after: b, loop: {LOOP % 'o'}}}",
        "o: {}, h: {after: o}, b: {after: h}, t: {after: b}",
        f"o: {{}}, h: {{after: o}}, x: {{after: h}}, b: {{after: x}}, t: {{after: b, loop: {LOOP % 'h'}}}",
    ],
)
def test_a_loop_under_way_gets_and_loses_no_node_of_the_graph(nodes: str, says: Says) -> None:
    """Its end speaks for the edges out of it: for those of a node that has spoken it would do so twice."""
    saga = Saga(compiled(ROUND))
    saga.go(done("o"))
    saga.go(done("h@0"))
    says(told(saga, compiled(nodes)))


def test_what_a_loop_under_way_leads_to_is_to_come() -> None:
    """Also from its nodes that have ended in this round: that edge speaks with the end of the loop."""
    branch = "branch: {rules: [{if: output.score > 1, then: z}], default: t}"
    nodes = "o: {}, y: {}, h: {after: o, %s}, t: {loop: %s}, z: {%s}"
    saga = Saga(compiled(nodes % (branch, LOOP % "h", "")), dead=())
    saga.go(done("o"), done("y"))
    saga.go(done("h@0", {"score": 0}))
    assert [path for path, *_ in told(saga, compiled(nodes % (branch, LOOP % "h", "after: y")))] == [
        "/nodes/z"
    ]


def test_a_later_round_reads_what_is_there() -> None:
    saga = Saga(compiled(ROUND))
    saga.go(done("o"))
    saga.go(done("h@0"))
    read = "h: {after: x, with: {x: '${ctx.x.output}'}}"
    new = compiled(ROUND.replace("h: {after: o}", f"x: {{after: o}}, {read}"))
    assert [path for path, *_ in told(saga, new)] == ["/nodes/h"]
    assert dropped_outputs(
        saga.state,
        saga.program,
        compiled(ROUND.replace("h: {after: o}", "h: {after: o, with: {x: '${ctx.o.output}'}}")),
    ) == {"o": "o"}


def test_what_may_run_keeps_its_work_until_the_saga_is_held_back(says: Says) -> None:
    new = chain_of(
        "a", "b", "c", b={"arguments": {"x": 1}, "tool": "u", "output_schema": {}, "timeout_ms": 5}
    )
    says(told(saga := at_b(), new))
    assert told(saga, new, may_run=False) == []


def test_rules_for_failures_limits_and_the_inverse_may_always_change() -> None:
    new = chain_of("a", "b", "c", b={"timeout_ms": 5, "output_schema": {}, "stays": True, "cost": 3})
    assert told(at_b(), new) == []


def test_a_step_that_may_have_acted_keeps_its_work(says: Says) -> None:
    saga = Saga(chain_of("a", "b", b={"effect": "once"}))
    saga.go(done("a"))
    saga.put(ev.Revived(dead="i1", dead_epoch=1, dead_until=T0, at=T0))
    saga.put(ev.StepInterrupted(node="b", started_at=T0, ended_at=T0, budget_ms=1))
    says(told(saga, chain_of("a", "b", b={"tool": "u"}), may_run=False))


def failing(**more: Any) -> Saga:
    """`b` has failed once, and waits for its next attempt."""
    saga = at_b()
    failure = ev.Failure("tool_error", "it broke", "b")
    fields: dict[str, Any] = {"tool": "t", "tool_version": "1", "schema_hash": ""}
    saga.put(
        ev.AttemptFailed(node="b", attempt=1, failure=failure, started_at=T0, ended_at=T0, **fields),
        ev.StrategyChosen(node="b", strategy="retry", code="tool_error", at=T0, due_at=T0 + 9, **more),
    )
    return saga


def test_a_step_that_has_failed_without_effect_may_get_another_tool() -> None:
    assert told(failing(), chain_of("a", "b", b={"tool": "u"}), may_run=False) == []


def test_a_change_that_would_not_count_is_refused(says: Says) -> None:
    new = chain_of("a", "b", b={"arguments": {"x": 1}})
    says(told(failing(arguments={"x": 2}), new, may_run=False))
    says(told(failing(way=Alternative(name="u", tool="u")), new, may_run=False))


def waiting() -> Saga:
    saga = Saga(program(task("a"), wait("w", "a", signal="ok")))
    saga.go(done("a"))
    return saga


def test_work_that_is_open_keeps_what_it_has_begun_with(says: Says) -> None:
    new = program(task("a"), wait("w", "a", signal="other", ms=5))
    says(told(waiting(), new, may_run=False))


def test_an_agent_gets_other_tools_for_its_next_turn_and_keeps_the_calls_of_this_one(says: Says) -> None:
    saga = thinking()
    saga.go(answered("a#t1", call("look", n=1)))
    assert told(saga, thinking(tools="[look]").program) == []
    says(told(saga, thinking(tools="[roll]").program))


# ---- edges -------------------------------------------------------------------------------------------------


def joined() -> Saga:
    """`b` is done, `c` runs, `d` waits for both."""
    saga = Saga(program(task("a"), task("b", "a"), task("c", "a"), task("d", "b", "c")))
    saga.go(done("a"))
    saga.go(done("b"), running=["c"])
    return saga


def test_an_edge_that_has_spoken_stays(says: Says) -> None:
    new = program(task("a"), task("b", "a"), task("c", "a"), task("d", "c"))
    says(told(joined(), new))


def test_nothing_waits_for_a_node_that_does_not_run_any_more(says: Says) -> None:
    new = program(task("a"), task("b", "a"), task("c", "a"), task("n", "a"), task("d", "b", "c", "n"))
    says(told(joined(), new))


def test_a_join_gets_an_edge_from_what_is_to_come() -> None:
    new = program(task("a"), task("b", "a"), task("c", "a"), task("n", "c"), task("d", "b", "c", "n"))
    assert told(joined(), new) == []


def test_nothing_runs_twice(says: Says) -> None:
    new = program(task("a"), task("c", "a"), task("b", "c"), task("d", "b", "c"))
    says(told(joined(), new))


def test_an_edge_into_what_has_begun_comes_too_late(says: Says) -> None:
    saga = Saga(program(task("a"), task("b")))
    new = program(task("a"), task("b", "a"))
    says(told(saga, new))


def test_what_is_to_come_still_comes(says: Says) -> None:
    saga = Saga(program(task("a"), wait("w"), task("b", "a")))
    new = program(task("a"), wait("w"), task("b"))
    says(told(saga, new))


def test_nothing_reads_what_never_runs(says: Says) -> None:
    saga = at_b()
    late = {"x": "${ctx.n.output}"}
    new = program(
        task("a"), task("n", "a"), task("b", "a"), task("c", "b", arguments=late), output="${ctx.n.output}"
    )
    says(told(saga, new))


def fired() -> Saga:
    """`d` needs one of two, and has fired; `c` still runs."""
    join = Join(need=1, rest="run")
    saga = Saga(program(task("a"), task("b"), task("c"), task("d", "b", "c", join=join), task("e", "d")))
    saga.go(done("b"), running=["a", "c"])
    return saga


def test_a_join_that_has_fired_keeps_its_edges(says: Says) -> None:
    join = Join(need=1, rest="run")
    new = program(task("a"), task("b"), task("c"), task("d", "b", "c", "a", join=join), task("e", "d"))
    says(told(fired(), new))
    saga = fired()
    saga.go(done("d"), running=["a", "c"])
    assert saga.state.closed
    without = program(task("a"), task("b"), task("c"), task("e"))
    says(told(saga, without))


def test_a_join_that_has_fired_stays_fired(says: Says) -> None:
    new = program(task("a"), task("b"), task("c"), task("d", "b", "c"), task("e", "d"))
    says(told(fired(), new))


def test_behind_a_join_that_has_fired_nothing_runs_again(says: Says) -> None:
    saga = fired()
    saga.go(done("d"), running=["a", "c"])
    saga.go(done("e"), running=["a", "c"])
    join = Join(need=1, rest="run")
    new = program(task("a"), task("b"), task("c"), task("d", "b", "c", join=join), task("e", "d", "c"))
    says(told(saga, new))


# ---- loops -------------------------------------------------------------------------------------------------


def looped(*extra: str, more: str = "") -> Program:
    """`a`, then rounds of `h`, what is extra, and `t`, then `z`."""
    names = ["h", *extra, "t"]
    lines = [
        f"  {name}: {{tool: t, after: [{before}]{', loop: {while: output.again, back_to: h, max_iterations: 3}' if name == 't' else ''}}}"
        for before, name in zip(["a", *names], names, strict=False)
    ]
    text = "\n".join(["name: w", "nodes:", "  a: {tool: t}", *lines, "  z: {tool: t, after: [t]}", more])
    return Program(compile_document(text, TOOLS), KINDS)


def test_later_rounds_of_a_loop_are_free(says: Says) -> None:
    saga = Saga(looped())
    saga.go(done("a"))
    saga.go(done("h@0"))
    new = looped("m", more="  y: {tool: t, after: [z]}")
    says(told(saga, new))
    saga.go(done("t@0", {"again": True}))
    assert told(saga, new) == []
    patch(saga, new)
    for slot in ("h@1", "m@1", "t@1", "z", "y"):
        assert ready(saga.go()) == [slot]
        saga.go(done(slot, {"again": False}))
    assert saga.state.ended is not None


def test_a_later_round_gets_no_edge_from_outside(says: Says) -> None:
    saga = Saga(looped(more="  v: {tool: t}"))
    saga.go(done("a"), running=["v"])
    saga.go(done("h@0"), running=["v"])
    saga.go(done("t@0", {"again": True}), running=["v"])
    nodes = {node.name: node for node in saga.program.graph.nodes}
    nodes["h"] = replace(nodes["h"], before=("a", "v"))
    nodes["v"] = replace(nodes["v"], after=("h",))
    order = tuple(nodes[name] for name in ("a", "v", "h", "t", "z"))
    says(told(saga, Program(replace(saga.program.graph, nodes=order), KINDS)))


LEAVES = """
name: w
nodes:
  l: {tool: t}
  t: {tool: t, branch: {choose: output, among: [g, b]}}
  g: {tool: t, after: t, loop: {while: output.again, back_to: t, max_iterations: 3}}
  b: {tool: t, after: [%s]}
"""


def test_an_edge_out_of_a_loop_speaks_at_its_end(says: Says) -> None:
    """Of a node behind the token, which has not left the loop in this round."""
    saga = Saga(Program(compile_document(LEAVES % "t", TOOLS), KINDS))
    saga.go(done("l"), running=["t@0"])
    saga.go(done("t@0", "g"))
    assert told(saga, saga.program) == []
    says(told(saga, Program(compile_document(LEAVES % "t, l", TOOLS), KINDS)))


def test_a_loop_under_way_has_the_same_old_nodes_in_it(says: Says) -> None:
    def around(header: str) -> Program:
        text = "name: w\nnodes:\n  u: {tool: t}\n  v: {tool: t, after: u}\n  t: {tool: t, after: v, loop: {while: output.again, back_to: %s, max_iterations: 3}}"
        return Program(compile_document(text % header, TOOLS), KINDS)

    saga = Saga(around("v"))
    saga.go(done("u"))
    says(told(saga, around("u")))


# ---- the fold ----------------------------------------------------------------------------------------------


def test_outputs_that_the_new_graph_reads_are_given_again() -> None:
    saga = Saga(chain_of("a", "b", "c", "d"))
    saga.go(done("a", 1))
    saga.go(done("b", 2))
    assert saga.state.outputs == {}
    new = chain_of("a", "b", "c", "e", e={"arguments": {"x": "${ctx.a.output}"}})
    assert dropped_outputs(saga.state, saga.program, new) == {"a": "a"}
    read_before = chain_of("a", "b", "c", b={"arguments": {"x": "${ctx.a.output}"}})
    assert dropped_outputs(saga.state, saga.program, read_before) == {}, "it has been read"
    patch(saga, new, outputs={"a": ev.Value(v=1)})
    saga.go(done("c"))
    (step,) = steps_of(saga.go())
    assert (step.slot, step.arguments) == ("e", {"x": 1})


def test_a_join_that_tells_of_outputs_gets_those_of_before() -> None:
    saga = joined()
    told_of = task("d", "b", "c", arguments={"x": "${join.outputs}"})
    new = program(task("a"), task("b", "a"), task("c", "a"), told_of)
    assert dropped_outputs(saga.state, saga.program, new) == {"b": "b"}


def test_a_renamed_node_is_the_same() -> None:
    saga = joined()
    names = {"b": "bee", "d": "dee"}
    new = program(task("a"), task("bee", "a"), task("c", "a"), task("dee", "bee", "c"))
    assert told(saga, new, renamed=names) == []
    assert told(saga, new) != []
    patch(saga, new, renamed=names)
    saga.go(done("c"))
    assert ready(saga.go()) == ["dee"]


def test_the_state_knows_the_graphs_before() -> None:
    saga = at_b()
    patch(saga, chain_of("a", "b", "c"), key="k")
    patch(saga, chain_of("a", "b", "c"), key="k")
    assert saga.state.graphs == (EarlierGraph(graph="hash", workflow="w", last=2),)
    assert (saga.state.origin.graph, saga.state.origin.saga) == ("other", "s1")


def test_new_limits_begin_to_count_at_zero() -> None:
    saga = at_b()
    patch(saga, chain_of("a", "b", "c", b={"limits": {"hops": Cap(most=3)}}))
    assert saga.state.used == {"b": Used()}


def test_a_new_time_limit_of_a_node_that_waits_begins_with_the_patch() -> None:
    saga = Saga(program(wait("a")))
    saga.go()
    saga.now = T0 + 900
    patch(saga, program(replace(wait("a"), limits={"wall_time": Cap(most=500)})))
    saga.go()
    assert saga.state.begun == {"a": T0 + 900}
    saga.now += 500
    saga.go()
    assert saga.state.failure is not None
    assert saga.state.failure.code == "limit_wall_time"


def test_a_fork_goes_on_with_the_changes_in_its_entry() -> None:
    saga = at_b()
    saga.go(done("b"))
    new = chain_of("a", "b", "d")
    saga.put(ev.Forked(cut=2, branch=1, by="ada", at=T0), changed(), epoch=0, invocation="api")
    saga.program = new
    assert (saga.state.origin.graph, saga.state.lineage.branch) == ("other", 1)
    assert ready(saga.go()) == ["b"]
    saga.go(done("b"))
    assert ready(saga.go()) == ["d"]


# ---- a rollback --------------------------------------------------------------------------------------------


def test_a_step_is_undone_as_the_graph_says_that_it_ran_with() -> None:
    inverse = Undo(step=replace(task("a"), tool="free", arguments={"id": "${step.output}"}), keeps=())
    other = Undo(step=replace(task("a"), tool="other"), keeps=())
    old = chain_of("a", "b", "c", a={"undo": {"t": inverse}})
    saga = Saga(old)
    saga.go(done("a", 7))
    new = chain_of("b", "c", b={"undo": {"t": other}})
    assert told(saga, replaced := chain_of("a", "b", "c", a={"undo": {"t": other}})) == []
    assert replaced.at(1) is replaced
    patch(saga, new.with_earlier([(saga.state.version, old)]))
    saga.go(done("b", 8))
    saga.put(
        ev.CancelRequested(reason="", by="ada", at=saga.now, grace_ms=0, undo=True), epoch=0, invocation="api"
    )
    (step,) = steps_of(saga.go())
    assert (step.slot, step.node.tool) == ("b#undo", "other")
    (step,) = steps_of(saga.go(done("b#undo")))
    assert (step.slot, step.node.tool, step.arguments) == ("a#undo", "free", {"id": 7})
    saga.go(done("a#undo"))
    assert saga.state.ended is not None
    assert saga.state.ended.status == "rolled_back"
