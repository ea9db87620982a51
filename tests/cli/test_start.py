"""`baton start`: what it sends, and how often."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Baton, FakeApi

STARTED = (201, {"id": "s1", "status": "pending", "workflow": "dinner", "version": 1})


def test_it_posts_the_workflow_and_its_input_with_the_token_and_a_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    result = baton("start", "dinner", "--input", '{"party": 4}')
    assert result.exit_code == 0
    (asked,) = api.asked
    assert asked.json == {"workflow": "dinner", "input": {"party": 4}}
    assert asked.headers["authorization"] == "Bearer secret-token"
    assert asked.headers["idempotency-key"]
    assert result.stdout == "s1  dinner, pending\n"
    assert "baton show s1 --watch" in result.stderr


def test_without_an_input_it_sends_an_empty_object(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    assert baton("start", "dinner").exit_code == 0
    assert api.asked[0].json["input"] == {}


def test_json_is_the_answer_of_the_api_and_nothing_else(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    result = baton("start", "dinner", "--json")
    assert (json.loads(result.stdout), result.stderr) == (STARTED[1], "")


def test_set_adds_properties_as_json_where_it_is_json(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    baton(
        "start",
        "dinner",
        "--input",
        '{"a": 1, "b": 1}',
        "--set",
        "b=2",
        "--set",
        "city=Lisbon",
        "--set",
        "ok=true",
    )
    assert api.asked[0].json["input"] == {"a": 1, "b": 2, "city": "Lisbon", "ok": True}


@pytest.mark.parametrize(("name", "text"), [("in.json", '{"party": 4}'), ("in.yaml", "party: 4\n")])
def test_the_input_can_be_a_file(api: FakeApi, baton: Baton, tmp_path: Path, name: str, text: str) -> None:
    api.on("POST /sagas", STARTED)
    (tmp_path / name).write_text(text)
    assert baton("start", "dinner", "--input", f"@{tmp_path / name}").exit_code == 0
    assert api.asked[0].json["input"] == {"party": 4}


def test_the_input_can_come_from_standard_input(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    baton("start", "dinner", "--input", "-", stdin='{"party": 4}')
    assert api.asked[0].json["input"] == {"party": 4}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", '{"a":\n}'], "not JSON at line 2, column 1"),
        (["--input", '{"a": NaN}'], "NaN is not JSON"),
        (["--input", "@/no/such/file.json"], "there is no file /no/such/file.json"),
        (["--set", "party"], "write NAME=VALUE"),
        (["--input", "[]", "--set", "a=1"], "an input that is an object"),
    ],
)
def test_a_wrong_input_is_refused_before_anything_is_sent(
    api: FakeApi, baton: Baton, arguments: list[str], said: str
) -> None:
    result = baton("start", "dinner", *arguments)
    assert (result.exit_code, api.asked) == (2, [])
    assert said in result.stderr.replace("\n", " ") or said in result.stderr


def test_a_busy_api_is_asked_again_with_the_same_key(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", (503, {"title": "Busy"}), (429, {"title": "Slow down"}), STARTED)
    assert baton("start", "dinner").exit_code == 0
    assert len({asked.headers["idempotency-key"] for asked in api.asked}) == 1
    assert len(api.asked) == 3


def test_a_given_key_is_the_one_that_is_sent(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    baton("start", "dinner", "--key", "order-17")
    assert api.asked[0].headers["idempotency-key"] == "order-17"


def test_watch_goes_on_until_the_end(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas", STARTED)
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "completed", "version": 3}))
    assert baton("start", "dinner", "--watch").exit_code == 0
    assert len(api.of("GET", "/sagas/s1")) == 1
