"""An order that cannot be fulfilled is undone, whatever it fails by and whenever, and nothing of it is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from baton import StepFailure
from baton.errors import InvalidInput
from baton.testing import Result, run
from examples.orders import shop as services
from examples.orders import tools
from examples.orders.fulfilment import fulfil
from examples.orders.shop import Shop
from tests.example.conftest import MOMENTS

TEA, KETTLE, SAMOVAR = ({"article": one, "pieces": 2} for one in ("tea", "kettle", "samovar"))
FULL = Shop().stock
STEPS = ("reserve", "reserve#2", "charge", "ship", "tell[2]/write")


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A shop that nothing was bought in."""
    monkeypatch.setattr(services, "SHOP", Shop())
    return services.SHOP


def order(*items: dict[str, Any], card: str = "good", **more: Any) -> Result:
    wanted = {
        "id": "o1",
        "customer": "ann",
        "address": "1 High St",
        "card": card,
        "items": items or (TEA, KETTLE),
    }
    return run(fulfil, {"order": wanted}, **{"signals": {"packed": {"by": "eve"}}, **more})


def is_undone(shop: Shop) -> bool:
    """Nothing is held, under way or paid for; a payment was refunded once."""
    return (shop.stock, shop.held, shop.parcels) == (FULL, {}, set()) and shop.refunded == [*shop.paid]


def is_fulfilled(shop: Shop) -> bool:
    """All is done, once."""
    return (len(shop.held), len(shop.paid), len(shop.parcels), shop.refunded) == (2, 1, 1, [])


def gone(code: str = "closed", kind: str = "permanent", **more: Any) -> Callable[..., Any]:
    async def fails(**_: Any) -> Any:
        raise StepFailure(code, "the office is closed", kind=kind, **more)

    return fails


def test_an_order_is_fulfilled(shop: Shop) -> None:
    result = order()
    assert result.status == "completed", result
    assert result.output == {
        "payment": "p-o1-1",
        "parcel": min(shop.parcels),
        "cents": 9_700,
        "is_customer_told": True,
    }
    assert is_fulfilled(shop)
    assert shop.stock == FULL | {"tea": 18, "kettle": 18}
    assert [to for to, _ in shop.letters] == ["the warehouse", "ann", "accounting"]


# ---- what is refused -----------------------------------------------------------------------------------------------------


def test_what_is_out_of_stock_is_not_sold(shop: Shop) -> None:
    result = order(TEA, {"article": "kettle", "pieces": 21}, SAMOVAR)
    assert (result.status, result.error.partition(":")[0]) == ("rolled_back", "out_of_stock")
    assert is_undone(shop)
    assert shop.paid == {}


def test_a_declined_card_buys_nothing(shop: Shop) -> None:
    result = order(card="stolen")
    assert (result.status, result.error.partition(":")[0]) == ("rolled_back", "card_declined")
    assert is_undone(shop)
    assert shop.paid == {}


@pytest.mark.parametrize(("answer", "days"), [("reject", 0), (None, 2)])
def test_a_large_order_that_no_person_approves_is_undone(shop: Shop, answer: str | None, days: int) -> None:
    result = order(SAMOVAR, answers={"ask": answer})
    assert (result.status, result.error.partition(":")[0]) == ("rolled_back", "rejected")
    assert days * 86_400 <= result.took_s < days * 86_400 + 60
    assert is_undone(shop)
    assert shop.paid == {}


def test_a_large_order_that_a_person_approves_is_fulfilled(shop: Shop) -> None:
    assert order(SAMOVAR, TEA, answers={"ask": "approve"}).status == "completed"
    assert is_fulfilled(shop)


def test_an_order_that_is_not_packed_is_refunded(shop: Shop) -> None:
    result = order(signals={})
    assert (result.status, result.error) == ("rolled_back", "not_packed: o1 was not packed in three days")
    assert result.took_s > 3 * 86_400
    assert is_undone(shop)
    assert len(shop.refunded) == 1


def test_the_warehouse_is_told_of_a_message_that_says_nothing(shop: Shop) -> None:
    with pytest.raises(InvalidInput):
        order(signals={"packed": {"by": 7}})


# ---- what breaks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["permanent", "transient"])
@pytest.mark.parametrize("tool", ["reserve", "charge", "ship"])
def test_a_service_that_is_gone_ends_the_order_and_undoes_it(shop: Shop, tool: str, kind: str) -> None:
    result = order(stand_ins={f"orders.{tool}": gone(kind=kind)})
    has_nothing = (tool, kind) == ("reserve", "permanent")
    assert result.status == ("failed" if has_nothing else "rolled_back")
    assert result.error.startswith("closed: ")
    assert is_undone(shop)
    assert len(shop.refunded) == (tool == "ship")


