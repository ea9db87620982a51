"""A map goes on with the last success that it waits for, and the items that are left run beside what follows: nothing comes of them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.views import entry_view, saga_view
from baton.words.event_words import WORDS
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, done, failed, ready, replay
from tests.core.compiling import TOOLS, told
from tests.core.nodes.test_map import failure, fates, settled
from tests.core.told import story
from tests.kit.sentences import Says
from tests.kit.views import as_json

LETTERS = ["a", "b", "c", "d", "e"]
FIRST = """
z: {value: [1, 2]}
m: {map: {over: "${input.l}", concurrency: 3, wait_for: %s, rest: run}, tool: t, with: {x: "${ctx.z.output[0]}"}, after: z%s}
n: {tool: t, after: m, with: {x: "${ctx.m.output}"}}
"""


def begun(nodes: str = FIRST % (1, ""), given: Any = None) -> Saga:
    text = f"name: w\non_failure: [rollback]\nnodes:\n  {nodes.strip().replace(chr(10), chr(10) + '  ')}\n"
    saga = Saga(Program(compile_document(text, TOOLS), KINDS), {"l": LETTERS} if given is None else given)
    saga.go()
    return saga


def events(saga: Saga, kind: type) -> list[Any]:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, kind)]


def test_what_follows_begins_with_the_last_success_and_the_rest_comes_to_its_end() -> None:
    saga = begun(FIRST % (2, ""))
    settled(saga, failed("m#1"))
    assert settled(saga, done("m#0", "A"), done("m#3", "D")) == ["n", "m#4"], "others begin all the same"
    (step,) = (one for one in steps_of(saga.decision) if one.slot == "n")
    batch = step.arguments["x"]
    assert fates(batch) == ["succeeded", "failed", "running", "succeeded", "not_begun"]
    assert [batch[key] for key in ("succeeded", "failed", "running", "stopped", "not_begun")] == [
        2,
        1,
        1,
        0,
        1,
    ]


def test_items_that_begin_late_still_find_what_they_read() -> None:
    saga = begun()
    settled(saga, done("m#0"))
    settled(saga, done("n"), done("m#1"))
    (step,) = steps_of(saga.decision)
    assert (step.slot, step.arguments) == ("m#4", {"x": 1})


def test_the_saga_is_complete_when_the_last_item_has_ended_and_counts_the_map_once() -> None:
    saga = begun()
    settled(saga, done("m#0"))
    settled(saga, done("n"))
    assert (status_of(saga.state), list(saga.state.tokens)) == ("running", ["m", "m#1", "m#2", "m#3"])
    settled(saga, done("m#1"), failed("m#2"))
    settled(saga, done("m#3"))
    assert saga.state.ended is None
    settled(saga, failed("m#4"))
    assert (status_of(saga.state), saga.state.counts.steps) == ("completed", 3)
    (over,) = events(saga, ev.MapEnded)
    assert (over.succeeded, over.failed, over.stopped, over.not_begun, over.emits) == (2, 2, 0, 0, ())
    assert replay(saga.entries) == saga.state


def test_where_all_have_ended_by_then_it_is_simply_done() -> None:
    saga = begun(FIRST % ("any", ""), {"l": ["a"]})
    assert settled(saga, done("m#0")) == ["n"]
    assert (saga.state.late, [event.goes_on for event in events(saga, ev.MapClosed)]) == (set(), [False])


def test_it_is_explained_that_the_others_run_on_and_when_they_are_over(says: Says) -> None:
    saga = begun()
    settled(saga, done("m#0"))
    says(story(saga).places["m"].fate)
    settled(saga, done("n"))
    settled(saga, done("m#1"), done("m#2"), done("m#3"))
    settled(saga, done("m#4"))
    says(story(saga).places["m"].fate)


def test_a_failure_is_told_when_all_items_are_done() -> None:
    saga = begun(FIRST % ("2, tolerated_failures: 0", ""))
    settled(saga, failed("m#0"))
    settled(saga, done("m#1"), done("m#2"))
    assert (status_of(saga.state), saga.state.late) == ("running", set())
    settled(saga, done("m#3"), done("m#4"))
    assert failure(saga).code == "map_failed"


def test_what_fails_the_saga_later_stops_the_items_that_are_left() -> None:
    saga = begun()
    settled(saga, done("m#0"))
    saga.go(failed("n"), running=["m#1", "m#2", "m#3"])
    assert saga.state.ended is None, "what runs comes to its end"
    saga.go(done("m#1"), done("m#2"), done("m#3"))
    assert (status_of(saga.state), saga.state.tokens) == ("failed", {})
    assert events(saga, ev.ItemsBegan)[-1].first == 3, "and nothing else begins"


def test_an_early_join_behind_the_map_stops_them_and_is_not_told_of_that(says: Says) -> None:
    saga = begun(
        """
