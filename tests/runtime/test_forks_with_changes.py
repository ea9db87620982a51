"""Forks that begin at a place by name, go on with other values, and decide about the effects that they leave."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Key, StepFailure, tool
from baton.core.log import events as ev
from baton.core.log.questions import Answer
from baton.errors import InvalidInput, KeyReused, NotAllowedNow, NotFound, UserError
from baton.runtime.engine.request import Request
from baton.runtime.requests.queries import Queries
from baton.runtime.requests.travel import compare, state_at
from baton.tools.define import Registry
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_patches import patch

SHOP = """
name: shop
input: {type: object, properties: {item: {type: string}, n: {type: integer}}, required: [item]}
nodes:
  quote: {tool: quote, with: {item: '${input.item}'}}
  tell: {tool: tell, with: {text: hello}, after: quote}
  pay: {tool: pay, with: {price: '${ctx.quote.output.price}'}, after: tell}
  send: {tool: send, with: {item: '${input.item}'}, after: pay}
output: '${ctx.pay.output}'
"""


class Shop:
    """A shop in memory: `acts` has what its tools have done, with the keys; `fails` are tools that decline."""

    def __init__(self, document: str = SHOP) -> None:
        self.registry, self.document = Registry(), document
        self.acts: list[tuple[str, Any]] = []
        self.keys: list[str] = []
        self.fails = set[str]()
        registry = self.registry

        @tool("quote", registry=registry)
        async def quote(item: str) -> dict[str, int]:
            self.note("quote", item)
            return {"price": len(item)}

        @tool("tell", registry=registry)
        async def tell(text: str) -> str:
            self.note("tell", text)
            return text

        @tool("refund", registry=registry)
        async def refund(price: int) -> None:
            self.note("refund", price)

        @tool("pay", registry=registry, effect="once", key=Key.node(), undo="refund")
        async def pay(price: int) -> int:
            self.note("pay", price)
            return price

        @tool("send", registry=registry)
        async def send(item: str) -> str:
            self.note("send", item)
            return item

    def note(self, name: str, what: Any) -> None:
        if name in self.fails:
            raise StepFailure("declined", "no", kind="permanent")
        self.acts.append((name, what))

    async def world(self) -> tuple[World, str]:
        world = World(self.registry)
        world.switch_on()
        await world.service().register(self.document, json_only=False)
        view, _ = await world.service().start("shop", {"item": "tea"}, "key")
        await world.settle()
        return world, view["id"]


def queries(world: World) -> Queries:
    found = world.queries()._service
    assert isinstance(found, Queries)
    return found


async def fork(world: World, saga: str, key: str = "", **wanted: Any) -> dict[str, Any]:
    answer = await world.service().fork_with(saga, key, **wanted)
    if not wanted.get("dry_run"):
        await world.settle()
    return answer


async def shown(world: World, saga: str) -> tuple[str, Any]:
    view = await world.queries().show(saga)
    return view["status"], view["result"]


def version_of(world: World, saga: str, node: str) -> int:
    """The version at which a step has succeeded last."""
    return max(
        entry.version
        for entry in world.entries(saga)
        for event in entry.events
        if isinstance(event, ev.StepSucceeded) and event.node == node
    )


# ---- where a fork begins


async def test_a_fork_before_a_step_runs_it_again_and_what_comes_behind_it() -> None:
    shop = Shop()
    world, saga = await shop.world()
    shop.acts.clear()
    answer = await fork(world, saga, before="send")
    assert answer["plan"].cut == version_of(world, saga, "pay")
    assert (await shown(world, saga), shop.acts) == (("completed", 3), [("send", "tea")])


async def test_a_fork_before_a_step_that_has_not_begun_is_refused_with_the_nearest(says: Says) -> None:
    world, saga = await Shop().world()
    for step in ("sent", "nothing-like-it", "send@1"):
        with says.raised(UserError):
            await fork(world, saga, before=step)


LOOP = """
name: shop
nodes:
  a: {tool: tell, with: {text: 'a${loop.iteration}'}}
  b: {tool: send, with: {item: 'b${loop.iteration}'}, after: a, loop: {back_to: a, while: 'loop.iteration < 2', max_iterations: 5}}
