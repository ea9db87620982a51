"""The price of a question that docs/benchmarks.md says is what its requests cost, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from baton.adapters.aws import Aws
from benchmarks import asked, shipped
from tests.kit.quick_moto import hasten

PAGE = Path(__file__).parents[2] / "docs/benchmarks.md"
hasten()


@pytest.fixture
def _account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in shipped.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


@pytest.mark.usefixtures("_account")
def test_a_question_costs_what_the_page_says() -> None:
    parts = asked.price(Aws)
    assert parts == {"entries": 3, "rows": 4, "place": 2, "notice": 2, "head": 8}
    said = f"| | a question to a person, all in, in write units: its entries {parts['entries']}, its row {parts['rows']}"
    assert said in PAGE.read_text("utf-8")
