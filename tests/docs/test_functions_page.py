"""The page about workflow functions and the README: their files work as they say, in a project that has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import OF_ITS_OWN, README, ROOT, Page

PAGE = Page(ROOT / "docs/functions.md")
BATON = ("-c", "from baton.cli import main; main()")
MORE = """
from baton.testing import run
from sagas.desk import help_desk
from sagas.orders import fulfil
from sagas.pickup import ship_or_pick_up
from sagas.reminders import remind
from baton import StepFailure


def no_courier(order):
    raise StepFailure("no_courier", "the strike goes on", kind="permanent")


def test_other_functions_of_the_page():
    gone = {"orders.ship": no_courier}
    assert run(ship_or_pick_up, {"order": "o1"}).output == "parcel-o1"
    assert run(ship_or_pick_up, {"order": "o1"}, stand_ins=gone, signals={"picked_up": None}).output == "picked up"
    assert run(ship_or_pick_up, {"order": "o1"}, stand_ins=gone).error.startswith("not_picked_up")
    result = run(remind, {"friend": "ann", "days": 3})
    assert (result.output, result.took_s) == (3, 3 * 86_400)
    assert run("weekend", {"order": "o1"}).status == "completed"
    models = {"triage": [{"order": "o1", "is_urgent": False}], "model": ["It is on its way."]}
    assert run(help_desk, {"message": "Where is o1"}, models=models).output == "It is on its way."


def test_both_forms_of_the_readme_do_the_same():
    results = [run(name, {"name": "Ada"}) for name in ("greeting", "greeter")]
    assert [(one.output["sent"], one.took_s) for one in results] == [("Hello, Ada!", 5.0)] * 2
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    for path, text in (
        README.files() | PAGE.files() | {"layers/app/sagas/__init__.py": "", "tests/test_more.py": MORE}
    ).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return folder


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(map(str, (ROOT / "layers/engine", folder / "layers/app")))
    environment = {**os.environ, "PYTHONPATH": path, **OF_ITS_OWN}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


def test_its_tests_pass(project: Path) -> None:
    done = python(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 passed" in done.stdout


def test_the_check_says_what_it_shows_and_has_no_problem_and_no_note_of_any_workflow(project: Path) -> None:
    """Of the one that the page checks, the same is told among all."""
    (shown,) = re.findall(
        r"^\$ baton check order-fulfilment\n(.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL
    )
    done = python(project, *BATON, "check")
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    summaries = [line for line in done.stdout.splitlines() if ": ok, " in line]
    assert len(summaries) == 10
    assert "note: " not in done.stdout


def test_a_note_is_as_it_says(project: Path, tmp_path: Path) -> None:
    (note,) = re.findall(r"^sagas.orders:fulfil: (note: .*)$", PAGE.text, re.MULTILINE)
    source = PAGE.files()["layers/app/sagas/orders.py"]
    source = source.replace("import Context", "import Context", 1).replace(
        "    await context.step(charge", "    time.time()\n    await context.step(charge"
    )
    (tmp_path / "layers/app/sagas").mkdir(parents=True)
    (tmp_path / "layers/app/sagas/__init__.py").write_text("")
    (tmp_path / "layers/app/sagas/orders.py").write_text(
        source.replace('"""\n\nfrom', '"""\nimport time\nfrom', 1)
    )
    found = python(tmp_path, *BATON, "check", "-q", "order-fulfilment").stdout
    assert re.sub(r":\d+:", ":", note) in re.sub(r":\d+:", ":", found)