"""


@pytest.mark.parametrize(
    ("before", "acts"),
    [
        ("a", ["a2", "b2"]),
        ("b", ["b2"]),
        ("a@1", ["a1", "b1", "a2", "b2"]),
        ("b@0", ["b0", "a1", "b1", "a2", "b2"]),
    ],
)
async def test_a_round_of_a_loop_is_named_and_a_node_alone_is_its_last_round(
    before: str, acts: list[str]
) -> None:
    shop = Shop(LOOP)
    world, saga = await shop.world()
    assert [what for _, what in shop.acts] == ["a0", "b0", "a1", "b1", "a2", "b2"]
    shop.acts.clear()
    await fork(world, saga, before=before)
    assert [what for _, what in shop.acts] == acts


async def test_a_fork_before_a_step_is_of_the_present_branch() -> None:
    """The step has run in both branches: the cut is in the last one, whose values it keeps."""
    shop = Shop()
    world, saga = await shop.world()
    await fork(world, saga, before="quote", input={"item": "coffee"}, leave=True)
    assert await shown(world, saga) == ("completed", 6)
    shop.acts.clear()
    await fork(world, saga, before="quote")
    assert (shop.acts[0], await shown(world, saga)) == (("quote", "coffee"), ("completed", 6))


async def test_the_last_stable_version_is_behind_the_last_step_that_has_ended_well_before_the_failure() -> (
    None
):
    shop = Shop()
    shop.fails.add("pay")
    world, saga = await shop.world()
    assert (await shown(world, saga))[0] == "failed"
    shop.fails.clear()
    answer = await fork(world, saga, stable=True)
    assert answer["plan"].cut == version_of(world, saga, "tell")
    assert await shown(world, saga) == ("completed", 3)
    again = await fork(world, saga, stable=True)
    assert again["plan"].cut == version_of(world, saga, "pay"), "its end is no version to go on from"


async def test_a_saga_without_a_stable_version_says_what_can_be_forked(says: Says) -> None:
    shop = Shop()
    shop.fails.add("quote")
    world, saga = await shop.world()
    with says.raised(UserError):
        await fork(world, saga, stable=True)


ASKS = """
name: shop
nodes:
  ask: {human: {title: Go?, message: May we pay?}}
  pay: {tool: pay, with: {price: 1}, after: ask}
