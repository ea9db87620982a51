"""The chat page of examples/chat in a browser: messages, an approval in the middle, a reload, and the end."""

from __future__ import annotations

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from playwright.sync_api import Browser, expect

from baton import tool
from baton.errors import UserError
from baton.local.gateway import HttpRequest
from baton.testing.models import call
from baton.tools.define import Registry
from baton.web.app import matches
from baton.web.routes import ROUTES
from tests.browser.site import Site

CHAT = Path(__file__).parents[2] / "examples/chat"
SCRIPT = {
    "talk": [
        "Hello. Which order?",
        call("order.refund", order=7),
        "It is paid back <b>today</b>.",
        "Good bye.",
    ]
}


class ChatSite(Site):
    """The page, and the routes of the API for a person who may read, run and answer."""

    def answer(self, request: HttpRequest) -> Any:
        if request.path == "/page.html":
            return _answer(200, (CHAT / "page.html").read_text("utf-8"), "text/html")
        found = [one for one in ROUTES if one.method == request.method and matches(one.path, request.path)]
        if not found:
            return _answer(404, "")  # the icon that a browser asks for
        route = found[0]
        parts = zip(route.path.split("/"), request.path.split("/"), strict=True)
        path = {name[1:-1]: value for name, value in parts if name[:1] == "{"}

        async def work() -> Any:
            caller = await self.admission({"sub": "ada", "tenant": "acme", "roles": "[read run answer]"}, {})
            try:
                said = json.loads(request.body) if request.body else None
                said = await caller(
                    route.id, path, dict(parse_qsl(request.query)), said, request.header("idempotency-key")
                )
            except UserError as error:
                return _answer(409, json.dumps({"detail": str(error)}))
            return _answer(HTTPStatus.OK, json.dumps(said))

        answer = self.run(work())
        self.run_for(1)
        return answer


def _answer(status: int, body: str, kind: str = "application/json") -> dict[str, Any]:
    return {"statusCode": int(status), "headers": {"content-type": kind}, "body": body}


def test_a_customer_talks_approves_a_refund_comes_back_and_ends(chromium: Browser) -> None:
    registry, paid = Registry(), list[int]()

    @tool("order.refund", registry=registry)
    async def refund(order: int) -> str:
        """Pay an order back."""
        paid.append(order)
        return "paid back"

    with ChatSite(registry, SCRIPT).open() as site:
        site.register((CHAT / "chat.yaml").read_text("utf-8"))
        page = chromium.new_page()
        complaints = list[str]()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site.url}/page.html")
        log, text = page.get_by_role("log"), page.get_by_label("Message")

        def say(words: str) -> None:
            text.fill(words)
            page.get_by_role("button", name="Send").click()

        say("I want my money back.")
        expect(log).to_contain_text("Hello. Which order?")
        say("Order 7.")
        page.get_by_role("button", name="approve").click()
        expect(log).to_contain_text("It is paid back <b>today</b>.")
        assert paid == [7]
        page.reload()
        said = ["I want my money back.", "Hello. Which order?", "Order 7.", "It is paid back <b>today</b>."]
        expect(log.locator("p")).to_have_text(said)
        say("Thanks.")
        expect(log.locator("p")).to_have_text([*said, "Thanks.", "Good bye."])
        page.get_by_role("button", name="End", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("The conversation is over.")
        page.close()
        assert complaints == []
