"""The pages with workflow functions: README, functions, and what is ported from other systems. Their files work as they
say, in a project that has them all.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.pages import README, ROOT, Page
from tests.docs.projects import tried_out

PAGE = Page(ROOT / "docs/functions.md")
PORTED = Page(ROOT / "docs/coming-from.md")
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


def test_its_files_work_as_it_says(tmp_path: Path) -> None:
    """Of the workflow that the page checks, the same is told among all. A second one has the page's mistake."""
    (shown,) = re.findall(
        r"^\$ baton check order-fulfilment\n(.*?)^```$", PAGE.text, re.MULTILINE | re.DOTALL
    )
    (note,) = re.findall(r"^sagas.orders:fulfil: (note: .*)$", PAGE.text, re.MULTILINE)
    hasty = PAGE.files()["layers/app/sagas/orders.py"].replace('"""\n\nfrom', '"""\nimport time\nfrom', 1)
    hasty = hasty.replace("    await context.step(charge", "    time.time()\n    await context.step(charge")
    hasty = hasty.replace('"order', '"hasty')
    more = {"tests/test_more.py": MORE, "layers/app/sagas/hasty.py": hasty}
    said = tried_out(tmp_path, README.files() | PAGE.files() | PORTED.files() | more)
    assert f"{12 + 7} passed" in said
    assert "ok, settle-claim" in said
    assert shown in said
    assert said.count(": ok, ") == 10 + 4 + 1
    assert re.findall(r"note: .*", re.sub(r":\d+:", ":", said)) == [
        re.sub(r":\d+:", ":", note.replace("orders.py", "hasty.py"))
    ]
