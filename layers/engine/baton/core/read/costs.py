"""From usage to dollars, and the answer that shows them. What is used is counted in usage.py, prices are in prices.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from baton.core.read import prices
from baton.core.read.bill import Usage
from baton.core.read.prices import Price

_PRICED: tuple[tuple[str, Price], ...] = (
    ("write_units", prices.WRITE_UNIT),
    ("read_units", prices.READ_UNIT),
    ("sqs_requests", prices.SQS_REQUEST),
    ("http_requests", prices.HTTP_REQUEST),
    ("lambda_requests", prices.LAMBDA_REQUEST),
    ("gb_seconds", prices.GB_SECOND),
    ("blob_puts", prices.S3_PUT),
    ("blob_gets", prices.S3_GET),
)


class Charge(msgspec.Struct, frozen=True):
    """One line of a bill: so much of something, and dollars for it."""

    what: str
    quantity: float
    unit: str
    usd: float


def charge(price: Price, quantity: float) -> Charge:
    return Charge(price.what, quantity, price.unit, price.usd(quantity))


def bill(usage: Usage) -> list[Charge]:
    """A charge for each thing that has a price, those that were not used included."""
    return [charge(price, getattr(usage, name)) for name, price in _PRICED]


def total_of(charges: Sequence[Charge]) -> float:
    return sum(line.usd for line in charges)


def per_million_steps(charges: Sequence[Charge], steps: int) -> float:
    """Dollars for a million steps at the same mix; 0 when nothing was done."""
    return total_of(charges) / steps * 1_000_000 if steps else 0.0


def cost_view(
    saga: str,
    status: str,
    usage: Usage,
    steps: int,
    invocations: int,
    models: Sequence[Mapping[str, Any]] = (),
    agent_steps: int = 0,
) -> dict[str, Any]:
    """The cost of a saga as `GET /sagas/{id}/cost` shows it. An estimate: see `Ledger` for what is in it.

    Dollars, to the billionth. `models` is what models were paid, by the prices of that time.
    """
    charges, all_steps = bill(usage), steps + agent_steps
    total, paid = total_of(charges), sum(line["usd"] for line in models)
    return {
        "saga": saga,
        "status": status,
        "estimated": True,
        "priced": {"region": prices.REGION, "date": prices.DATE},
        "usd": {"total": _dollars(total + paid), "aws": _dollars(total), "models": _dollars(paid)},
        "aws": [
            asdict(line) | {"quantity": round(line.quantity, 6), "usd": _dollars(line.usd)}
            for line in charges
        ],
        "models": [*models],
        "steps": steps,
        "agent_steps": agent_steps,
        "invocations": invocations,
        "usd_per_million_steps": round(per_million_steps(charges, all_steps), 4) if all_steps else None,
    }


def _dollars(usd: float) -> float:
    return round(usd, 9)
