"""A mail in the whole deployment: from a step to the outbox of the embedded AWS, once."""

from __future__ import annotations

import httpx
import pytest

from tests.e2e.deployment import Deployment

pytestmark = pytest.mark.e2e

LETTER = "{tool: std.notify, with: {to: ada@home.example, subject: Your table, text: It is yours.}"
TWICE = f"name: mail\nnodes:\n  first: {LETTER}}}\n  again: {LETTER}, after: first}}\n"


def test_a_mail_is_sent_and_the_same_one_again_is_not(everything: Deployment) -> None:
    everything.register(TWICE)
    sagas = [everything.start("mail") for _ in range(2)]
    assert [everything.wait_for(saga)["status"] for saga in sagas] == ["completed"] * 2
    outbox = httpx.get(f"{everything.run.endpoint}/_ministack/ses/messages", trust_env=False).json()["messages"]
    (sent,) = [mail for of in outbox.values() for mail in of]
    assert (sent["Source"], sent["To"], sent["Subject"]) == (
        "desk@lantern.example",
        ["ada@home.example"],
        "Your table",
    )
