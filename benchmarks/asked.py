"""What a question to a person costs in write units, all in: a saga that asks one, less a saga that asks nothing.

In virtual time, with every write also on the embedded AWS, where it is counted by DynamoDB's rule; a line of cost.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from baton.adapters.aws import Aws
from baton.core.log.questions import Answer
from benchmarks.figures import Figure, Sample
from tests.kit.corpus import start
from tests.kit.meter import TABLE, Meter, Spent
from tests.kit.mirror import MeteredForPeople
from tests.kit.table import create_table
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual

ASKS = "name: w\nnodes: {ask: {human: {title: Pay?}}, done: {value: 1, after: ask}}"
SILENT = "name: w\nnodes: {ask: {value: 1}, done: {value: 1, after: ask}}"
PARTS = {
    "entries": "its entries: asked, told, answered, closed",
    "rows": "its row in the inbox, put and taken out, index included",
    "place": "the place that its person has for it, taken and freed",
    "notice": "the claim of its notice, and that it was sent",
    "head": "heads: given back, taken again, index rows included",
}
FIGURES = {
    "question": Figure("a question to a person, all in", "write units", digits=0),
    **{f"question {name}": Figure(f"of it, {says}", "write units", digits=0) for name, says in PARTS.items()},
}


def part_of(spent: Spent) -> str:
    """Which part of the price a write belongs to."""
    if "#BUDGET#" in spent.pk:
        return "place"
    if "#NOTICE#" in spent.pk:
        return "notice"
    return {"LOG": "entries", "ASK": "rows", "HEA": "head"}[spent.sk[:3]]


def spent_by(meter: Meter, document: str) -> list[Spent]:
    """What one saga of this document writes."""

    async def main() -> None:
        world = MeteredForPeople(make_registry(Books()), meter=meter)
        world.switch_on()
        saga = await start(world, document, {}, "w")
        await asyncio.sleep(10)
        if document != SILENT:
            await world.service().answer(saga, Answer(ask="0.ask", action="approve"), "")
        await world.settle()

    meter.clear()
    run_virtual(main())
    return list(meter.written)


def price(aws: Callable[[], Aws]) -> Counter[str]:
    """By part. `aws` makes clients, which a meter listens to for good."""
    asks = _alone(aws(), ASKS)
    asks.subtract(_alone(aws(), SILENT))
    return asks


def _alone(aws: Aws, document: str) -> Counter[str]:
    """On a table to itself, because both sagas have the same id."""
    client = aws.dynamodb
    if TABLE in client.list_tables()["TableNames"]:
        client.delete_table(TableName=TABLE)
    create_table(client, TABLE)
    found: Counter[str] = Counter()
    for one in spent_by(Meter(aws), document):
        found[part_of(one)] += int(one.units)
    return found


def measured(endpoint: str) -> Sample:
    asked = price(lambda: Aws(endpoint))
    return {"question": asked.total()} | {f"question {name}": asked[name] for name in PARTS}