m: {map: {over: "${input.l}", concurrency: 2, wait_for: 1, rest: run}, tool: t}
w: {wait: {signal: go}}
j: {tool: t, after: [m, w], join: {wait_for: 1}}
k: {tool: t, after: j}
"""
    )
    settled(saga, done("m#0"))
    (over,) = events(saga, ev.MapEnded)
    assert (over.stopped, over.not_begun, over.why) == (1, 3, "join j")
    assert list(saga.state.tokens) == ["j"]
    dropped = {
        slot for slot, place in story(saga).places.items() if place.end and place.end.became == "dropped"
    }
    assert dropped == {"m#1"}
    says(story(saga).places["m"].fate)
    saga.go(done("j"))
    saga.go(done("k"))
    assert status_of(saga.state) == "completed"


def test_its_wall_time_stops_the_items_that_are_left_and_fails_nothing(says: Says) -> None:
    saga = begun(FIRST % (1, ", limits: {wall_time: {max: 10m}}"))
    settled(saga, done("m#0"))
    settled(saga, done("n"))
    saga.go(after_ms=600_000, running=["m#1", "m#2", "m#3"])
    (over,) = events(saga, ev.MapEnded)
    assert (over.stopped, over.not_begun) == (3, 1)
    says(over.why)
    saga.go()
    assert status_of(saga.state) == "completed"


def test_what_is_folded_again_changes_nothing() -> None:
    saga = begun()
    settled(saga, done("m#0"))
    (closed,) = events(saga, ev.MapClosed)
    settled(saga, done("m#1"))
    assert apply(saga.state, closed) == saga.state


def test_a_signal_that_only_nodes_before_could_take_is_not_waited_for() -> None:
    saga = begun(
        """
m: {map: {over: "${input.l}", wait_for: 1, rest: run}, tool: t}
w: {wait: {signal: go}, after: m}
"""
    )
    settled(saga, done("m#0"))
    assert [node.name for node in saga.program.takers(saga.state, "go")] == ["w"]
    assert as_json(saga_view(saga.state, saga.program))["most_steps"] == 3
    saga.signal("go")
    settled(saga)
    assert list(saga.program.takers(saga.state, "go")) == []


def test_a_fork_to_where_it_has_gone_on_does_again_what_ran_then() -> None:
    saga = begun()
    settled(saga, done("m#0"))
    cut = saga.state.version
    settled(saga, done("m#1"), done("m#2"), done("m#3"))
    settled(saga, done("n"), done("m#4"))
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=T0 + 60_000), epoch=0, invocation="api")
    saga.go()
    assert sorted(ready(saga.decision)) == ["m#1", "m#2", "m#3", "n"]
    settled(saga, done("n"), *[done(f"m#{index}") for index in (1, 2, 3)])
    settled(saga, done("m#4"))
    assert status_of(saga.state) == "completed"


def test_it_is_shown_and_told(says: Says) -> None:
    saga = begun()
    settled(saga, done("m#0"), failed("m#1"))
    settled(saga, failed("m#2"))
    shown = as_json(saga_view(saga.state, saga.program))["active"][0]
    assert {key: shown[key] for key in ("node", "state", "items", "begun", "failed", "late")} == {
        "node": "m", "state": "running", "items": 5, "begun": 5, "failed": 2, "late": True,
    }  # fmt: skip
    settled(saga, done("m#3"), done("m#4"))
    said = {
        event["kind"]: WORDS[event["kind"]](event)[0]
        for entry in saga.entries
        for event in entry_view(entry)["events"]
        if event["kind"] in ("map_closed", "map_ended")
    }
    says(said)


def test_a_map_that_ends_the_round_of_its_loop_leaves_nothing_to_run_on(says: Says) -> None:
    late = "map: {over: [1, 2], wait_for: 1, rest: run}"
    tail = told(f"a: {{}}, b: {{after: a, {late}, loop: {{while: 'output.failed > 0', back_to: a}}}}")
    says([(path, text) for path, text, _ in tail])
    out = (
        f"a: {{}}, b: {{after: a, {late}, branch: {{rules: [{{if: 'output.failed > 0', then: x}}], default: c}}}}, "
        "c: {loop: {while: 'output.score < 5', back_to: a}}, x: {}"
    )
    says([(path, text) for path, text, _ in told(out)])
    circle = told(f"a: {{after: b, {late}}}, b: {{after: a}}")
    assert [path for path, _, _ in circle if path.endswith("/rest")] == []
    assert told(f"a: {{{late}}}, b: {{after: a, loop: {{while: 'output.score < 5', back_to: a}}}}") == []


LATE = 'map: {over: "${input.l}", concurrency: 2, wait_for: 1, rest: run}'
HEADER = f"""
x: {{tool: t}}
y: {{tool: t}}
m: {{{LATE}, tool: t, after: [x, y], join: {{wait_for: 1, rest: run}}}}
"""


def test_a_round_that_is_over_stops_them_and_the_join_of_its_first_node_stays_closed(says: Says) -> None:
    saga = begun(HEADER + 'b: {tool: t, after: m, loop: {while: "loop.iteration < 1", back_to: m}}\n')
    saga.go(done("x"), running=["y"])
    saga.go(done("m@0#0"), running=["y", "m@0#1"])
    saga.go(done("b@0"), running=["y", "m@0#1"])
    (over,) = events(saga, ev.MapEnded)
    assert (over.stopped, over.not_begun) == (2, 2)
    says(over.why)
    saga.go(done("y"), running=["m@1#0", "m@1#1"])
    assert list(saga.state.tokens) == ["m@1", "m@1#0", "m@1#1"], "the first round does not begin again"
    saga.go(done("m@1#0"))
    saga.go(done("b@1"))
    assert (status_of(saga.state), len(events(saga, ev.MapBegan))) == ("completed", 2)
    assert replay(saga.entries) == saga.state


def test_a_branch_that_leaves_the_loop_stops_them_as_the_end_of_a_round_does(says: Says) -> None:
    saga = begun(
        HEADER
        + """k: {tool: t, after: m, branch: {rules: [{if: "output.score > 3", then: out}], default: b}}
