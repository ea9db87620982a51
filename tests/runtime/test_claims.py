"""Claims of once-only effects as operators see them: found by a saga's log or by a key, looked at, and freed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from baton import Context, Key, StepFailure, tool
from baton.core.effects.keys import KeyRule
from baton.errors import NotAllowedNow, NotFound, UserError
from baton.ports.records import IN_PROGRESS
from baton.runtime.requests.claims import ClaimService
from tests.kit.corpus import CORPUS, start
from tests.kit.faults import Crash
from tests.kit.sentences import Says
from tests.kit.views import as_json
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, USER, World

PAY = "name: w\nnodes: {pay: {tool: pay.card, with: {invoice: '${input.invoice}', password: hunter2}}}"
OPEN = PAY.replace("}}}", "}, on_failure: fail}}")


class Bank:
    """Takes payments. `fate`: what the next ones come to; `paid`: those that were made."""

    def __init__(self, world: World, *, key: KeyRule | None = None) -> None:
        self.fate: list[Any] = []
        self.paid: list[str] = []
        rule = key or Key.business("invoice", "invoice")

        @tool("pay.card", effect="once", timeout="10s", registry=world.registry, key=rule)
        async def pay(invoice: str, password: str, context: Context) -> dict[str, str]:
            fate = self.fate.pop(0) if self.fate else None
            if isinstance(fate, Exception):
                raise fate
            await asyncio.sleep(5)
            self.paid.append(context.saga)
            if fate == "dies":
                world.running[context.saga, context.node].is_dead = True
                raise Crash
            return {"payment": f"{invoice}/{len(self.paid)}", "token": "sk-1234567890abcdef1234567890abcdef"}

        @tool("pay.note", registry=world.registry)
        async def note() -> None: ...

        world.tools = world.registry.specs()


async def begin(world: World, key: str, document: str = PAY) -> str:
    await world.service().register(document, json_only=False)
    view, _ = await world.service().start("w", {"invoice": "17"}, key)
    return str(view["id"])


def claims(world: World) -> ClaimService:
    return world.service_without_faults().claims


async def of_saga(world: World, saga: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = as_json(await claims(world).of_saga(saga, 0, 10_000))["claims"]
    return found


async def the_claim(world: World, saga: str) -> dict[str, Any]:
    (claim,) = await of_saga(world, saga)
    return claim


@pytest.mark.parametrize("name", ["lends", "replans", "mapped", "asked", "order"])
def test_every_claim_of_a_saga_is_found_from_its_log(name: str) -> None:
    """Those of steps, inverses, items, calls of agents, children, what a model plans, and functions."""
    (scenario,) = (one for one in CORPUS if one.name == name)

    async def main() -> None:
        world = World.start(limits=scenario.limits)
        await scenario.drive(world)
        await world.settle()
        found = [claim for head in world.log.heads() for claim in await of_saga(world, head.ref.id)]
        assert {claim["key"] for claim in found} == {key for _, key in world.effects.stored}
        stored = world.effects.stored
        assert all(claim["saga"] == stored[TENANT, claim["key"]].saga for claim in found)

    run_virtual(main())


async def test_a_claim_names_its_holder_while_it_is_held_and_the_maker_of_its_result_after() -> None:
    world = World.start()
    Bank(world)
    saga = await begin(world, "1")
    await asyncio.sleep(3)
    held = await the_claim(world, saga)
    assert (held["tool"], held["status"], held["saga"], held["node"]) == (
        "pay.card",
        "in_progress",
        saga,
        "pay",
    )
    assert (held["attempt"], held["result"], held["expires_at"]) == (1, None, None)
    assert held["since"] < held["held_until"]
    await world.settle()
    other = await begin(world, "2")
    await world.settle()
    done = await the_claim(world, other)
    assert (done["status"], done["saga"], done["held_until"]) == ("completed", saga, None)
    assert done["result"] == {"payment": "17/1", "token": "[redacted]"}
    assert done == await the_claim(world, saga) == as_json(await claims(world).show(held["key"]))


async def test_a_failure_is_shown_and_the_next_saga_with_the_key_acts() -> None:
    world = World.start()
    bank = Bank(world)
    bank.fate = [StepFailure("card_declined", "password=hunter2 was refused", kind="permanent")]
    first = await begin(world, "1", OPEN)
    await world.settle()
    claim = await the_claim(world, first)
    assert (claim["status"], claim["error"]["code"]) == ("failed", "card_declined")
    assert "hunter2" not in str(claim)
    await asyncio.sleep(60)
    second = await begin(world, "2", OPEN)
    await world.settle()
    assert bank.paid == [second]
    assert (await the_claim(world, first))["saga"] == second


async def test_an_operator_frees_a_claim_whose_outcome_is_unknown_and_says_so(
    says: Says, caplog: pytest.LogCaptureFixture
) -> None:
    world = World.start()
    bank = Bank(world)
    bank.fate = ["dies"]
    saga = await begin(world, "1", OPEN)
    await world.settle()
    claim = await the_claim(world, saga)
    assert (claim["status"], claim["saga"], bank.paid) == ("unknown_outcome", saga, [saga])
    with says.raised(NotAllowedNow):
        await claims(world).free(claim["key"], "no payment", force=False)
    with caplog.at_level(logging.WARNING, "baton.claims"):
        freed = as_json(await claims(world).free(claim["key"], "no payment", force=True))
    assert (freed["status"], freed["freed_by"], freed["freed_because"]) == (
        "freed",
        USER,
        "no payment",
    )
    (line,) = (one for one in caplog.records if one.name == "baton.claims")
    audit = {name: vars(line)[name] for name in ("key", "tool", "saga", "slot", "was", "by", "reason")}
    assert audit == {
        "key": claim["key"],
        "tool": "pay.card",
        "saga": saga,
        "slot": "pay",
        "was": "unknown_outcome",
        "by": USER,
        "reason": "no payment",
    }
    assert freed == await the_claim(world, saga)
    assert as_json(await claims(world).free(claim["key"], "again", force=False)) == freed, (
        "a repeated request"
    )
    second = await begin(world, "2", OPEN)
    await world.settle()
    assert bank.paid == [saga, second]
    assert (await the_claim(world, second))["freed_by"] is None


@pytest.mark.parametrize(("seconds", "status"), [(3, "in_progress"), (30, "completed")])
async def test_without_force_no_claim_is_freed_that_may_have_happened(
    seconds: int, status: str, says: Says
) -> None:
    world = World.start()
    Bank(world)
    saga = await begin(world, "1")
    await asyncio.sleep(seconds)
    claim = await the_claim(world, saga)
    assert claim["status"] == status
    with says.raised(NotAllowedNow):
        await claims(world).free(claim["key"], "late", force=False)
    assert (await the_claim(world, saga))["status"] == status


async def test_what_happens_under_a_live_holder_whose_claim_is_freed() -> None:
    """Without another caller its result counts; one that comes before its end acts, too, as the operator was told."""
    for comes_early, paid in ((False, ["1"]), (True, ["1", "2"])):
        world = World.start()
        bank = Bank(world)
        names = {await begin(world, "1"): "1"}
        await asyncio.sleep(3)
        (saga,) = names
        await claims(world).free((await the_claim(world, saga))["key"], "it hangs", force=True)
        if not comes_early:
            await world.settle()
        names[await begin(world, "2")] = "2"
        await world.settle()
        assert [names[one] for one in bank.paid] == paid
        assert (await the_claim(world, saga))["status"] == "completed"


async def test_a_claim_that_changes_while_it_is_freed_is_left(says: Says) -> None:
    world = World.start()
    Bank(world)
    saga = await begin(world, "1")
    await asyncio.sleep(3)
    claim = await the_claim(world, saga)
    ((place, seen),) = world.effects.stored.items()
    assert seen.status == IN_PROGRESS
    service = claims(world)
    read = service._read

    async def late(key: str) -> Any:
        found = await read(key)
        world.effects.stored[place] = replace(seen, owner="another", saga="s2")
        return found

    service._read = late  # type: ignore[method-assign]
    with says.raised(NotAllowedNow):
        await service.free(claim["key"], "it hangs", force=True)


async def test_claims_are_found_by_the_key_of_the_business() -> None:
    world = World.start()
    Bank(world)
    saga = await begin(world, "1")
    await world.settle()
    assert await found(world, {"invoice": " 17 "}) == [await the_claim(world, saga)]
    assert await found(world, {"invoice": "18"}) == []


async def test_claims_are_found_by_the_key_of_a_document_and_of_a_window() -> None:
    world = World.start()
    Bank(world, key=Key.window("1h", "invoice"))
    keyed = PAY.replace("{tool", "{key: 'invoice ${input.invoice}', tool")
    saga = await begin(world, "1", keyed)
    await world.settle()
    assert await found(world, {}, key="invoice 17") == [await the_claim(world, saga)]
    assert await found(world, {}, key="invoice 17", user="eve") == []
    later = await begin(world, "2")
    await world.settle()
    assert await found(world, {"invoice": "17"}) == [await the_claim(world, later)]
    assert await found(world, {"invoice": "17"}, at=1) == []


async def test_a_key_that_is_none_is_refused(says: Says) -> None:
    world = World.start()
    Bank(world)
    for name in ("pay.note", "pay.card"):
        with says.raised(UserError):
            await found(world, {}, name)
    with says.raised(NotFound):
        await found(world, {}, "pay.crad")
    with says.raised(NotFound):
        await claims(world).show("0" * 32)
    world = World.start()
    Bank(world, key=Key.node())
    with says.raised(UserError):
        await found(world, {"invoice": "17"})


async def found(
    world: World,
    given: Mapping[str, Any],
    tool_name: str = "pay.card",
    *,
    key: str = "",
    user: str = "",
    at: int = 0,
) -> list[dict[str, Any]]:
    page = as_json(await claims(world).of_key(tool_name, given, key, user, at))
    assert page["next"] is None
    listed: list[dict[str, Any]] = page["claims"]
    return listed


async def test_claims_come_in_pages() -> None:
    world = World.start()
    Bank(world, key=Key.node())
    chain = "name: w\nnodes:\n" + "".join(
        f"  p{n}: {{tool: pay.card, with: {{invoice: '{n}', password: x}}{f', after: p{n - 1}' if n else ''}}}\n"
        for n in range(3)
    )
    saga = await start(world, chain, {}, "w")
    await world.settle()
    keys: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await claims(world).of_saga(saga, after, 1)
        assert len(page.claims) <= 1
        keys, after = [*keys, *(claim.node for claim in page.claims)], page.next
    assert keys == ["p0", "p1", "p2"]
