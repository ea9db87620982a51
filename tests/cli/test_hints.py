"""What a user reads who typed something that nearly is right: the spelling that would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.cli.documents.app import Source
from baton.cli.documents.workflows import check_names
from baton.client.exits import CommandFailed
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

NO_SUCH = {"title": "No", "status": 404, "detail": "there is no workflow `greting`. Did you mean `greeting`?"}


def test_an_empty_list_of_a_workflow_that_is_not_there_names_its_neighbour(
    api: FakeApi, baton: Baton
) -> None:
    api.on("GET /sagas", (200, {"sagas": [], "next": None}))
    api.on("GET /workflows/greting", (404, NO_SUCH))
    result = baton("list", "--workflow", "greting")
    assert (result.exit_code, result.stderr) == (0, f"no such sagas: {NO_SUCH['detail']}\n")


def test_an_empty_list_of_a_workflow_that_is_there_is_only_empty(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", (200, {"sagas": [], "next": None}))
    api.on("GET /workflows/greeting", (200, {"nodes": []}))
    assert baton("list", "--workflow", "greeting").stderr == "no such sagas\n"
    api.on("GET /workflows/greeting", (403, {"title": "No"}))
    assert baton("list", "--workflow", "greeting").stderr == "no such sagas\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["signal", "s1", "go", "--payload", "yes"],
        ["signal", "s1", "go", "--payload", "it's"],
        ["start", "w", "--input", "{name: Ada}"],
        ["start", "w", "--input", "{'name': 'Ada'}"],
        ["start", "w", "name=Ada"],
        ["start", "w", "a=1", "b=c d"],
        ["fork", "s1", "y"],
        ["list", "--limit", "0"],
        ["demo", "--sagas", "3"],
        ["check", "nofile"],
        ["start", "w", "--input", "@nofile"],
        ["start", "w", "--input", "nofile.json"],
        ["signal", "s", "go", "--payload", "a b.yaml"],
    ],
)
def test_a_slip_of_the_command_line_is_answered_with_what_would_be_right(
    api: FakeApi, baton: Baton, arguments: list[str], says: Says
) -> None:
    result = baton(*arguments)
    assert (result.exit_code, api.asked) == (2, [])
    says(result.stderr)


@pytest.mark.parametrize("argument", ["--input=[1", '--input={"a": 1,,}', "--input={"])
def test_nothing_is_guessed_where_nothing_is_known(api: FakeApi, baton: Baton, argument: str) -> None:
    result = baton("start", "w", argument)
    assert (result.exit_code, api.asked) == (2, [])
    assert "write" not in result.stderr


def test_an_argument_too_many_that_is_no_pair_is_only_too_many(baton: Baton) -> None:
    result = baton("start", "w", "more")
    assert (result.exit_code, "--set" in result.stderr) == (2, False)


def refusal(path: str) -> tuple[int, dict[str, Any]]:
    errors = [{"path": path, "message": "42 is not of type 'string'"}]
    return 422, {"type": "urn:baton:problem:invalid-input", "title": "No", "status": 422, "errors": errors}


def test_a_number_where_a_text_is_wanted_is_shown_in_quotes(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /sagas", refusal("/name"))
    said = baton("start", "w", "--set", "name=42", "--set", "city=Rome").stderr
    says(said)


@pytest.mark.parametrize(
    ("path", "arguments"), [("/city", ["--set", "name=42"]), ("/name", ["--input", '{"name": 42}'])]
)
def test_quotes_are_not_the_answer_to_everything(
    api: FakeApi, baton: Baton, path: str, arguments: list[str]
) -> None:
    api.on("POST /sagas", refusal(path))
    assert "--set" not in baton("start", "w", *arguments).stderr


def test_a_parked_saga_is_resumed_by_its_id(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "parked", "version": 3}))
    assert baton("show", "s1", "--watch").stderr.endswith("resume s1\n")


def test_two_documents_of_one_name_are_named_with_what_to_do(tmp_path: Path, says: Says) -> None:
    file = Source("sagas/greeting.yaml", "name: greeting\nnodes: {}\n")
    built = Source("sagas.agreement:greeting", "name: greeting\nnodes: {}\n")
    with pytest.raises(CommandFailed) as caught:
        check_names([file, Source("bad.yaml", "name: ["), Source("odd.yaml", "[]"), built])
    says(caught.value.message)
    says(caught.value.more)