@pytest.mark.parametrize("kind", ["permanent", "transient"])
def test_an_order_is_fulfilled_although_no_message_can_be_sent(shop: Shop, kind: str) -> None:
    result = order(stand_ins={"orders.write": gone(kind=kind)})
    assert (result.status, result.output["is_customer_told"]) == ("completed", False)
    assert is_fulfilled(shop)


@pytest.mark.parametrize("tool", ["reserve", "charge", "ship", "write"])
def test_a_service_that_is_gone_for_a_moment_is_asked_again(shop: Shop, tool: str) -> None:
    """And what it had done before its answer was lost is not done again."""
    result = order(stand_ins={f"orders.{tool}": once_lost(tool)})
    assert result.status == "completed", result
    assert is_fulfilled(shop)
    assert len(shop.letters) == 3


def once_lost(name: str, times: int = 1) -> Callable[..., Any]:
    """The tool, whose answer is lost so many times."""
    real, left = getattr(tools, name), [None] * times

    async def loses(**given: Any) -> Any:
        answer = await real(**given)
        if left:
            left.pop()
            raise ConnectionResetError("the answer is lost")
        return answer

    return loses


# ---- what cannot be known, and what cannot be undone ---------------------------------------------------------------------

PAID = {"action": "use", "output": {"payment": "p-o1-1"}}


async def cannot_tell(order: str) -> dict[str, Any]:
    return {"happened": None}


@pytest.mark.parametrize(
    ("answers", "status", "refunds"),
    [([PAID], "completed", 0), (["fail", PAID], "rolled_back", 1), (["fail", "fail"], "rollback_failed", 0)],
)
def test_a_person_says_whether_the_bank_has_taken_the_money(
    shop: Shop, answers: list[Any], status: str, refunds: int
) -> None:
    """First for the payment itself; and if it has failed, for what is to be given back."""
    stand_ins = {"orders.charge": once_lost("charge"), "orders.find_payment": cannot_tell}
    result = order(stand_ins=stand_ins, answers={"charge": answers})
    assert (result.status, len(shop.paid), len(shop.refunded)) == (status, 1, refunds), result


def strike(**undone: Any) -> dict[str, Any]:
    return {"orders.ship": gone("no_courier"), **undone}


def test_a_refund_that_fails_is_named_and_the_rest_is_undone(shop: Shop) -> None:
    result = order(stand_ins=strike(**{"orders.refund": gone()}))
    assert (result.status, result.undone) == ("rollback_failed", ["reserve#2", "reserve"])
    assert [one["tool"] for one in result.view["undo"]["failed"]] == ["orders.refund"]
    assert (shop.held, shop.refunded) == ({}, [])


def test_a_refund_whose_answer_is_lost_is_made_once(shop: Shop) -> None:
    result = order(stand_ins=strike(**{"orders.refund": once_lost("refund")}))
    assert (result.status, result.undone) == ("rolled_back", ["charge", "reserve#2", "reserve"])
    assert is_undone(shop)


# ---- moments -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", STEPS)
def test_a_worker_that_dies_at_a_step_changes_nothing(shop: Shop, place: str, moment: str) -> None:
    assert order(kills={place: moment}).status == "completed"
    assert is_fulfilled(shop)
    assert len(shop.letters) == 3


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("place", ["ship", "charge#undo", "reserve#undo"])
def test_an_order_whose_worker_dies_while_it_is_undone_is_refunded_once(
    shop: Shop, place: str, moment: str
) -> None:
    assert order(stand_ins=strike(), kills={place: moment}).status == "rolled_back"
    assert is_undone(shop)
    assert len(shop.refunded) == 1


@pytest.mark.parametrize(
    "at_ms", [pytest.param(ms, marks=[pytest.mark.soak] * (ms % 150 > 0)) for ms in range(0, 1_050, 50)]
)
def test_an_order_that_is_cancelled_at_any_moment_is_undone_or_was_done(shop: Shop, at_ms: int) -> None:
    result = order(cancel={"at": f"{at_ms}ms", "undo": True})
    assert result.status in {"completed", "cancelled", "rolled_back"}
    assert is_fulfilled(shop) if result.status == "completed" else is_undone(shop), result
