"""The documents on docs/schedules.md compile, and are started as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from baton.core.documents.compile import compile_document
from baton.core.schedules import decide_tick, next_tick, register_version

PAGE = (Path(__file__).parents[2] / "docs/schedules.md").read_text("utf-8")
DOCUMENTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
NOW = 1_795_780_800_000


def test_there_are_three() -> None:
    assert len(DOCUMENTS) == 3


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_has_a_tick_and_an_input_for_it(text: str) -> None:
    graph = compile_document(text, {})
    assert graph.schedule is not None
    record = register_version(None, "acme", graph.name, 1, "mia", graph.schedule, NOW)
    assert record is not None
    assert record.due == next_tick(graph.schedule, NOW, NOW) > NOW
    assert decide_tick(record, (), record.due).opening is not None
