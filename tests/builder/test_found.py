"""Workflows of an application are found where they stand: as names of its modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from baton.builder.found import documents, load_document
from baton.core.documents.text import parse_document
from baton.errors import InvalidDefinition, NotFound
from tests.kit.sentences import Says

EVENING = """
from baton import Workflow

evening = Workflow("evening")
evening.wait("pause", "5s")
same_again = evening
"""
BAR = """
from {app}.evening import evening
from baton import Workflow

bar = Workflow("bar")
bar.workflow("child", evening)
"""
Make = Callable[[dict[str, str]], ModuleType]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A package with these modules, imported."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def make(modules: dict[str, str]) -> ModuleType:
        name = f"app_{tmp_path.name.replace('-', '_')}"
        made.append(name)
        (tmp_path / name).mkdir()
        for module, source in {"__init__": "", **modules}.items():
            (tmp_path / name / f"{module}.py").write_text(source.replace("{app}", name))
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield make
    for name in [name for name in sys.modules if name.partition(".")[0] in made]:
        del sys.modules[name]


def test_all_workflows_of_all_modules_are_found_by_name(make: Make) -> None:
    found = documents(make({"evening": EVENING, "bar": BAR, "empty": "x = 1", "_left": "alone = 1 / 0"}))
    assert list(found) == ["bar", "evening"]
    assert parse_document(found["bar"]).value["nodes"] == {"child": {"workflow": "evening"}}


def test_an_application_may_be_one_module(make: Make) -> None:
    app = make({"__init__": EVENING})
    assert list(documents(app)) == ["evening"]


def test_two_workflows_with_one_name_are_refused(make: Make, says: Says) -> None:
    app = make({"evening": EVENING, "late": EVENING})
    name = app.__name__
    with says.raised(InvalidDefinition) as caught:
        documents(app)
    assert f"{name}.evening:evening and {name}.late:evening" in str(caught.value)


def test_a_workflow_with_mistakes_is_named(make: Make, says: Says) -> None:
    app = make({"evening": EVENING + "evening.output({1})\n"})
    with says.raised(InvalidDefinition) as caught:
        documents(app)
    assert [problem.path for problem in caught.value.problems] == ["/output"]


def test_one_is_loaded_by_its_address(make: Make) -> None:
    name = make({"evening": EVENING}).__name__
    assert load_document(f"{name}.evening:evening").startswith("name: evening")


@pytest.mark.parametrize(
    "address",
    [
        "{app}.evening:evning",
        "{app}:x",
        "{app}.nothing:x",
        "nowhere.at.all:x",
        "{app}.evening",
        ":evening",
    ],
)
def test_an_address_that_leads_nowhere_says_what_would_be_right(make: Make, address: str, says: Says) -> None:
    name = make({"evening": EVENING}).__name__
    with pytest.raises(NotFound) as caught:
        load_document(address.replace("{app}", name))
    says(caught.value.detail)


def test_a_module_that_lacks_something_else_is_no_missing_module(make: Make) -> None:
    name = make({"evening": "import not_there_at_all"}).__name__
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        load_document(f"{name}.evening:x")
