"""The page of recipes: every document of it runs, and does what the page says of it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from baton import StepFailure
from baton.core.documents.text import parse_document
from baton.testing import Result, run
from baton.tools.define import Registry, tool
from tests.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs/cookbook.md")
RECIPES = {
    str(parse_document(text).value["name"]): text
    for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL)
}


class Office:
    """The tools of the page. `mails` were sent, `calls` are those of the other tools; `most` mails went out at once."""

    def __init__(self, *, slow: float = 0, broken: tuple[str, ...] = (), ready_after: int = 1) -> None:
        self.mails: list[str] = []
        self.calls: list[str] = []
        self.most = self._sending = 0
        self.slow, self.broken, self.ready_after = slow, broken, ready_after

    def _does(self, what: str) -> str:
        self.calls.append(what)
        if any(word in what for word in self.broken):
            raise StepFailure("out_of_order", f"{what}: not possible", kind="permanent")
        return what

    def registry(self) -> Registry:
        registry = Registry()
        self._add_sales(registry)
        self._add_batches(registry)
        return registry

    def _add_sales(self, registry: Registry) -> None:
        @tool("mail.send", registry=registry)
        async def send(to: str, text: str) -> None:
            self._sending += 1
            self.most = max(self.most, self._sending)
            await asyncio.sleep(1)
            self._sending -= 1
            self.mails.append(f"{to}: {text}")

        @tool("invoice.pay", registry=registry)
        def pay(invoice: str, cents: int) -> str:
            return self._does(f"{invoice} {cents}")

        @tool("account.open", registry=registry)
        def account(customer: str, country: str, number: str) -> str:
            return self._does(f"{customer} {country} {number}")

        @tool("supplier.quote", registry=registry)
        async def quote(item: str) -> dict[str, int]:
            await asyncio.sleep(self.slow)
            return {"cents": len(self._does(item))}

        @tool("catalogue.price", registry=registry, effect="pure")
        def price(item: str) -> dict[str, int]:
            return {"cents": 500}

    def _add_batches(self, registry: Registry) -> None:
        @tool("report.order", registry=registry)
        def order(month: str) -> dict[str, str]:
            return {"id": f"R-{month}"}

        @tool("report.look", registry=registry, effect="pure")
        def look(id: str) -> dict[str, bool]:
            return {"ready": self.calls.count(self._does(f"look at {id}")) >= self.ready_after}

        @tool("report.fetch", registry=registry, effect="pure")
        def fetch(id: str) -> str:
            return f"{id}.pdf"

        @tool("newsletter.send_page", registry=registry)
        def page(list: str, begin: int | None) -> dict[str, int | None]:
            self._does(f"{list} from {begin}")
            following = (begin or 0) + 100
            return {"sent": 100 if following < 300 else 7, "next": following if following < 300 else None}

        @tool("ledger.close", registry=registry)
        def close(office: str, month: str) -> str:
            return self._does(f"{office} {month}")

        @tool("courier.call", registry=registry)
        def courier(order: str) -> str:
            if self.calls.count(self._does(f"courier for {order}")) < self.ready_after:
                raise StepFailure("no_courier", "no courier is free", kind="permanent")
            return f"{order} is on its way"

        @tool("trip.book", registry=registry)
        def book(what: str) -> str:
            return self._does(f"book {what}")

        @tool("trip.cancel", registry=registry)
        def cancel(what: str) -> str:
            return self._does(f"cancel {what}")

    def run(self, name: str, given: Any, **options: Any) -> Result:
        return run(RECIPES[name], given, tools=self.registry(), workflows=[*RECIPES.values()], **options)


def test_an_approval_is_given_rejected_or_not_given() -> None:
    invoice = {"invoice": "I-7", "cents": 900}
    paid = Office().run("pay-an-invoice", invoice, answers={"agree": "approve"})
    assert paid.output == {"receipt": "I-7 900", "approved_by": "tester"}
    for answer in ("reject", None):
        office = Office()
        refused = office.run("pay-an-invoice", invoice, answers={"agree": answer})
        assert (refused.status, office.calls, refused.output["receipt"]) == ("completed", [], None)
        assert office.mails[0].startswith("tester: I-7 is not paid: ")


def test_data_from_a_person_are_used_and_need_not_come() -> None:
    data = {"country": "AT", "number": "12345"}
    result = Office().run("open-an-account", {"customer": "Ann"}, answers={"form": {"data": data}})
    assert result.output == {"account": "Ann AT 12345", "lacking": None}
    result = Office().run("open-an-account", {"customer": "Ann"}, answers={"form": None})
    assert (result.output["lacking"], result.took_s) == ("Ann has sent nothing", 14 * 86_400)


def test_a_question_is_escalated_and_decided() -> None:
    office = Office()
    result = office.run("release-a-payment", {"supplier": "Corks"}, answers={"release": None})
    assert (result.status, office.calls, len(office.mails)) == ("completed", [], 1)
    assert 2 * 86_400 <= result.took_s < 2 * 86_400 + 120
    result = Office().run("release-a-payment", {"supplier": "Corks"}, answers={"release": "approve"})
    assert result.output == {"paid": "Corks 100"}


@pytest.mark.parametrize(
    ("slow", "output"), [(5, {"quoted": 4, "listed": None}), (40, {"quoted": None, "listed": 500})]
)
def test_a_deadline_has_a_default(slow: float, output: dict[str, Any]) -> None:
    office = Office(slow=slow)
    result = office.run("quote-or-list-price", {"item": "wine"})
    assert (result.output, len(office.mails)) == (output, 1)
    assert result.took_s == min(slow, 20) + 1


def test_a_long_wait_ends_at_its_time_or_by_a_signal() -> None:
    trial = {"ends": "2100-03-01T00:00:00Z"}
    office = Office()
    result = office.run("trial", trial)
    assert (result.output, office.calls) == ("trial_is_over", ["tester 900"])
    assert result.took_s > 58 * 86_400
    office = Office()
    result = office.run("trial", trial, signals=[("10d", "cancelled", None)])
    assert (result.output, office.calls, office.mails[-1]) == ("cancelled", [], "tester: Goodbye")


def test_a_reminder_is_sent_with_the_time_of_its_tick() -> None:
    office = Office()
    result = office.run("monthly-reminder", {"month": "2026-12-01T09:00:00+01:00"})
    assert result.status == "completed"
    assert office.mails == ["books@example.com: The month before 2026-12-01T09:00:00+01:00 is to be closed"]


def test_a_guest_is_told_of_each_delay_until_the_delivery_arrives() -> None:
    office, news = Office(), [("1h", "news", {"minutes": 20}), ("2h", "news", {"minutes": 5})]
    given = {"delivery": "D-1", "guest": "ada"}
    result = office.run("follow-a-delivery", given, signals=[*news, ("3h", "news", {"minutes": 0})])
    assert result.status == "completed"
    assert office.mails == ["ada: Your delivery is 20 minutes late", "ada: Your delivery is 5 minutes late"]
    assert 10_800 <= result.took_s < 10_900


def test_a_report_is_asked_for_until_it_is_ready_or_too_late() -> None:
    office = Office(ready_after=3)
    result = office.run("report", {"month": "May"})
    assert (result.output, len(office.calls)) == ("R-May.pdf", 3)
    assert 1200 <= result.took_s < 1260
    late = Office(ready_after=99)
    result = late.run("report", {"month": "May"})
    assert (result.error, len(late.calls)) == ("report_too_late: the report of May is not ready", 50)


def test_a_batch_has_two_at_work_at_a_time() -> None:
    office = Office()
    offices = ["graz", "linz", "milan", "rome", "vienna"]
    result = office.run("notify-all", {"text": "hello", "offices": offices})
    assert (office.most, sorted(office.mails)) == (2, [f"{one}: hello" for one in offices])
    assert result.output == {"told": 5, "failed": 0}


def test_a_batch_goes_on_from_page_to_page_once_a_minute() -> None:
    office = Office()
    result = office.run("newsletter", {"list": "guests"})
    assert office.calls == ["guests from None", "guests from 100", "guests from 200"]
    assert (result.output, 120 <= result.took_s < 130) == (7, True)


def test_one_of_three_may_fail_and_two_may_not() -> None:
    result = Office(broken=("south",)).run("three-offers", {"item": "oil"})
    assert list(result.output["offers"]) == ["east", "north"] or set(result.output["offers"]) == {
        "east",
        "north",
    }
    assert [error["node"] for error in result.output["lacking"]] == ["south"]
    result = Office(broken=("south", "east")).run("three-offers", {"item": "oil"})
    assert (result.status, result.error.partition(":")[0]) == ("failed", "too_few_offers")


def test_a_child_that_fails_does_not_hold_up_the_others() -> None:
    given = {"month": "May", "offices": ["vienna", "graz", "rome", "linz"]}
    office = Office(broken=("graz",))
    result = office.run("close-the-month", given)
    assert [one["status"] for one in result.output] == ["succeeded", "failed", "succeeded", "succeeded"]
    assert (result.output[0]["output"], office.mails) == ("vienna May", [])
    office = Office(broken=("graz", "rome", "linz"))
    result = office.run("close-the-month", given)
    assert (result.status, result.output) == ("completed", None)
    assert office.mails == ["tester: 3 offices are not closed"]


@pytest.mark.parametrize(
    ("broken", "undone"),
    [("flight", []), ("hotel", ["flight to Rome"]), ("car", ["hotel in Rome", "flight to Rome"])],
)
def test_what_was_booked_is_cancelled_backwards(broken: str, undone: list[str]) -> None:
    office = Office(broken=(f"book {broken}",))
    result = office.run("trip", {"city": "Rome"})
    assert result.status == ("rolled_back" if undone else "failed")
    assert [call.removeprefix("cancel ") for call in office.calls if call.startswith("cancel")] == undone
    assert result.undone == [what.partition(" ")[0] for what in undone]
    assert result.error.startswith("out_of_order")


def test_what_is_booked_stays_if_all_goes_well() -> None:
    office = Office()
    assert office.run("trip", {"city": "Rome"}).output == "book car in Rome"
    assert len(office.calls) == 3


def test_children_are_started_until_one_succeeds_and_each_undoes_what_it_has_done() -> None:
    office = Office(ready_after=3)
    assert office.run("ship-an-order", {"order": "A7"}).output == "A7 is on its way"
    assert office.calls.count("book a box for A7") == 3
    assert office.calls.count("cancel a box for A7") == 2
    office = Office(ready_after=4)
    result = office.run("ship-an-order", {"order": "A7"})
    assert (result.status, result.output) == ("completed", None)
    assert office.calls.count("cancel a box for A7") == 3
    assert office.mails[0].startswith("tester: A7 goes by post")


def test_a_host_is_told_of_a_party_that_failed_once_it_is_undone() -> None:
    office = Office(broken=("book cook",))
    result = office.run("cater-a-party", {"day": "Friday"})
    assert (result.status, office.calls[-1]) == ("rolled_back", "cancel hall on Friday")
    assert office.mails == ["tester: No party on Friday: book cook on Friday: not possible"]
    assert Office().run("cater-a-party", {"day": "Friday"}).output == "book cook on Friday"


def test_every_recipe_has_a_test_here_or_is_the_child_of_one() -> None:
    source = Path(__file__).read_text("utf-8")
    children = set(re.findall(r"workflow: ([a-z-]+)", PAGE.text))
    assert {name for name in RECIPES if f'run("{name}"' not in source} == children
