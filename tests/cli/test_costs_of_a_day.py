"""`baton cost --by`: what models and AWS have cost the sagas of a day, its pages added up."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

ROW = {"key": "dinner", "sagas": 2, "input": 1_000, "output": 10, "usd": 0.25}
COSTS = {"day": "2026-11-22", "by": "workflow", "costs": [ROW], "looked_at": 2, "next": "more"}


def test_what_aws_has_cost_names_the_sagas_that_are_not_in_the_sum(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    row = ROW | {"input": 0, "output": 0}
    pages = [
        COSTS | {"costs": [row], "next": after, "left_out": [saga]}
        for after, saga in (("more", "s1"), (None, "s2"))
    ]
    api.on("GET /costs", *((200, page) for page in pages))
    done = baton("cost", "--by", "workflow", "--aws")
    assert all("of=aws" in str(asked) for asked in api.asked)
    assert "read" not in done.stdout.split("\n")[0]
    says(done.stdout)


def test_the_costs_of_a_day_are_added_up_over_pages(api: FakeApi, baton: Baton) -> None:
    other = {"key": "party", "sagas": 1, "input": 5, "output": 1, "usd": 1.0}
    api.on("GET /costs", (200, COSTS), (200, COSTS | {"costs": [other, ROW], "next": None}))
    assert baton("cost", "--by", "workflow").stdout.splitlines() == [
        "workflow  sagas   read  written   cost",
        "party         1      5        1  $1.00",
        "dinner        4  2,000       20  $0.50",
        "$1.50 on 2026-11-22 (UTC)",
    ]


def test_a_day_without_models_says_so_and_has_a_document(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /costs", (200, COSTS | {"costs": [], "next": None}))
    said = baton("cost", "--by", "user", "--day", "2026-11-22").stdout
    says(said)
    document = json.loads(baton("cost", "--by", "user", "--json").stdout)
    assert document == {"day": "2026-11-22", "by": "user", "costs": []}


@pytest.mark.parametrize("words", [(), ("s1", "--by", "user"), ("s1", "--day", "2026-11-22")])
def test_cost_is_of_a_saga_or_of_a_day(baton: Baton, words: tuple[str, ...], says: Says) -> None:
    says(baton("cost", *words).stderr)
