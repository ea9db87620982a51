"""`std.pay`, `std.find_payment` and `std.refund`: a payment in two phases against a payment service that
speaks HTTP.

Reserve, execute, confirm; or reserve, be refused, release; later perhaps refund. Each phase has an
idempotency key of its own, made of the step's, so that the next attempt after a crash, wherever it was, finds
what was done and goes on from there. What the service has to understand is in docs/tools.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import msgspec
from pydantic import BaseModel, Field

from baton.core.effects.risk import PAYMENT, Risk
from baton.ports import StepContext, StepFailure
from baton.ports.outside import HttpAnswer
from baton.tools.define import Registry
from baton.tools.standard.http import host_of, signed_headers
from baton.tools.standard.kit import Services, exchange, read_json, response_failure, standard_tool

RESERVED, EXECUTED, CONFIRMED, RELEASED = "reserved", "executed", "confirmed", "released"
REFUNDED = "refunded"
STATUSES = frozenset({RESERVED, EXECUTED, CONFIRMED, RELEASED, REFUNDED})
OF_A_REFUND: Final = "/refund"  # at the end of the reference of a refund
REFUSED = "refused"

# Refusals that say nothing of the payment: unknown caller, another request under way, too early, too often.
_LATER = frozenset({401, 408, 409, 425, 429})
# A released reservation has moved nothing, and is over for good: a later attempt makes another. So many of one step.
MOST_RESERVATIONS = 20

Money = Annotated[
    int, Field(gt=0, le=10**15, description="In the smallest unit of the currency, such as cents.")
]
Currency = Annotated[str, Field(pattern="^[A-Z]{3}$", description="ISO 4217, such as EUR.")]
Account = Annotated[str, Field(min_length=1, max_length=200)]
Reference = Annotated[str, Field(min_length=1, max_length=200)]


class Payment(BaseModel):
    """A payment that was executed and confirmed."""

    payment: str
    status: Literal["confirmed"] = "confirmed"
    amount: int
    currency: str
    to: str
    reference: str


class Refund(BaseModel):
    """All of a payment was paid back. `reference` is the refund's own, and cannot be refunded."""

    refund: str
    status: Literal["refunded"] = "refunded"
    payment: str
    amount: int
    currency: str
    reference: str


class _Reservation(msgspec.Struct):
    """Reservation as the service reports it; other fields are ignored."""

    id: str
    status: str
    amount: int
    currency: str
    to: str
    payment: str = ""
    refund: str = ""
    reason: str = ""


class _Reservations(msgspec.Struct):
    reservations: list[_Reservation]


def declare(registry: Registry, services: Services) -> None:
    @standard_tool(
        "std.pay", registry=registry, effect="once", verify="std.find_payment", undo="std.refund", domain="external_api",
        risk=Risk(action=PAYMENT, amount="amount", currency="currency", minor=True),
    )  # fmt: skip
    async def pay(
        amount: Money, currency: Currency, to: Account, context: StepContext, account: Account = "default",
        memo: str = "", service: str = "",
    ) -> Payment:  # fmt: skip
        """Pay once, in two phases: reserve the amount on `account`, execute,
        confirm; a refusal releases it again.

        `service` is the address of the payment service; without one that of the deployment.
        """
        desk = _Desk(services, context, service)
        wanted = {
            "amount": amount, "currency": currency, "to": to, "account": account, "memo": memo,
            "reference": context.idempotency_key,
        }  # fmt: skip
        return await desk.pay(wanted)

    @standard_tool("std.find_payment", registry=registry, domain="external_api")
    async def find_payment(context: StepContext, service: str = "") -> dict[str, Any]:
        """Return the payment that `std.pay` made with this idempotency key, if any.
        Confirm one that was not confirmed yet.
        """
        found = await _Desk(services, context, service).find()
        return {"happened": False} if found is None else {"happened": True, "result": found.model_dump()}

    # Its keys are made of the payment's reference: whichever step asks, and however often, it is one refund.
    @standard_tool("std.refund", registry=registry, domain="external_api", timeout="2m")
    async def refund(reference: Reference, context: StepContext, service: str = "") -> Refund:
        """Pay all of a payment back, once. A refund itself is not paid back.

        reference: that of the payment, as `std.pay` has given it.
        """
        return await _Desk(services, context, service).refund(reference)


