"""Workflows that others start: where `baton check` and `baton deploy-workflow` find them, and what they say of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

PARENT = "name: parent\nnodes: {a: {workflow: %s}}\n"
CHILD = """\
name: child
input: {type: object, required: [city], properties: {city: {type: string}}}
nodes: {a: {wait: {for: 1s}}}
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_child_is_looked_for_beside_the_document(baton: Baton, tmp_path: Path, says: Says) -> None:
    write(tmp_path, "child.yaml", CHILD)
    write(tmp_path, "broken.yaml", "a: [")
    write(tmp_path, "data.json", "[1]")
    result = baton("check", "-q", write(tmp_path, "parent.yaml", PARENT % "child"))
    assert result.exit_code == 1
    says.within(result.stdout)


def test_a_version_of_a_child_may_take_something_else(baton: Baton, tmp_path: Path) -> None:
    write(tmp_path, "child.yaml", CHILD)
    result = baton("check", "-q", write(tmp_path, "parent.yaml", PARENT % "child@1"))
    assert (result.exit_code, "note" in result.stdout) == (0, False)


def test_a_child_that_is_nowhere_is_a_note(baton: Baton, tmp_path: Path, says: Says) -> None:
    write(tmp_path, "child.yaml", CHILD)
    result = baton("check", "-q", "--json", write(tmp_path, "parent.yaml", PARENT % "chidl"))
    assert result.exit_code == 0
    says(json.loads(result.stdout)[0]["notes"])


def test_a_workflow_of_the_application_is_known_too(baton: Baton, tmp_path: Path, says: Says) -> None:
    result = baton("check", "-q", write(tmp_path, "parent.yaml", PARENT % "dinner"))
    says.within(result.stdout)


def registered(name: str, *notes: str) -> tuple[int, dict[str, object]]:
    return 201, {"name": name, "version": 1, "graph": "abc", "notes": list(notes)}


@pytest.mark.parametrize("order", [("parent", "child"), ("child", "parent")])
def test_children_are_deployed_before_those_that_start_them(
    api: FakeApi, baton: Baton, tmp_path: Path, order: tuple[str, str]
) -> None:
    files = {
        "parent": write(tmp_path, "parent.yaml", PARENT % "child" + "# {city: x}\n"),
        "child": write(tmp_path, "child.yaml", "name: child\nnodes: {a: {workflow: parent}}\n"),
    }
    api.on("POST /workflows", registered("a"), registered("b"))
    assert baton("deploy-workflow", *(files[name] for name in order)).exit_code == 0
    first, second = order
    # Each starts the other: then they go as they are given, the second before what starts it.
    assert [asked.text for asked in api.asked] == [Path(files[name]).read_text() for name in (second, first)]


def test_the_child_goes_first_and_the_order_stays_else(api: FakeApi, baton: Baton, tmp_path: Path) -> None:
    texts = [
        PARENT % "child",
        "name: other\nnodes: {a: {wait: {for: 1s}}}\n",
        "name: child\nnodes: {a: {wait: {for: 1s}}}\n",
    ]
    files = [write(tmp_path, f"f{index}.yaml", text) for index, text in enumerate(texts)]
    api.on("POST /workflows", registered("a"), registered("b"), registered("c"))
    assert baton("deploy-workflow", *files).exit_code == 0
    assert [asked.text for asked in api.asked] == [texts[2], texts[0], texts[1]]


def test_notes_of_the_api_are_shown_and_are_in_the_json(
    api: FakeApi, baton: Baton, tmp_path: Path, says: Says
) -> None:
    file = write(tmp_path, "small.yaml", "name: small\nnodes: {a: {wait: {for: 1s}}}\n")
    answer = registered("small", "`a`, `b` share a key")
    api.on("POST /workflows", answer, answer)
    shown = baton("deploy-workflow", file).stdout
    says(shown)
    says(json.loads(baton("deploy-workflow", "--json", file).stdout)["notes"])
