"""`POST /intentions`: words start the deployment's workflow for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
WISH = """
name: wish
input:
  type: object
  required: [words, at]
  additionalProperties: false
  properties: {words: {type: string}, at: {type: string}}
nodes:
  say: {tool: trial.echo, with: {value: "${input}"}}
"""
WANTED = {"words": "Dinner for four.", "input": {"at": "tonight"}}


def asked(deployment: Deployment, *bodies: Any, key: str | None = None, workflow: str = "wish") -> list[Any]:
    """What is answered, and then the sagas that there are."""
    with deployment.function("api", BATON_INTENTION_WORKFLOW=workflow) as module:
        http = Http(module)
        http.register(WISH)
        answers = [http.post("/intentions", body, key=key) for body in bodies]
        shown = [http.get(one.body["watch"]).body for one in answers if one.status < 300]
        module._api._loop.close()
        return [*answers, *shown]


def test_words_are_a_property_of_the_input_of_the_workflow(deployment: Deployment) -> None:
    answer, shown = asked(deployment, WANTED)
    assert answer.status == 201
    assert answer.headers["location"] == answer.body["watch"] == f"/sagas/{answer.body['id']}"
    assert (shown["workflow"], shown["user"]) == ("wish", "ada")


def test_the_same_key_starts_one_and_other_words_under_it_are_refused(deployment: Deployment) -> None:
    first, second, third, *_ = asked(deployment, WANTED, WANTED, {**WANTED, "words": "No."}, key="k1")
    assert (first.status, second.status, second.body["id"]) == (201, 200, first.body["id"])
    third.problem(422, "idempotency-key-reused")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"words": "x"}, "at"),
        ({"words": "", "input": {"at": "x"}}, "words"),
        ({"words": "x", "input": {"words": "y", "at": "x"}}, "beside `input`"),
        ({"word": "x"}, "words"),
        ({"words": "x", "input": {"at": "x", "city": "y"}}, "city"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(deployment: Deployment, body: Any, told: str) -> None:
    (answer,) = asked(deployment, body)
    assert answer.status == 422
    assert told in str(answer.body)


@pytest.mark.parametrize("workflow", ["", "wich"])
def test_without_a_workflow_for_it_the_answer_says_what_to_set(
    deployment: Deployment, workflow: str, says: Says
) -> None:
    (answer,) = asked(deployment, WANTED, workflow=workflow)
    says(answer.problem(404, "not-found")["detail"])


@pytest.mark.parametrize(("workflow", "status"), [("", 404), ("wish", 201)])
def test_intention_workflow(workflow: str, status: int, deployment: Deployment) -> None:
    answer, *_ = asked(deployment, WANTED, workflow=workflow)
    assert answer.status == status