"""


async def test_an_answer_that_was_taken_in_is_stable() -> None:
    shop = Shop(ASKS)
    shop.fails.add("pay")
    world, saga = await shop.world()
    (question,) = (await world.queries().show(saga))["questions"]
    await world.service().answer(saga, Answer(ask=question["id"], action="approve"), "k")
    await world.settle()
    assert (await shown(world, saga))[0] == "failed"
    shop.fails.clear()
    await fork(world, saga, stable=True)
    assert await shown(world, saga) == ("completed", None)


# ---- other values


async def test_another_input_is_checked_and_goes_on_from_the_cut() -> None:
    shop = Shop()
    world, saga = await shop.world()
    shop.acts.clear()
    await fork(world, saga, before="send", input={"item": "mug"}, leave=True)
    assert shop.acts == [("send", "mug")]
    assert (await world.queries().show(saga))["input"] == {"item": "mug"}


async def test_views_of_the_saga_have_the_changed_output() -> None:
    shop = Shop()
    world, saga = await shop.world()
    cut = version_of(world, saga, "tell")
    await fork(world, saga, version=cut, outputs={"quote": {"price": 9}}, leave=True)

    async def price(at: int) -> Any:
        page = await state_at(queries(world), saga, at, 0, 100)
        return next(one.output for one in page.outputs if one.node == "quote")

    forked = next(one.version for one in world.entries(saga) if isinstance(one.events[0], ev.Forked))
    assert [await price(at) for at in (cut, forked, 0)] == [{"price": 3}, {"price": 9}, {"price": 9}]
    found = await compare(queries(world), saga, saga, cut, forked)
    assert [one.node for one in found.differences if one.what == "node"] == ["quote"]
    steps = (await world.queries().steps(saga, 0, 50))["steps"]
    assert [one["input"] for one in steps if one["node"] == "pay"] == [{"price": 9}]


async def test_all_problems_of_the_values_are_told_at_once_and_nothing_is_written(says: Says) -> None:
    world, saga = await Shop().world()
    count, cut = len(world.entries(saga)), version_of(world, saga, "quote")
    with says.raised(InvalidInput) as refused:
        outputs = {"quot": 1, "pay": 1, "quote": {"price": "much"}}
        await fork(world, saga, version=cut, input={"item": 3, "n": "x"}, outputs=outputs)
    assert [one.path for one in refused.value.problems] == [
        "/input/item",
        "/input/n",
        "/outputs/quot",
        "/outputs/pay",
        "/outputs/quote/price",
    ]
    with says.raised(InvalidInput):
        await fork(world, saga, version=cut + 1, outputs={"tell": "x"})
    assert len(world.entries(saga)) == count


async def test_a_large_value_is_kept_outside_of_the_entry() -> None:
    shop = Shop()
    world, saga = await shop.world()
    await fork(world, saga, before="send", input={"item": "x" * 300_000}, leave=True)
    (changed,) = [one for one in world.events(saga) if isinstance(one, ev.ValueChanged)]
    assert changed.value.ref
    assert shop.acts[-1] == ("send", "x" * 300_000)


# ---- effects that are left


def _kinds(plan: Any) -> dict[str, str]:
    return {one.step: one.key for one in plan.left}


async def test_the_plan_lists_effects_payments_first_with_their_inverses() -> None:
    world, saga = await Shop().world()
    plan = (await fork(world, saga, version=1, dry_run=True))["plan"]
    assert [(one.step, one.payment, one.by, one.key) for one in plan.left] == [
        ("pay", True, "refund", "kept"),
        ("send", False, None, "kept"),
        ("tell", False, None, "kept"),
        ("quote", False, None, "kept"),
    ]
    assert (plan.cut, plan.more, plan.unsure) == (1, 0, 0)


async def test_an_unchanged_fork_pays_once() -> None:
    shop = Shop()
    world, saga = await shop.world()
    await fork(world, saga, version=1)
    assert [one for one in shop.acts if one[0] == "pay"] == [("pay", 3)]


async def test_a_change_that_may_reach_an_effect_is_refused_until_the_caller_says_leave(says: Says) -> None:
    shop = Shop()
    world, saga = await shop.world()
    count, cut = len(world.entries(saga)), version_of(world, saga, "tell")
    changed: dict[str, Any] = {"version": cut, "outputs": {"quote": {"price": 9}}}
    plan = (await fork(world, saga, **changed, dry_run=True))["plan"]
    assert _kinds(plan) == {"pay": "unsure", "send": "kept"}
    with says.raised(NotAllowedNow):
        await fork(world, saga, **changed)
    assert len(world.entries(saga)) == count
    await fork(world, saga, **changed, leave=True)
    assert [one for one in shop.acts if one[0] == "pay"] == [("pay", 3), ("pay", 9)]
    assert await shown(world, saga) == ("completed", 9)


async def test_what_was_undone_first_is_not_left_behind() -> None:
    shop = Shop()
    world, saga = await shop.world()
    cut = version_of(world, saga, "tell")
    wanted = ev.CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True, back_to=cut)
    await world.service().rollback(saga, wanted)
    await world.settle()
    plan = (await fork(world, saga, version=cut, dry_run=True))["plan"]
    assert [one.step for one in plan.left] == ["send"], "nothing undoes it"
    await fork(world, saga, version=cut, outputs={"quote": {"price": 9}})
    pays = [one for one in shop.acts if one[0] in ("pay", "refund")]
    assert pays == [("pay", 3), ("refund", 3), ("pay", 9)]


async def test_a_repeated_step_acts_again_and_no_other_does() -> None:
    shop = Shop()
    world, saga = await shop.world()
    answer = await fork(world, saga, version=version_of(world, saga, "tell"), repeat=("pay",))
    assert _kinds(answer["plan"]) == {"pay": "new", "send": "kept"}
    pays = [one for one in shop.acts if one[0] == "pay"]
    assert (pays, await shown(world, saga)) == ([("pay", 3), ("pay", 3)], ("completed", 3))
    await fork(world, saga, version=1)
    assert len([one for one in shop.acts if one[0] == "pay"]) == 2, "the new key is kept by later forks"


@pytest.mark.parametrize(
    ("item", "branch"),
    [
        ("${ctx.pay.output}", ""),
        ("tea", """, branch: {rules: [{if: "output == '9'", then: quote}], default: send}"""),
    ],
)
async def test_a_step_that_reads_a_repeated_one_or_is_chosen_by_it_may_act_again(
    item: str, branch: str
) -> None:
    shop = Shop(f"""
