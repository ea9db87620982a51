"""A kind with a line in each registry is all that the engine needs: documents have it from their text to a fork of the saga."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.sentences import Says

ROOT = Path(__file__).parents[3]
# Models are made of the lists when they are imported, so that a test's kind needs a process of its own.
PROGRAM = """
import json
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.nodes.registry import KINDS
from tests.core.nodes.each import EachKind
from tests.core.nodes.each_document import Each

KINDS["each"] = EachKind()
NODE_TYPES.append(Each())

from tests.core.nodes.each_at_work import main

print(json.dumps(main()))
"""


@pytest.fixture(scope="module")
def found() -> Any:
    """What a process made of the kind whose engine has it."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "layers/engine")))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_document_with_it_is_compiled(found: Any) -> None:
    assert found["nodes"] == ["each", "each"]


def test_what_is_wrong_with_it_is_told_where_it_stands(found: Any, says: Says) -> None:
    says(found["problems"])


def test_the_schema_and_the_list_of_kinds_have_it(found: Any) -> None:
    published = found["published"]
    assert (published["good"], published["bad"]) == ([], ["/nodes/ask"])
    assert published["fields"] == ["items", "tool"]
    assert published["capabilities"]["retry"]


def test_it_runs_item_by_item_with_signals_tools_and_retries(found: Any) -> None:
    shown = found["waiting"]
    assert (shown["status"], [one.get("item") for one in shown["active"]]) == ("waiting", [None, "bo"])
    assert found["first"]["status"] == "completed"
    assert found["first"]["result"] == {
        "soup": "soup with salt and sugar",
        "cake": "cake with salt and sugar",
    }
    assert sorted(found["calls"][:3]) == ["cake", "soup", "soup"], "the first soup was none"


def test_it_is_drawn(found: Any) -> None:
    assert found["drawn"]["lines"] == [
        "≡  ask   each of ${input.guests}",
        "≡  cook  each of ['soup', 'cake']",
    ]
    assert 'n0[["ask<br/>each of ${input.guests}"]]' in found["drawn"]["mermaid"]


def test_it_is_explained(found: Any, says: Says) -> None:
    says(found["why"])
    assert found["way"] == {"ask": ["waited", "waited", "passed"], "cook": ["ran", "ran", "passed"]}


def test_a_fork_goes_on_with_what_its_items_had_given(found: Any) -> None:
    assert (found["last"]["status"], found["last"]["branch"]) == ("completed", 1)
    assert found["last"]["result"]["soup"] == "soup with salt and pepper"
