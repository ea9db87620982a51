"""The support desk: days of conversation, a delegate, a refund that a person approves, and workers that die."""

from __future__ import annotations

from examples.support_desk import __main__ as desk
from examples.support_desk import tools


def test_the_refund_is_paid_once_after_an_approval_although_workers_die() -> None:
    result = desk.talk()
    assert (result.status, desk.broken(result)) == ("completed", [])


def test_a_refund_that_a_person_rejects_is_not_paid_whatever_the_delegate_says() -> None:
    result = desk.talk("reject", {})
    assert (result.output, tools.REFUNDS) == ("Order 7 is refunded.", {}), "its model reads no results"