name: shop
nodes:
  pay: {{tool: book, with: {{price: 3}}{branch}}}
  send: {{tool: send, with: {{item: '{item}'}}, after: pay}}
  quote: {{tool: quote, with: {{item: tea}}, after: pay}}
""")

    @tool("book", registry=shop.registry)
    async def book(price: int) -> str:
        shop.note("book", price)
        return str(len(shop.acts))

    world, saga = await shop.world()
    plan = (await fork(world, saga, version=1, repeat=("pay",), dry_run=True))["plan"]
    assert (_kinds(plan)["pay"], _kinds(plan)["send"]) == ("new", "unsure")
    with pytest.raises(NotAllowedNow):
        await fork(world, saga, version=1, repeat=("pay",))
    await fork(world, saga, version=1, repeat=("pay",), leave=True)
    assert [one for one in shop.acts if one[0] == "book"] == [("book", 3), ("book", 3)]


async def test_a_step_that_has_done_nothing_behind_the_cut_cannot_be_repeated(says: Says) -> None:
    world, saga = await Shop().world()
    with says.raised(UserError):
        await fork(world, saga, before="send", repeat=("pay",))


async def test_an_effect_that_an_earlier_fork_has_left_counts_until_it_is_met_again() -> None:
    """The first fork expects to meet the payment; a change before that would leave it without its key."""
    shop = Shop()
    world, saga = await shop.world()
    cut = version_of(world, saga, "tell")
    await world.service().fork_with(saga, "", version=cut)  # and no worker has looked at it yet
    with pytest.raises(NotAllowedNow):
        await world.service().fork_with(saga, "", version=cut, outputs={"quote": {"price": 9}})


@pytest.mark.parametrize("place", ["quote", "pay"])
async def test_an_effect_of_a_branch_with_other_values_is_not_met_by_a_fork_that_leaves_these(
    place: str,
) -> None:
    """The second fork has no change of its own, and takes back that of the first one: nothing would undo its payment."""
    shop = Shop()
    world, saga = await shop.world()
    cut = version_of(world, saga, place)
    await fork(world, saga, before="tell", outputs={"quote": {"price": 9}}, leave=True)
    assert [one for one in shop.acts if one[0] == "pay"] == [("pay", 3), ("pay", 9)]
    plan = (await fork(world, saga, version=cut, dry_run=True))["plan"]
    assert [(one.step, one.version) for one in plan.left if one.key == "unsure"] == [
        ("pay", version_of(world, saga, "pay"))
    ]
    with pytest.raises(NotAllowedNow):
        await fork(world, saga, version=cut)
    await fork(world, saga, before="pay")
    assert await shown(world, saga) == ("completed", 9), "the present values meet it"
    await fork(world, saga, version=cut, leave=True)
    assert await shown(world, saga) == ("completed", 3)


@pytest.mark.parametrize("place", ["quote", "pay"])
async def test_an_effect_of_a_graph_that_a_fork_leaves_is_not_met(place: str) -> None:
    shop = Shop()
    world, saga = await shop.world()
    cut = version_of(world, saga, place)
    dear = shop.document.replace("'${ctx.quote.output.price}'", "9")
    await world.service().register(dear, json_only=False)
    await fork(world, saga, before="tell", workflow="shop@2", leave=True)
    plan = (await fork(world, saga, version=cut, dry_run=True))["plan"]
    assert [one.step for one in plan.left if one.key == "unsure"] == ["pay"]
    with pytest.raises(NotAllowedNow):
        await fork(world, saga, version=cut)
    await fork(world, saga, before="pay")
    assert await shown(world, saga) == ("completed", 9), "the present graph meets it"
    await fork(world, saga, version=cut, leave=True)
    assert await shown(world, saga) == ("completed", 3)


# ---- repeated requests


async def test_the_same_key_with_another_body_is_refused_and_the_same_body_forks_once() -> None:
    world, saga = await Shop().world()
    first = await fork(world, saga, "k", before="send", input={"item": "mug"}, leave=True)
    again = await fork(world, saga, "k", before="send", input={"item": "mug"}, leave=True)
    assert (first["changed"], again["changed"], again["plan"]) == (True, False, None)
    for other in ({"before": "send"}, {"before": "pay", "input": {"item": "mug"}}, {"version": 4}):
        with pytest.raises(KeyReused):
            await fork(world, saga, "k", **other)
    wanted = ev.CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True)
    with pytest.raises(KeyReused):
        await world.service().rollback(saga, wanted, "k")
    assert sum(isinstance(one, ev.Forked) for one in world.events(saga)) == 1


# ---- another version of the document


async def register(world: World, document: str) -> None:
    await world.service().register(document, json_only=False)


async def test_a_saga_goes_on_from_its_failed_step_with_the_corrected_version() -> None:
    shop = Shop(SHOP.replace("'${ctx.quote.output.price}'", "'${ctx.tell.output}'"))
    world, saga = await shop.world()
    assert (await shown(world, saga))[0] != "completed", "a text is no price"
    await register(world, SHOP)
    shop.acts.clear()
    await fork(world, saga, before="pay", workflow="shop@2")
    assert (await shown(world, saga), shop.acts) == (("completed", 3), [("pay", 3), ("send", "tea")])
    (changed,) = [one for one in world.events(saga) if isinstance(one, ev.GraphChanged)]
    assert changed.outputs.keys() == {"quote"}, "the first graph read it no more"
    assert (await world.queries().show(saga))["workflow"] == "shop"
    again = await fork(world, saga, before="send", workflow="shop@2")
    assert len([one for one in world.events(saga) if isinstance(one, ev.GraphChanged)]) == 1, (
        "it runs that one"
    )
    assert again["changed"]


async def test_an_effect_whose_step_is_another_one_in_the_new_version_may_be_repeated(says: Says) -> None:
    shop = Shop()
    world, saga = await shop.world()
    await register(world, SHOP.replace("'${ctx.quote.output.price}'", "5"))
    with says.raised(NotAllowedNow):
        await fork(world, saga, before="tell", workflow="shop@2")
    plan = (await fork(world, saga, before="tell", workflow="shop@2", dry_run=True))["plan"]
    assert _kinds(plan) == {"pay": "unsure", "send": "kept", "tell": "kept"}
    await fork(world, saga, before="tell", workflow="shop@2", leave=True)
    assert await shown(world, saga) == ("completed", 5)


async def test_a_version_that_cannot_go_on_from_there_is_refused_with_all_problems(says: Says) -> None:
    shop = Shop()
    world, saga = await shop.world()
    lacks = SHOP.replace("  tell: {tool: tell, with: {text: hello}, after: quote}\n", "")
    await register(world, lacks.replace("after: tell", "after: quote").replace("[item]", "[item, n]"))
    count = len(world.entries(saga))
    with says.raised(InvalidInput) as refused:
        await fork(world, saga, before="tell", workflow="shop@2")
    assert {one.path.partition("/")[2].partition("/")[0] for one in refused.value.problems} >= {
        "nodes",
        "input",
    }
    with says.raised(UserError):
        await register(world, SHOP.replace("name: shop", "name: other"))
        await fork(world, saga, before="tell", workflow="other")
    with pytest.raises(NotFound):
        await fork(world, saga, before="tell", workflow="shop@9")
    assert len(world.entries(saga)) == count


async def test_a_worker_at_work_goes_on_with_the_new_version() -> None:
    """The fork comes while the old branch waits in its second step; what ran is not done again."""
    shop = Shop(SHOP.replace("tell: {tool: tell, with: {text: hello}", "tell: {wait: {for: 1h}"))
    world = World(shop.registry)
    world.switch_on()
    await register(world, shop.document)
    view, _ = await world.service().start("shop", {"item": "tea"}, "key")
    await asyncio.sleep(30)
    await register(world, SHOP)
    await fork(world, view["id"], version=1, workflow="shop@2", leave=True)
    assert await shown(world, view["id"]) == ("completed", 3)
    assert [name for name, _ in shop.acts] == ["quote", "quote", "tell", "pay", "send"]


# ---- other writers meanwhile


class SlowShop(Shop):
    """A shop whose payment waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

        @tool("slow", registry=self.registry, effect="once", key=Key.node(), undo="refund", timeout="10m")
        async def slow(price: int) -> int:
            self.begun.set()
            await self.go.wait()
            self.note("pay", price)
            return price

        self.document = SHOP.replace("tool: pay", "tool: slow")

    async def paying(self) -> tuple[World, str, int]:
        """A saga whose payment is under way, and the version before it."""
        world = World(self.registry, timeout_s=600)
        world.switch_on()
        await register(world, self.document)
        view, _ = await world.service().start("shop", {"item": "tea"}, "key")
        await self.begun.wait()
        return world, view["id"], (await world.queries().show(view["id"]))["version"]


