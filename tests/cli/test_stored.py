"""`baton value`: what an entry only names, fetched and put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.cli.test_show import SAGA, entry
from tests.kit.sentences import Says

DIGEST = "ab12" * 16
REF = f"cas://sha256/{DIGEST}"
PATH = f"/sagas/s1/values/{DIGEST}"
OUTPUT = {"ref": REF, "size": 12_288}


def page(**fields: Any) -> tuple[int, Any]:
    return 200, {"ref": REF, "size": 9, "value": None, "part": None, "next": None} | fields


def log(*refs: str) -> tuple[int, Any]:
    events = [{"kind": "step_succeeded", "node": "a", "output": {"ref": ref, "size": 12_288}} for ref in refs]
    return 200, {"entries": [entry(1, events=events)], "next": None}


@pytest.mark.parametrize("reference", [REF, DIGEST, "cas://sha256/ab12ab…", "ab12"])
def test_a_value_is_printed_as_json_by_its_reference_or_the_beginning_of_it(
    api: FakeApi, baton: Baton, reference: str
) -> None:
    api.on("GET /sagas/s1/events", log(REF, "cas://sha256/" + "c" * 64, REF))
    api.on(f"GET {PATH}", page(value={"n": [1]}))
    assert json.loads(baton("value", "s1", reference).stdout) == {"n": [1]}


def test_its_parts_are_put_together(api: FakeApi, baton: Baton) -> None:
    api.on(f"GET {PATH}", page(part='{"n": ', next=6), page(part="4}"))
    assert json.loads(baton("value", "s1", REF).stdout) == {"n": 4}
    assert [asked.query for asked in api.asked] == [{}, {"after": "6"}]


def test_a_beginning_of_none_or_of_several_is_refused(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1/events", log(REF, "cas://sha256/ab12" + "c" * 60))
    several = baton("value", "s1", "ab12")
    assert (several.exit_code, REF in several.stderr) == (2, True)
    none = baton("value", "s1", "ffff")
    assert none.exit_code == 3
    says(none.stderr)
    wrong = baton("value", "s1", "soup")
    assert (wrong.exit_code, "hexadecimal" in wrong.stderr) == (2, True)


def test_the_log_and_the_saga_say_where_a_value_is(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1/events", log(REF))
    assert f"output={REF} (12,288 bytes)" in baton("events", "s1").stdout
    api.on("GET /sagas/s1", (200, SAGA | {"status": "completed", "large_result": OUTPUT}))
    assert f"value s1 {REF}" in baton("show", "s1").stderr
