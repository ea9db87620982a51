"""What a developer's pytest shows of sagas when one of the developer's tests fails.

pytest runs in a process of its own, with the plugin as an installed Baton registers it. What a result says when it is
printed is in test_way.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.kit.sentences import Says

PLUGIN = "baton.testing.pytest_plugin"
TESTS = '''
import pytest
from baton import StepFailure, tool
from baton.testing import run
from baton.tools.define import Registry

TOOLS = Registry()

@tool("shop.find", registry=TOOLS, effect="pure")
def find(n: int) -> int:
    return n

@tool("shop.charge", registry=TOOLS)
def charge(cents: int) -> str:
    raise StepFailure("card_declined", "the bank says no to this card " * 10 + "at last", kind="permanent")

NODES = "".join(f"  find_{n}: {{tool: shop.find, with: {{n: {n}}}}}\\n" for n in range(12))
PAY = f"""
name: pay
nodes:
{NODES}
  charge: {{tool: shop.charge, with: {{cents: 1}}, after: find_11}}
"""
ASK = "name: ask\\nnodes: {ask: {wait: {signal: approved}}}\\n"

def test_status():
    assert run(PAY, tools=TOOLS).status == "completed"

def test_status_with_the_result_as_message():
    result = run(PAY, tools=TOOLS)
    assert result.status == "completed", result

def test_output():
    assert run(PAY, tools=TOOLS).output == {"paid": 1}

def test_waits():
    assert run(ASK, tools=TOOLS).status == "completed"

def test_many():
    for number in range(9):
        result = run(ASK, tools=TOOLS)
    assert result.status == "completed"

@pytest.fixture(scope="module")
def shared():
    return run(ASK, tools=TOOLS)

def test_first_of_a_shared_result(shared):
    assert shared.status == "waiting"

def test_second_of_a_shared_result(shared):
    assert shared.status == "completed"

def test_refused():
    run("name: pay\\nnodes: {a: {tool: shop.fnid}}", tools=TOOLS)

def test_refused_for_its_names():
    run(ASK, tools=TOOLS, signals={"aproved": 1})

def test_passes():
    assert run(ASK, tools=TOOLS).status == "waiting"

def test_has_no_saga():
    assert 1 == 2
'''


def pytest_of(folder: Path, *options: str) -> str:
    """What pytest prints about the tests of a folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment = kept | {
        "PYTHONPATH": str(ROOT / "layers/engine"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), *options]
    done = subprocess.run(
        [*command, str(folder)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The part of the report about each failed test, by its name."""
    folder = tmp_path_factory.mktemp("tests")
    (folder / "test_pay.py").write_text(TESTS)
    report = pytest_of(folder, "-p", PLUGIN).partition("= FAILURES =")[2]
    parts = report.partition("= short test summary")[0].split("\n____")[1:]
    return {part.split()[1]: part for part in parts}


@pytest.mark.parametrize("name", ["test_status", "test_status_with_the_result_as_message", "test_output"])
def test_a_failed_assertion_on_a_result_shows_the_whole_story(shown: dict[str, str], name: str) -> None:
    story = shown[name].partition("Captured sagas call")[2]
    assert "<pay: failed after 0 s (card_declined: " in story
    for number in range(12):
        assert f"  find_{number}: succeeded = {number}\n" in story
    assert "  charge: failed (card_declined: the bank says no" in story
    assert "to this card at last)" in story


def test_the_story_says_what_a_saga_waits_for(shown: dict[str, str], says: Says) -> None:
    says.within(shown["test_waits"])


def test_of_many_sagas_the_last_are_shown_and_the_others_counted(shown: dict[str, str], says: Says) -> None:
    assert shown["test_many"].count("<ask: waiting") == 5
    says.within(shown["test_many"])


def test_a_result_that_comes_from_a_fixture_is_shown_too(shown: dict[str, str]) -> None:
    story = shown["test_second_of_a_shared_result"].partition("Captured sagas call")[2]
    assert story.count("<ask: waiting after 0 s\n") == 1


def test_what_is_refused_is_shown_at_the_line_of_the_test_and_not_inside_the_engine(
    shown: dict[str, str], says: Says
) -> None:
    says.within(shown["test_refused"])
    says.within(shown["test_refused_for_its_names"])
    for name in ("test_refused", "test_refused_for_its_names"):
        assert re.search(r"^>    +run\(", shown[name], re.MULTILINE)
        assert "baton/testing" not in shown[name]
        assert "asyncio" not in shown[name]


def test_a_test_without_a_saga_shows_none(shown: dict[str, str]) -> None:
    assert "sagas" not in shown["test_has_no_saga"].partition("Error")[2]
    assert "test_passes" not in shown
    assert "test_first_of_a_shared_result" not in shown


def test_an_installed_baton_registers_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (name, target), *rest = project["entry-points"]["pytest11"].items()
    assert (name, target, rest) == ("baton", PLUGIN, [])
    assert EntryPoint(name, target, "pytest11").load().pytest_runtest_logstart


def test_the_plugin_costs_nothing_where_no_saga_is_run() -> None:
    code = f"import sys, {PLUGIN}; print([m for m in sys.modules if m.partition('.')[0] in ('msgspec', 'pydantic', 'baton')])"
    environment = dict(os.environ) | {"PYTHONPATH": str(ROOT / "layers/engine")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert sorted(eval(done.stdout)) == ["baton", "baton.core", "baton.core.version", "baton.testing", PLUGIN]