async def test_a_call_under_way_counts_as_an_effect_of_unknown_outcome_until_a_pause_lets_it_end(
    says: Says,
) -> None:
    shop = SlowShop()
    world, saga, cut = await shop.paying()
    changed: dict[str, Any] = {"version": cut, "outputs": {"quote": {"price": 9}}}
    plan = (await fork(world, saga, **changed, dry_run=True))["plan"]
    assert [(one.step, one.doubtful, one.key) for one in plan.left] == [("pay", True, "unsure")]
    with says.raised(NotAllowedNow):
        await fork(world, saga, **changed)
    await world.service().pause(saga, "to fork it")
    with pytest.raises(NotAllowedNow):
        await fork(world, saga, **changed)  # it still runs, and the worker holds the saga
    shop.go.set()
    await asyncio.sleep(30)
    plan = (await fork(world, saga, **changed, dry_run=True))["plan"]
    assert [(one.step, one.doubtful, one.key) for one in plan.left] == [("pay", False, "unsure")]
    await fork(world, saga, **changed, leave=True)
    assert await shown(world, saga) == ("completed", 9)


async def test_a_paused_saga_whose_worker_is_gone_has_nothing_under_way() -> None:
    shop = Shop(SHOP.replace("tell: {tool: tell, with: {text: hello}", "tell: {wait: {signal: go}"))
    world, saga = await shop.world()
    await world.service().pause(saga, "to fork it")
    await world.service().signal(saga, "go", None, "s")
    await asyncio.sleep(60)
    cut = (await world.queries().show(saga))["version"]
    plan = (await fork(world, saga, version=cut, input={"item": "mug"}, dry_run=True))["plan"]
    assert plan.left == []