b: {tool: t, loop: {while: "loop.iteration < 1", back_to: m}}
out: {tool: t}
"""
    )
    saga.go(done("x"), running=["y"])
    saga.go(done("m@0#0"), running=["y", "m@0#1"])
    saga.go(done("k@0", {"score": 5}), running=["y", "m@0#1"])
    says([over.why for over in events(saga, ev.MapEnded)])
    saga.go(done("out"), running=["y"])
    saga.go(done("y"))
    assert (status_of(saga.state), len(events(saga, ev.MapBegan))) == ("completed", 1)


def test_people_are_told_of_those_that_the_end_of_a_round_stops_while_they_act_only_once() -> None:
    pay = replace(TOOLS["u.v"], name="pay", effect="once")
    text = f"""
name: w
on_failure: {{any: fail}}
nodes:
  a: {{tool: t}}
  m: {{{LATE}, tool: pay, after: a, join: {{wait_for: 1, rest: run}}}}
  b: {{tool: t, after: m, loop: {{while: "loop.iteration < 1", back_to: a}}}}
"""
    saga = Saga(Program(compile_document(text, {**TOOLS, "pay": pay}), KINDS), {"l": LETTERS})
    saga.go()
    saga.go(done("a@0"))
    saga.go(done("m@0#0"), running=["m@0#1"])
    saga.go(done("b@0"), running=["m@0#1"])
    assert [event.notice.key for event in events(saga, ev.NoticeDue)] == ["s1/0.m@0#1.stopped"]
    assert (list(saga.state.tokens), saga.state.closed) == (["a@1"], {})


def test_a_pass_that_ends_a_round_stops_them_too(says: Says) -> None:
    saga = begun(HEADER + 'b: {value: 1, after: m, loop: {while: "loop.iteration < 1", back_to: m}}\n')
    saga.go(done("x"), running=["y"])
    saga.go(done("m@0#0"), running=["y", "m@0#1"])
    says([(over.stopped, over.why) for over in events(saga, ev.MapEnded)])
    assert saga.state.closed == {"m@0": ("y",)}


def test_what_ends_a_round_does_not_name_a_map_again_that_has_ended_with_it() -> None:
    saga = begun(
        f"""
a: {{tool: t}}
m: {{{LATE}, tool: t, after: a}}
b: {{tool: t, after: m, loop: {{while: "loop.iteration < 1", back_to: a}}}}
"""
    )
    saga.go(done("a@0"))
    saga.go(done("m@0#0"), running=["m@0#1"])
    saga.go(done("b@0"), running=["m@0#1"])
    over, end = saga.entries[-1].events
    assert isinstance(over, ev.MapEnded)
    assert isinstance(end, ev.StepSucceeded)
    assert (end.drops, list(saga.state.tokens)) == ((), ["a@1"])


def test_what_follows_gets_a_place_before_items_that_have_none_yet() -> None:
    saga = begun()
    saga.go(done("m#0"))
    assert ready(saga.decision) == ["n", "m#1", "m#2", "m#3"]


def test_a_rule_that_names_a_person_asks_about_an_item_that_runs_on() -> None:
    text = f"""
name: w
nodes:
  m: {{{LATE}, tool: t, on_failure: {{any: ask_user}}}}
  n: {{tool: t, after: m}}
"""
    saga = Saga(Program(compile_document(text, TOOLS), KINDS), {"l": ["a", "b"]})
    saga.go()
    saga.go(done("m#0"))
    saga.go(done("n"), failed("m#1"))
    assert (status_of(saga.state), saga.state.failing["m#1"].strategy) == ("suspended", "ask_user")