class _Desk:
    """The payment service, as one step sees it."""

    def __init__(self, services: Services, context: StepContext, service: str) -> None:
        self._services = services
        self._context = context
        self._url = (service or services.payments_url).rstrip("/")
        self._is_named = not service
        if not self._url:
            raise StepFailure(
                "input_invalid",
                "no payment service: name one in `service`, or set `PaymentsUrl` of the deployment",
            )
        if not context.idempotency_key:
            raise StepFailure("input_invalid", "a payment needs the idempotency key of its step")
        self._key = context.idempotency_key

    async def pay(self, wanted: dict[str, Any]) -> Payment:
        """Pay.
        Raises `StepFailure`; `business_rule` for a payment that was refused, and whose reservation is
        released.
        """
        # First what there is: a service may well repeat its first answer to a key, however long ago that was true.
        try:
            known = await self._known(self._key)
        except StepFailure as error:
            raise _unasked(error) from error
        if any(one.status == REFUNDED for one in known):
            raise StepFailure(
                "business_rule", f"{self._host}: this payment was made and refunded", happened=False
            )
        made = next((one for one in known if one.status != RELEASED), None)
        number = 1 + sum(one.status == RELEASED for one in known)
        if number > MOST_RESERVATIONS:
            raise StepFailure("business_rule", f"{self._host} has refused this payment {number - 1} times")
        if made is None:
            made = await self._reservation(
                "/reservations", f"{self._key}-reserve-{number}", "reserve", wanted
            )
        self._same(made, wanted)
        if made.status == RESERVED:
            made = await self._execute(made, number)
        return await self._finished(made)

    async def find(self) -> Payment | None:
        """Return the payment of this key, confirmed; None if no money was moved:
        then nothing is reserved any more, either.
        """
        known = await self._known(self._key)
        for one in known:
            if one.status in (EXECUTED, CONFIRMED):
                return await self._finished(one)
        number = 1 + sum(one.status == RELEASED for one in known)
        for one in known:
            if one.status == RESERVED:  # this may be the last call for this payment
                path, key = f"/reservations/{_part(one.id)}/release", f"{self._key}-release-{number}"
                made = await self._reservation(path, key, "release", {})
                if made.status != RELEASED:
                    raise StepFailure(
                        "invalid_response", f"{self._host} says `{made.status}` where it should have released"
                    )
        return None

    async def refund(self, reference: str) -> Refund:
        """Refund a payment.
        Raises `StepFailure`; `business_rule` if it has no refundable sum, or the service refuses.
        """
        if reference.endswith(OF_A_REFUND):
            raise StepFailure(
                "business_rule", "this is a refund, and a refund is not refunded", happened=False
            )
        known = await self._known(reference)
        made = next((one for one in known if one.status in (EXECUTED, CONFIRMED, REFUNDED)), None)
        if made is None:
            raise StepFailure(
                "business_rule", f"{self._host}: nothing was paid with this reference", happened=False
            )
        if made.status != REFUNDED:
            made = await self._reservation(
                f"/reservations/{_part(made.id)}/refund", f"{reference}-refund-1", "refund", {}
            )
        if made.status != REFUNDED:
            raise StepFailure(
                "invalid_response", f"{self._host} says `{made.status}` where it should have refunded"
            )
        return Refund(
            refund=made.refund or made.id, payment=made.payment or made.id, amount=made.amount, currency=made.currency,
            reference=reference + OF_A_REFUND,
        )  # fmt: skip

    async def _finished(self, made: _Reservation) -> Payment:
        """Return the payment, confirmed. A refused confirmation says nothing of the money: that was moved."""
        moved = made.status == EXECUTED
        try:
            return self._paid(await self._confirm(made) if moved else made)
        except StepFailure as error:
            what = f"the payment `{made.payment or made.id}` was executed, but is not confirmed: "
            raise _in_doubt(error, what if moved else "") from error

    async def _known(self, reference: str) -> list[_Reservation]:
        """Return all reservations of a payment, as they stand."""
        answer = await self._send("GET", f"/reservations?reference={_part(reference)}", "", None)
        try:
            made = msgspec.json.decode(answer.body, type=_Reservations).reservations
        except msgspec.DecodeError as error:
            raise self._strange(answer) from error
        if any(one.status not in STATUSES for one in made):
            raise self._strange(answer)
        return made

    async def _execute(self, made: _Reservation, number: int) -> _Reservation:
        path = f"/reservations/{_part(made.id)}"
        try:
            done = await self._reservation(f"{path}/execute", f"{self._key}-execute-{number}", "execute", {})
        except StepFailure as error:
            # What was not sent has moved nothing, but the reservation stands.
            if not 400 <= error.status < 500 or error.status in _LATER:
                raise _in_doubt(error) from error
            why, status = error.message, error.status
        else:
            if done.status != REFUSED:
                return done
            why, status = f"{self._host}: {done.reason or 'no reason was given'}", 0
        # Not before it is certain that nothing was moved. Should this fail, the next attempt is refused again, by the
        # same key, and releases.
        await self._reservation(f"{path}/release", f"{self._key}-release-{number}", "release", {})
        message = f"the payment was refused and its reservation is released: {why}"
        raise StepFailure("business_rule", message, status=status, happened=False)

    async def _confirm(self, made: _Reservation) -> _Reservation:
        return await self._reservation(
            f"/reservations/{_part(made.id)}/confirm", f"{self._key}-confirm-1", "confirm", {}
        )

    async def _reservation(self, path: str, key: str, phase: str, body: dict[str, Any]) -> _Reservation:
        answer = await self._send("POST", path, key, body)
        try:
            made = msgspec.json.decode(answer.body, type=_Reservation)
        except msgspec.DecodeError as error:
            raise self._strange(answer) from error
        if made.status not in STATUSES and not (phase == "execute" and made.status == REFUSED):
            raise self._strange(answer)
        return made

    async def _send(self, method: str, path: str, key: str, body: dict[str, Any] | None) -> HttpAnswer:
        content = b"" if body is None else msgspec.json.encode(body)
        who = signed_headers(self._services, self._context, method, self._url + path, key, content=content)
        headers = {"accept": "application/json", "content-type": "application/json"} | who
        answer = await exchange(
            self._services, self._context, method, self._url + path, headers=headers, key=key, body=content,
            named=self._is_named,
        )  # fmt: skip
        if answer.status >= 300:
            raise response_failure(self._host, answer)
        return answer

    @property
    def _host(self) -> str:
        return host_of(self._url)

    def _same(self, made: _Reservation, wanted: dict[str, Any]) -> None:
        """Refuse another payment's reservation: a service that gives it out is not to be trusted."""
        if (made.amount, made.currency, made.to) != (wanted["amount"], wanted["currency"], wanted["to"]):
            what = (
                f"{self._host} has another payment under this key: {made.amount} {made.currency} to {made.to}"
            )
            raise StepFailure("conflict", what)

    def _strange(self, answer: HttpAnswer) -> StepFailure:
        what = "JSON of another shape" if read_json(answer.body) is not None else "what is not JSON"
        return StepFailure(
            "invalid_response", f"{self._host} answered with {what}; docs/tools.md has the right one"
        )

    def _paid(self, made: _Reservation) -> Payment:
        if made.status != CONFIRMED:
            raise StepFailure(
                "invalid_response", f"{self._host} says `{made.status}` where it should have confirmed"
            )
        return Payment(
            payment=made.payment or made.id, amount=made.amount, currency=made.currency, to=made.to,
            reference=self._key,
        )  # fmt: skip


def _in_doubt(error: StepFailure, what: str = "") -> StepFailure:
    """Return the failure as one that may have moved money, whatever the service says of the rest."""
    return StepFailure(
        error.code,
        what + error.message,
        kind=error.kind,
        status=error.status,
        retry_after=error.retry_after,
        happened=True,
    )


def _unasked(error: StepFailure) -> StepFailure:
    """Return the failure as one of a call that has only looked:
    nothing was sent by it that could move money. Of calls before it that says nothing.
    """
    return StepFailure(
        error.code,
        error.message,
        kind=error.kind,
        status=error.status,
        retry_after=error.retry_after,
        unsent=True,
    )


def _part(name: str) -> str:
    """Return the service's own name for a reservation, as one part of a path."""
    return quote(name, safe="")
