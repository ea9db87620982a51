"""The graphs of example documents have the hashes that they always had: a saga under way finds its graph by that.

`graphs.json` has them by name. Run `python -m tests.history.test_graph_hashes` after a document was added; a hash that
changes here is a graph that changes for every workflow like it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from baton.core.documents.compile import compile_document
from baton.core.effects.risk import Risk
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import encode_graph, hash_of
from tests.kit import documents

GOLDEN = Path(__file__).with_name("graphs.json")
EXAMPLE = Path(__file__).parents[2] / "layers/app/sagas/dinner.yaml"
EARLIER = Path(__file__).with_name("dinner.yaml")  # as it was before it failed over
TEXTS = {name: text for name, text in vars(documents).items() if isinstance(text, str) and "nodes:" in text}
TEXTS["dinner"] = EARLIER.read_text(encoding="utf-8")
TEXTS["dinner_that_fails_over"] = EXAMPLE.read_text(encoding="utf-8")


# A node that only says how its tool's risk is asked about needs a tool that declares one.
RISKS = {"table.hold": Risk(party="party")}


def hash_now(text: str) -> str:
    """With tools of which nothing is known but a risk: what they take is not what this is about."""
    names = set(re.findall(r"\btool: ([a-z_.]+)", text))
    tools = {
        name: ToolSpec(
            name=name,
            version="1",
            effect="idempotent",
            parameters={"type": "object"},
            result={},
            risk=RISKS.get(name),
        )
        for name in names
    }
    return hash_of(encode_graph(compile_document(text, tools)))


@pytest.mark.parametrize("name", TEXTS)
def test_a_graph_has_the_hash_that_it_always_had(name: str) -> None:
    assert hash_now(TEXTS[name]) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    hashes = {name: hash_now(text) for name, text in sorted(TEXTS.items())}
    GOLDEN.write_text(json.dumps(hashes, indent=2) + "\n", encoding="utf-8")
