"""Maps on the whole engine: keys, crashes, people, children, undoing, and how many entries they take."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.runtime.steps import steps
from baton.testing import Elsewhere, Result, run
from baton.tools.define import Registry

HEAD = "name: m\ninput: {type: object}\non_failure: {any: fail}\n"
CHILD = """
name: kid
input: {type: object}
on_failure: {any: fail}
nodes: {k: {tool: act, with: {n: "${input.n}"}}}
output: "${ctx.k.output}"
"""


class Shop:
    """Tools, and what they did."""

    def __init__(self, bad: tuple[int, ...] = ()) -> None:
        self.bad, self.keys, self.acts = bad, list[str](), list[str]()

    def registry(self) -> Registry:
        registry = Registry()

        @tool("once", registry=registry, effect="once")
        async def once(n: int, context: Context) -> int:
            self.keys.append(context.idempotency_key)
            return n * n

        @tool("pure", registry=registry, effect="pure")
        async def pure(n: int) -> int:
            return n + 1

        @tool("back", registry=registry)
        async def back(n: int) -> None:
            self.acts.append(f"back {n}")

        @tool("hand", registry=registry, effect="idempotent", undo="back")
        async def hand(n: int, context: Context) -> None: ...

        @tool("act", registry=registry, undo="back")
        async def act(n: int) -> int:
            if n in self.bad:
                raise StepFailure("business_rule", f"no {n}")
            self.acts.append(f"act {n}")
            return n

        return registry

    def run(
        self, nodes: str, items: Any, *, head: str = HEAD, output: str = "${ctx.a.output?}", **more: Any
    ) -> Result:
        document = f'{head}nodes:\n  {nodes}\noutput: "{output}"\n'
        return run(document, {"l": items}, tools=self.registry(), workflows=[CHILD], **more)


def test_equal_items_are_two_effects_and_a_round_of_a_loop_is_another() -> None:
    shop = Shop()
    node = 'a: {map: "${input.l}", tool: once, with: {n: "${item}"}, loop: {while: loop.iteration < 1}}'
    assert shop.run(node, [5, 5, 5]).output == [25, 25, 25]
    assert len(set(shop.keys)) == len(shop.keys) == 6


def test_keys_that_do_not_know_the_item_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: equal items would be one effect."""
    monkeypatch.setattr(steps, "is_index", lambda item: False)
    shop = Shop()
    shop.run('a: {map: {over: "${input.l}", concurrency: 1}, tool: once, with: {n: "${item}"}}', [5, 5, 5])
    assert len(shop.keys) == 1


def test_a_map_is_a_step_of_the_result() -> None:
    node = 'a: {map: "${input.l}", tool: act, with: {n: "${item}"}}'
    done, failed = (Shop(bad).run(node, [1, 2]).steps["a"] for bad in ((), (2,)))
    assert (done.status, done.output) == ("succeeded", [1, 2])
    assert (failed.status, failed.error[:13]) == ("failed", "business_rule")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_item_acts_once_although_its_worker_dies(moment: str) -> None:
    shop = Shop()
    answers = {"a": ["use" if moment == "after" else "retry"]}
    node = 'a: {map: "${input.l}", tool: act, with: {n: "${item}"}}'
    result = shop.run(node, [1, 2, 3], kills={"a": [moment, moment]}, answers=answers)
    assert (result.output, set(shop.acts)) == ([1, 2, 3], {"act 1", "act 2", "act 3"})


def test_a_thousand_pure_items_take_thirty_entries_at_most() -> None:
    node = 'a: {map: "${input.l}", tool: pure, with: {n: "${item}"}}'
    result = Shop().run(node, list(range(1_000)))
    assert result.output == list(range(1, 1_001))
    assert len(result.entries) <= 30


def test_a_thousand_values_are_made_at_once() -> None:
    result = Shop().run('a: {map: "${input.l}", value: {at: "${index}", of: "${item}"}}', list(range(1_000)))
    assert result.output[999] == {"at": 999, "of": 999}
    assert len(result.entries) <= 5


def test_outputs_that_are_large_are_read_where_they_are() -> None:
    result = Shop().run('a: {map: "${input.l}", value: "${item}"}', ["x" * 20_000] * 130)
    assert result.output == ["x" * 20_000] * 130