async def test_a_payment_that_is_made_while_a_fork_is_on_its_way_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fork was checked before the payment was in the log: its entry is refused, and all is checked again."""
    shop = Shop(SHOP.replace("tell: {tool: tell, with: {text: hello}", "tell: {wait: {signal: go}"))
    world, saga = await shop.world()
    cut = (await world.queries().show(saga))["version"]
    arm = Request.arm

    async def slowly(request: Request, head: Any) -> int:
        until = await arm(request, head)
        monkeypatch.setattr(Request, "arm", arm)
        await world.service().signal(saga, "go", None, "s")
        await asyncio.sleep(20)
        return until

    monkeypatch.setattr(Request, "arm", slowly)
    with pytest.raises(NotAllowedNow):
        await fork(world, saga, version=cut, outputs={"quote": {"price": 9}})
    assert [one for one in shop.acts if one[0] == "pay"] == [("pay", 3)]
    assert not [one for one in world.events(saga) if isinstance(one, ev.Forked)]


async def test_forks_at_once_with_one_key_are_one_and_with_two_keys_follow_each_other() -> None:
    shop = Shop()
    world, saga = await shop.world()
    same = await asyncio.gather(
        *(
            world.service().fork_with(saga, "k", before="send", input={"item": "mug"}, leave=True)
            for _ in range(3)
        )
    )
    assert sorted(one["changed"] for one in same) == [False, False, True]
    await world.settle()
    two = (world.service().fork_with(saga, key, before="send") for key in ("a", "b"))
    answers = await asyncio.gather(*two, return_exceptions=True)
    await world.settle()
    assert await shown(world, saga) == ("completed", 3)
    assert shop.acts[-1] == ("send", "mug"), "a later fork keeps the input of the one before"
    refused = [one for one in answers if isinstance(one, UserError)]
    forks = [one for one in world.events(saga) if isinstance(one, ev.Forked)]
    assert len(forks) + len(refused) == 3, "the second finds that the step has not begun since the first"


async def test_a_rollback_that_begins_meanwhile_refuses_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop()
    world, saga = await shop.world()
    arm = Request.arm

    async def slowly(request: Request, head: Any) -> int:
        monkeypatch.setattr(Request, "arm", arm)
        wanted = ev.CancelRequested(reason="", by="", at=0, grace_ms=0, undo=True)
        await world.service().rollback(saga, wanted)
        await asyncio.sleep(15)
        return await arm(request, head)

    monkeypatch.setattr(Request, "arm", slowly)
    with pytest.raises(UserError):
        await fork(world, saga, before="send", input={"item": "mug"}, leave=True)
    assert (await shown(world, saga))[0] == "rolled_back"


@pytest.mark.parametrize("item", ["cake", "tea"])
async def test_a_retry_keeps_the_changes_since_the_first_attempt_at_the_failed_step(item: str) -> None:
    """They came while the step failed: another output by a fork, and another step behind it by a patch."""
    shop = Shop(SHOP.replace("tool: pay", "tool: busy"))

    @tool("busy", registry=shop.registry)
    async def busy(price: int) -> int:
        if "busy" in shop.fails:
            raise StepFailure("busy", "no", kind="transient" if "patient" in shop.fails else "permanent")
        shop.note("busy", price)
        return price

    shop.fails |= {"busy", "patient"}
    world = World(shop.registry)
    world.switch_on()
    await world.service().register(shop.document, json_only=False)
    saga = (await world.service().start("shop", {"item": "tea"}, "key"))[0]["id"]
    while not (await world.queries().show(saga))["failing"]:
        await asyncio.sleep(0.1)
    version = (await world.queries().show(saga))["version"]
    await world.service().fork_with(saga, "", version=version, outputs={"quote": {"price": 9}}, leave=True)
    if item == "cake":
        await patch(world, saga, [{"op": "replace", "path": "/nodes/send/with/item", "value": item}])
    shop.fails.discard("patient")
    await world.settle()
    assert (await shown(world, saga))[0] == "failed"
    shop.fails.clear()
    await world.service().retry(saga, "again")
    await world.settle()
    assert (await shown(world, saga), shop.acts[-2:]) == (("completed", 9), [("busy", 9), ("send", item)])
