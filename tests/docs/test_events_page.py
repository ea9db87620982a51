"""The documents on docs/events.md compile, and do with an event what the page says."""

from __future__ import annotations

import re
from pathlib import Path

from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Graph
from baton.runtime.requests.events import DEEDS, LATER, REFUSED

PAGE = (Path(__file__).parents[2] / "docs/events.md").read_text("utf-8")


def graphs() -> list[Graph]:
    return [compile_document(text, {}) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def test_there_are_three() -> None:
    found = [graph.events for graph in graphs()]
    assert [events.types for events in found if events is not None] == [
        ("payment.settled",),
        ("order.placed", "payment.settled"),
        ("Object Created",),
    ]


def test_every_word_of_an_answer_is_explained() -> None:
    section = PAGE.split("## What is answered\n")[1].split("\n## ")[0]
    told = set(re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE))
    assert told - {"did"} == DEEDS.keys() - {LATER, REFUSED}, "these make the whole answer 429 or 422"