def test_a_person_is_asked_for_each_item() -> None:
    result = Shop().run(
        'a: {map: "${input.l}", human: {title: "Pay ${item}?"}}',
        ["x", "y"],
        answers={"a": ["approve", "approve"]},
    )
    assert [one["answer"] for one in result.output] == ["approve", "approve"]


def test_each_item_waits_for_its_own_time() -> None:
    result = Shop().run('a: {map: "${input.l}", wait: {for: "${item}"}}', [5, 3_600, 7])
    assert (result.output, 3_600 <= result.took_s < 3_610) == ([None] * 3, True)


def test_each_question_has_the_data_of_its_item_and_a_rejected_one_is_an_item_that_fails() -> None:
    node = 'a: {map: {over: "${input.l}", tolerated_failures: 1}, human: {title: "Pay ${item.to}?", details: "${item}", expires: 1h}}'
    result = Shop().run(
        node, [{"to": "x"}, {"to": "y"}, {"to": "z"}], answers={"a": ["approve", "reject", "approve"]}
    )
    asked = [
        event["ask"]
        for entry in result.entries
        for event in entry["events"]
        if event["kind"] == "question_opened"
    ]
    assert [(one["id"], one["title"], one["details"]) for one in asked] == [
        (f"0.a#{index}", f"Pay {to}?", {"to": to}) for index, to in enumerate("xyz")
    ]
    assert [one["status"] for one in result.output["results"]] == ["succeeded", "failed", "succeeded"]
    assert result.output["results"][1]["error"]["code"] == "rejected"
    late = Shop().run(node, [{"to": "x"}, {"to": "y"}], answers={"a": ["approve", None]})
    assert (late.output["failed"], 3_600 <= late.took_s < 3_610) == (1, True)


def test_each_signal_ends_the_wait_of_one_item_and_the_others_run_out_of_time() -> None:
    node = 'a: {map: "${input.l}", wait: {signal: paid, timeout: 1h}}'
    sent = [(f"{minute}m", "paid", minute) for minute in (1, 2)]
    result = Shop().run(node, ["x", "y", "z"], signals=sent)
    assert result.output == [1, 2, {"timed_out": True}]


def test_work_that_was_handed_over_for_each_item_is_undone_for_each_item() -> None:
    shop = Shop()
    node = 'a: {map: "${input.l}", tool: hand, with: {n: "${item}"}, callback: {timeout: 1h}}\n  f: {fail: {code: no, message: no}, after: a}'
    result = shop.run(
        node,
        [1, 2, 3],
        head="name: m\ninput: {type: object}\non_failure: {any: rollback}\n",
        callbacks={"a": [Elsewhere(output=n, after=f"{n}m") for n in (3, 1, 2)]},
    )
    assert (result.status, shop.acts) == ("rolled_back", ["back 1", "back 3", "back 2"])


def test_a_map_in_a_map_is_a_graph_for_each_item() -> None:
    row = 'graphs: {row: {nodes: {b: {map: "${input.of}", tool: pure, with: {n: "${item}"}}}, output: "${ctx.b.output}"}}\n'
    result = Shop().run(
        'a: {map: "${input.l}", graph: row, with: {of: "${item}"}}', [[1, 2], [], [3]], head=HEAD + row
    )
    assert result.output == [[2, 3], [], [4]]


def test_children_are_started_for_the_items_and_give_their_results_in_order() -> None:
    result = Shop().run(
        'a: {map: {over: "${input.l}", concurrency: 5}, workflow: kid, with: {n: "${item}"}}', list(range(23))
    )
    assert result.output == list(range(23))


def test_a_child_that_fails_is_an_item_that_fails() -> None:
    node = 'a: {map: {over: "${input.l}", tolerated_failures: 1}, workflow: kid, with: {n: "${item}"}}'
    batch = Shop(bad=(2,)).run(node, list(range(5))).output
    assert [one["status"] for one in batch["results"]] == [
        "succeeded",
        "succeeded",
        "failed",
        "succeeded",
        "succeeded",
    ]
    assert "business_rule" in batch["results"][2]["error"]["message"]


UNDONE = "name: m\ninput: {type: object}\n"


