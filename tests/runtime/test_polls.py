"""A tool that is asked again until a condition holds; loops that rest between their rounds, and what they begin with."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure
from baton.testing import Result, run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says


class Service:
    """Is asked, and ready at the n-th time. `asked` has what it was asked with; `broken`: the calls that fail."""

    def __init__(self, ready_at: int = 3, broken: tuple[int, ...] = (), answer: Any = None) -> None:
        self.asked: list[Any] = []
        self.ready_at, self.broken, self.answer = ready_at, broken, answer

    def run(self, document: str, given: Any = None, **more: Any) -> Result:
        registry = Registry()

        @tool("service.look", registry=registry, effect="pure")
        def look(seen: Any = None) -> dict[str, Any]:
            self.asked.append(seen)
            count = len(self.asked)
            if count in self.broken:
                raise StepFailure("service_unavailable", "down", kind="transient")
            return {"ready": count >= self.ready_at, "n": count, "in_s": count * 10, "more": self.answer}

        @tool("service.act", registry=registry, effect="idempotent")
        def act(seen: Any = None) -> dict[str, Any]:
            self.asked.append(seen)
            return {"ready": len(self.asked) >= self.ready_at}

        return run(document, given, tools=registry, **more)


POLL = """
name: polling
nodes:
  look:
    tool: service.look
    with: {seen: "${ctx.look.previous.n}"}
    poll: {until: output.ready, %s}
    %s
  tell: {value: {code: "${last_error.code}", answer: "${last_error.answer.n?}"}}
  then: {value: "${ctx.look.output.n}", after: look}
output: {n: "${ctx.then.output?}", told: "${ctx.tell.output?}"}
""".replace(".n?}", ".n}")
CAUGHT = "catch: {code: poll_exhausted, then: tell}"


def polling(every: str, catch: str = CAUGHT) -> str:
    return POLL % (every, catch)


def test_it_is_asked_until_the_condition_holds_and_the_first_time_at_once() -> None:
    service = Service()
    result = service.run(polling("every: 10m, initial: {n: 0}"))
    assert result.output == {"n": 3, "told": None}
    assert service.asked == [0, 1, 2]
    assert 1200 <= result.took_s < 1202


def test_the_pause_grows_or_is_what_the_answer_says() -> None:
    growing = Service(5).run(polling("every: {first: 10s, factor: 3, most: 1m}"))
    assert 10 + 30 + 60 + 60 <= growing.took_s < 162
    told = Service(4).run(polling('every: "${output.in_s}s"'))
    assert 10 + 20 + 30 <= told.took_s < 62
    at_once = Service(4).run(polling('every: "0s"').replace('"0s"', '"${input.pause}"'), {"pause": 0})
    assert at_once.took_s < 2


def test_with_the_tries_used_up_it_fails_with_the_last_answer(says: Says) -> None:
    service = Service(99)
    result = service.run(polling("every: 1m, tries: 4"))
    assert result.output == {"n": None, "told": {"code": "poll_exhausted", "answer": 4}}
    assert (len(service.asked), round(result.took_s)) == (4, 180)
    failed = Service(99).run(polling("every: 1m, tries: 4", ""))
    assert failed.status == "failed"
    says(str(failed.error))
    assert '"n":4' in str(failed.error)


def test_the_last_try_is_made_at_the_deadline() -> None:
    service = Service(99)
    result = service.run(polling("every: 10m, within: 25m"))
    assert result.output["told"]["answer"] == 4
    assert len(service.asked) == 4  # at 0, 10, 20 and 25 minutes
    assert 1500 <= result.took_s < 1502
    assert Service(4).run(polling("every: 10m, within: 25m")).output["n"] == 4


def test_a_try_that_fails_is_tried_again_and_the_time_counts_from_the_first() -> None:
    service = Service(99, broken=(1, 3))
    result = service.run(polling("every: 10m, within: 15m"))
    assert result.output["told"]["answer"] == 5
    assert 900 <= result.took_s < 903


def test_a_large_last_answer_is_cut_in_the_failure() -> None:
    result = Service(99, answer="x" * 9_000).run(
        polling("every: 1s, tries: 2").replace("${last_error.answer.n}", "${last_error.answer}")
    )
    answer = result.output["told"]["answer"]
    assert answer["n"] == 2
    assert len(str(answer)) < 4_200
    assert answer["$summary"]["bytes"] > 9_000


def test_a_pause_that_is_no_duration_fails_the_node(says: Says) -> None:
    result = Service(9).run(polling('every: "${input.pause}"'), {"pause": "soon"})
    says(str(result.error))


def test_each_try_is_an_act_of_its_own() -> None:
    document = POLL.replace("service.look", "service.act") % ("every: 1s", "")
    service = Service(3)
    service.run(
        document.replace('    with: {seen: "${ctx.look.previous.n}"}\n', "").replace(
            "ctx.look.output.n", "ctx.look.output"
        )
    )
    assert len(service.asked) == 3


def test_while_it_waits_nothing_is_written_and_each_round_is_one_entry() -> None:
    def entries(rounds: int) -> int:
        return len(Service(rounds).run(polling("every: 1h, tries: 500")).entries)

    assert entries(12) - entries(2) == 10
    assert len(Service(12).run(BY_HAND).entries) - len(Service(2).run(BY_HAND).entries) == 20


BY_HAND = """
name: by-hand
nodes:
  look: {tool: service.look, branch: {rules: [{if: output.ready, then: then}], default: rest}}
  rest: {wait: {for: 1h}, loop: {while: "true", back_to: look, max_iterations: 500}}
  then: {value: "${ctx.look.output.n}"}
output: "${ctx.then.output}"
"""

LOOP = """
name: looping
nodes:
  take:
    tool: service.look
    with: {seen: ["${input.items[loop.iteration]}", "${ctx.sum.previous}"]}
  sum:
    value: "${ctx.take.output.n}"
    after: take
    loop: {while: "loop.iteration < 2", back_to: take, pause: 1h, initial: "${input.first}"}
output: "${ctx.sum.output}"
"""


def test_a_loop_takes_one_item_a_round_rests_between_them_and_begins_with_a_value() -> None:
    service = Service()
    result = service.run(LOOP, {"items": ["a", "b", "c"], "first": {"is": "first"}})
    assert service.asked == [["a", {"is": "first"}], ["b", 1], ["c", 2]]
    assert 7200 <= result.took_s < 7202


def test_what_a_loop_begins_with_may_be_what_a_node_before_it_gave() -> None:
    document = LOOP.replace("nodes:\n", "nodes:\n  before: {value: {x: 7}}\n").replace(
        "  take:\n", "  take:\n    after: before\n"
    )
    service = Service()
    service.run(document.replace("${input.first}", "${ctx.before.output.x}"), {"items": [1, 2, 3]})
    assert [seen for _, seen in service.asked] == [7, 1, 2]


def test_a_round_can_end_early_while_it_rests() -> None:
    document = """
name: race
nodes:
  look: {tool: service.look, poll: {until: output.ready, every: 1h}}
  late: {wait: {for: 90m}}
  end: {value: "${join.arrived}", after: [look, late], join: any}
output: "${ctx.end.output}"
"""
    result = Service(9).run(document)
    assert (result.output, round(result.took_s)) == (["late"], 5400)


@pytest.mark.parametrize("kills", [["before"], ["after"], ["after", "before"]])
def test_workers_that_die_change_nothing(kills: list[str]) -> None:
    result = Service(3).run(polling("every: 10m"), kills={"look": kills})
    assert result.status == "completed"