@pytest.mark.parametrize("of", ["tool: act", "workflow: kid"])
def test_what_the_items_have_done_is_undone_in_the_reverse_order(of: str) -> None:
    shop = Shop()
    nodes = f'a: {{map: "${{input.l}}", {of}, with: {{n: "${{item}}"}}}}\n  b: {{after: a, fail: {{code: sold_out, message: no}}}}'
    result = shop.run(nodes, [1, 2, 3, 4], head=UNDONE)
    assert result.status == "rolled_back"
    assert shop.acts[4:] == ["back 4", "back 3", "back 2", "back 1"]


def test_when_an_item_fails_what_the_others_have_done_is_undone() -> None:
    shop = Shop(bad=(3,))
    node = 'a: {map: {over: "${input.l}", concurrency: 2}, tool: act, with: {n: "${item}"}}'
    result = shop.run(node, [0, 1, 2, 3, 4, 5], head=UNDONE)
    assert (result.status, result.error) == ("rolled_back", "business_rule: item 3: no 3")
    assert shop.acts[-3:] == ["back 2", "back 1", "back 0"]


def test_where_the_rules_let_it_end_with_the_failure_nothing_is_undone() -> None:
    shop = Shop(bad=(3,))
    node = 'a: {map: {over: "${input.l}", concurrency: 1}, tool: act, with: {n: "${item}"}, on_failure: {permanent: fail}}'
    result = shop.run(node, [0, 3], head=UNDONE)
    assert (result.status, shop.acts) == ("failed", ["act 0"])


def test_a_failure_that_was_tolerated_does_not_keep_a_later_one_from_being_undone() -> None:
    shop = Shop(bad=(3,))
    nodes = (
        'a: {map: {over: "${input.l}", tolerated_failures: 1}, tool: act, with: {n: "${item}"}, on_failure: {permanent: fail}}\n'
        "  b: {after: a, fail: {code: sold_out, message: no}}"
    )
    assert (shop.run(nodes, [0, 3], head=UNDONE).status, shop.acts) == ("rolled_back", ["act 0", "back 0"])


def test_what_items_do_after_their_map_has_gone_on_is_undone_with_the_rest() -> None:
    shop = Shop()
    nodes = (
        'a: {map: {over: "${input.l}", concurrency: 1, wait_for: any, rest: run}, tool: act, with: {n: "${item}"}}\n'
        "  b: {after: a, wait: {for: 1h}}\n  c: {after: b, fail: {code: sold_out, message: no}}"
    )
    result = shop.run(nodes, [0, 1, 2], head=UNDONE)
    assert (result.status, shop.acts) == (
        "rolled_back",
        ["act 0", "act 1", "act 2", "back 2", "back 1", "back 0"],
    )


def test_many_items_and_children_run_on_beside_what_follows() -> None:
    late = 'map: {over: "${input.l}", wait_for: 2, rest: run}'
    nodes = f'a: {{{late}, tool: pure, with: {{n: "${{item}}"}}}}\n  b: {{after: a, {late}, workflow: kid, with: {{n: "${{item}}"}}}}'
    shop = Shop(bad=(5,))
    result = shop.run(nodes, [*range(120)], output="${ctx.b.output}")
    batch = result.output
    assert (result.status, batch["running"] > 0, batch["not_begun"] > 0, batch["stopped"]) == (
        "completed",
        True,
        True,
        0,
    )
    assert (len(shop.acts), len(result.children)) == (119, 120), (
        "the failure of one that is late is no failure"
    )


def test_a_large_batch_result_reaches_what_catches_the_failure() -> None:
    node = (
        'a: {map: {over: "${input.l}", tolerated_failures: 0, rest: run}, tool: act, with: {n: "${item}"}, catch: h}\n'
        '  h: {value: "${last_error.batch}"}'
    )
    batch = Shop(bad=(7,)).run(node, list(range(600)), output="${ctx.h.output?}").output
    assert (batch["succeeded"], batch["failed"], batch["results"][7]["status"]) == (599, 1, "failed")


def test_outputs_that_are_too_large_together_fail_the_node() -> None:
    result = Shop().run('a: {map: "${input.l}", value: ["${item}", "${item}"]}', ["x" * 900_000] * 4)
    assert result.error is not None
    assert result.error.startswith("value_too_large")
