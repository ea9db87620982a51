"""Whatever is wrong with a request: a clear answer with the place and the nearest right thing, and no change."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from baton.errors import InvalidDefinition, InvalidInput, Problem
from baton.runtime.engine.request import write_cursor
from baton.web import replies
from baton.web.bodies.requests import read_body
from baton.web.routes import ROUTES
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ECHO, PARTY, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial", "MaxBodyBytes": "4096"}
LIMIT = 4096
SAGA = f"/sagas/{ADA.id}"
WITH_BODY = [
    "/sagas",
    f"{SAGA}/cancel",
    f"{SAGA}/signals/guests_changed",
    f"{SAGA}/forks",
    f"{SAGA}/answer",
    f"{SAGA}/claim",
    f"{SAGA}/remind",
    f"{SAGA}/resume",
]
YAML = {"content-type": "application/yaml"}


@pytest.fixture(scope="module")
def _evening(shared_http: Http, shared_deployment: Deployment) -> None:
    """A workflow, a waiting saga."""
    begin(shared_http.engine, ADA, PARTY)
    shared_http.register(ECHO)
    shared_deployment.keep()


@pytest.fixture(autouse=True)
def _nothing_changes(_evening: None, deployment: Deployment) -> Iterator[None]:
    """After the test, the table is as it was."""
    before = deployment.items()
    yield
    assert deployment.items() == before
    assert deployment.messages("WakeQueue") == []


def only_error(problem: dict[str, Any]) -> dict[str, Any]:
    (error,) = problem["errors"]
    found: dict[str, Any] = error
    return found


@pytest.mark.parametrize("path", WITH_BODY)
def test_malformed_json_is_answered_with_line_and_column(path: str, http: Http) -> None:
    problem = http.post(path, '{\n  "workflow": "echo",\n  "input": {"a": 1,}\n}').problem(400, "malformed")
    assert problem["detail"].startswith("line 3, column ")
    error = only_error(problem)
    assert error["line"] == 3
    assert error["column"] >= 13


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ("NaN", 31),
        ("-Infinity", 31),
        ("1e999", 31),
        ('"\\ud83d"', 31),
        ("[" * 200 + "]" * 200, None),
        ("[" * 1_900 + "]" * 1_900, None),
        ('{"a": 1, "a": 2}', 40),
    ],
)
def test_what_the_log_could_not_hold_as_it_is_is_refused(
    value: str, column: int | None, http: Http, says: Says
) -> None:
    problem = http.post("/sagas", f'{{"workflow": "echo", "input": {value}}}').problem(400, "malformed")
    error = only_error(problem)
    says(error["message"])
    assert error["line"] == 1
    assert column is None or error["column"] == column


@pytest.mark.parametrize("path", WITH_BODY)
@pytest.mark.parametrize("body", ["[]", "7", '"text"', "null"])
def test_a_body_that_is_no_object_is_refused(path: str, body: str, http: Http, says: Says) -> None:
    problem = http.post(path, body).problem(422, "invalid-input")
    says(problem["detail"])


def test_an_unknown_field_is_answered_with_the_nearest_and_its_place(http: Http, says: Says) -> None:
    problem = http.post("/sagas", '{"workflow": "echo",\n "imput": 1}').problem(422, "invalid-input")
    error = only_error(problem)
    assert error["path"] == "/imput"
    says(error["suggestion"])
    assert (error["line"], error["column"]) == (2, 11)


@pytest.mark.parametrize(
    ("path", "body", "wrong"),
    [
        ("/sagas", {}, ["/workflow"]),
        ("/sagas", {"workflow": ""}, ["/workflow"]),
        ("/sagas", {"workflow": 7, "key": "k"}, ["/workflow", "/key"]),
        (f"{SAGA}/cancel", {"mode": "soft", "grace_s": "soon"}, ["/mode", "/grace_s"]),
        (f"{SAGA}/cancel", {"grace_s": -1}, ["/grace_s"]),
        (f"{SAGA}/cancel", {"grace_s": False}, ["/grace_s"]),
        (f"{SAGA}/cancel", {"reason": "x" * 501}, ["/reason"]),
        (f"{SAGA}/patches", {}, ["/for"]),
        (f"{SAGA}/patches", {"for": "deadbeef"}, [""]),
        (f"{SAGA}/patches", {"for": 1, "undo": True, "patch": [{"op": "remove", "path": ""}]}, [""]),
        (f"{SAGA}/patches", {"for": True, "undo": True}, ["/for"]),
        (f"{SAGA}/patches", {"for": "main", "patch": ["x"]}, ["/patch/0", "/for"]),
        (f"{SAGA}/forks", {}, [""]),
        (f"{SAGA}/forks", {"version": 1, "before": "book"}, [""]),
        (f"{SAGA}/forks", {"at": "best"}, ["/at"]),
        (f"{SAGA}/forks", {"version": 1, "outputs": [1]}, ["/outputs"]),
        (f"{SAGA}/forks", {"version": 0}, ["/version"]),
        (f"{SAGA}/forks", {"version": 1.5}, ["/version"]),
    ],
)
def test_every_field_that_is_wrong_is_named(path: str, body: Any, wrong: list[str], http: Http) -> None:
    problem = http.post(path, body).problem(422, "invalid-input")
    assert [error["path"] for error in problem["errors"]] == wrong


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{SAGA}/answer", {}),
        (f"{SAGA}/answer", {"ask": "", "action": "x" * 65, "arguments": [], "comment": None}),
        (f"{SAGA}/claim", {"ask": 7, "release": "yes"}),
        (f"{SAGA}/remind", {"aks": "q"}),
        ("/callbacks/a.b.c", {"status": "sucess"}),
        ("/confirm", {"token": "t", "action": 1}),
        (f"{SAGA}/signals/s", {"failure": "x"}),
        (f"{SAGA}/cancel", {"mode": "soft"}),
        (f"{SAGA}/forks", {"version": 0}),
        (f"{SAGA}/forks", {"version": "1"}),
        (f"{SAGA}/resume", {"budget_usd": []}),
    ],
)
def test_what_is_wrong_with_a_body_is_said_in_plain_words(path: str, body: Any, says: Says) -> None:
    route = next(route for route in ROUTES if route.body is not None and _fits(route.path, path))
    assert route.body is not None
    with pytest.raises(InvalidInput) as caught:
        read_body(route.body, json.dumps(body))
    found = [f"{one.path}: {one.message}" for one in caught.value.problems]
    says(found)
    assert caught.value.detail == f"at {found[0]}"


def test_a_word_that_is_nearly_right_is_answered_with_the_right_one(http: Http, says: Says) -> None:
    error = only_error(http.post(f"{SAGA}/cancel", {"mode": "gracefull"}).problem(422, "invalid-input"))
    says(error["suggestion"])


def _fits(pattern: str, path: str) -> bool:
    parts = [part if not part.startswith("{") else None for part in pattern.split("/")]
    given = path.split("/")
    return len(parts) == len(given) and all(
        part in (None, one) for part, one in zip(parts, given, strict=True)
    )


def test_a_body_over_the_limit_is_refused_with_the_limit(http: Http) -> None:
    body = '{"workflow": "echo", "input": "' + "x" * LIMIT + '"}'
    for path in ("/sagas", "/workflows", f"{SAGA}/signals/guests_changed"):
        problem = http.post(path, body).problem(413, "too-large")
        assert f"at most {LIMIT} bytes" in problem["detail"]
        assert str(len(body)) in problem["detail"]


def test_the_limit_is_one_of_bytes_whatever_the_encoding(http: Http) -> None:
    body = "# " + "é" * (LIMIT // 2 - 1)
    assert len(body.encode()) == LIMIT
    assert http.post("/workflows", body, headers=YAML).status == 400  # an empty document: it was read
    event = http.event("POST", "/workflows", base64.b64encode((body + "é").encode()).decode(), headers=YAML)
    http.send(event | {"isBase64Encoded": True}).problem(413, "too-large")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (base64.b64encode(b'{"workflow": "\xff"}').decode(), "not UTF-8: byte 14"),
        ("%%%", "cannot be decoded"),
    ],
)
def test_a_body_that_is_no_text_is_refused(body: str, told: str, http: Http) -> None:
    event = http.event("POST", "/sagas", body) | {"isBase64Encoded": True}
    assert told in http.send(event).problem(400, "bad-request")["detail"]


def test_an_idempotency_key_that_is_too_long_is_refused_with_the_limit(http: Http, says: Says) -> None:
    answer = http.post("/sagas", {"workflow": "echo"}, key="k" * 256)
    says(answer.problem(400, "bad-request")["detail"])


def test_malformed_yaml_is_answered_with_line_and_column(http: Http) -> None:
    answer = http.post("/workflows", "name: x\nnodes:\n  a: {tool: [trial.echo}\n", headers=YAML)
    error = only_error(answer.problem(400, "malformed"))
    assert error["line"] == 3


def test_yaml_that_was_announced_as_json_is_refused_as_json(http: Http) -> None:
    problem = http.post("/workflows", ECHO, headers={"content-type": "application/json"})
    assert only_error(problem.problem(400, "malformed"))["line"] == 2


def test_all_problems_of_a_document_come_at_once_each_with_its_place_and_the_nearest(
    http: Http, says: Says
) -> None:
    document = """
name: broken
nodes:
  first: {tool: trial.ecko, with: {value: 1}}
  second: {tool: trial.work, after: frist, with: {m: 1}}
  third: {tool: trial.echo, with: {value: "${ctx.secnd.output}"}}
"""
    problem = http.post("/workflows", document, headers=YAML).problem(422, "invalid-definition")
    found = {error["path"]: (error["line"], error.get("suggestion", "")) for error in problem["errors"]}
    says(found)
    says(problem["detail"])


@pytest.mark.parametrize(
    "path",
    ["/saga", "/workflow", "/x"],
)
def test_an_unknown_route_is_answered_with_the_nearest(path: str, http: Http, says: Says) -> None:
    problem = http.get(path).problem(404, "no-route")
    says(problem["detail"])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/sagas", "GET, POST"),
        ("HEAD", "/sagas", "GET, POST"),
        ("DELETE", SAGA, "GET"),
        ("GET", f"{SAGA}/cancel", "POST"),
        ("POST", f"{SAGA}/events", "GET"),
        ("PUT", "/workflows", "GET, POST"),
        ("POST", "/workflows/dinner", "GET"),
        ("DELETE", "/workflows/dinner/1", "GET"),
        ("POST", f"{SAGA}/cost", "GET"),
        ("POST", "/tools", "GET"),
        ("POST", "/node-types", "GET"),
        ("POST", "/health", "GET"),
        ("POST", "/openapi.json", "GET"),
    ],
)
def test_a_wrong_method_is_answered_with_the_right_one(
    method: str, path: str, allowed: str, http: Http
) -> None:
    answer = http.send(http.event(method, path))
    assert allowed in answer.problem(405, "method-not-allowed")["detail"]
    assert answer.headers["allow"] == allowed


def test_a_browser_that_asks_first_is_told_the_methods(http: Http) -> None:
    answer = http.send(http.event("OPTIONS", f"{SAGA}/messages"))
    assert (answer.status, answer.headers["allow"]) == (204, "GET, POST")
    http.send(http.event("OPTIONS", "/nothing")).problem(404, "no-route")


@pytest.mark.parametrize(
    "path", ["/sagas/missing", "/sagas/missing/events", f"/sagas/{'x' * 3_000}", "/sagas/T%23other"]
)
def test_an_unknown_saga_is_not_found(path: str, http: Http) -> None:
    http.get(path).problem(404, "not-found")


@pytest.mark.parametrize("action", ["cancel", "resume", "forks", "signals/guests_changed", "answer"])
def test_nothing_can_be_done_to_an_unknown_saga(action: str, http: Http, says: Says) -> None:
    bodies: dict[str, Any] = {"forks": {"version": 1}, "answer": {"ask": "q", "action": "retry"}}
    body = bodies.get(action, {})
    problem = http.post(f"/sagas/missing/{action}", body).problem(404, "not-found")
    says(problem["detail"])


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/events", {"after": "-1"}),
        ("/events", {"after": "1,2"}),
        ("/events", {"after": "²"}),
        ("/events", {"after": "007"}),
        ("/events", {"after": ""}),
        ("/events", {"after": "9" * 20}),
        ("/events", {"limit": "many"}),
        ("/events", {"limit": "0"}),
        ("/events", {"limit": "1001"}),
        ("/events", {"limti": "5"}),
        ("/events", {"x" * 99: "5"}),
        ("", {"verbose": "1"}),
    ],
)
def test_a_wrong_query_is_refused_with_what_would_be_right(
    path: str, query: dict[str, str], http: Http, says: Says
) -> None:
    says(http.get(f"{SAGA}{path}", query=query).problem(400, "bad-request")["detail"])


@pytest.mark.parametrize(
    "query",
    [
        {"status": "opne"},
        {"status": "pending"},
        {"status": ""},
        {"limit": "101"},
        {"workflow": "No Such"},
        {"since": "2026-11-21"},
        {"since": "2026-11-21T10:00:00"},
        {"since": "2026-11-21T10:00:00 01:00"},
        {"since": "2026-02-30T10:00:00Z"},
        {"cursor": "not one of ours"},
        {"cursor": "bm90IG9uZSBvZiBvdXJz"},
        {"order": "asc"},
    ],
)
def test_a_wrong_filter_of_a_list_is_refused_with_what_would_be_right(
    query: dict[str, str], http: Http, says: Says
) -> None:
    says(http.get("/sagas", query=query).problem(400, "bad-request")["detail"])


def test_all_that_is_wrong_with_a_query_is_said_at_once(http: Http) -> None:
    query = {"status": "opne", "limit": "0", "order": "asc"}
    detail = http.get("/sagas", query=query).problem(400, "bad-request")["detail"]
    assert [name for name in query if f"`{name}`" in detail] == ["status", "limit", "order"]


@pytest.mark.parametrize("path", ["/nodes/a/after/0", "/" + "long" * 30_000])
def test_of_more_faults_than_an_answer_has_room_for_the_first_are_listed(path: str, says: Says) -> None:
    found = tuple(Problem(path, f'"{number}" is no name') for number in range(60_000))
    answer = replies.of_user_error(InvalidDefinition("the document has 60,000 problems", found))
    assert len(json.dumps({"body": answer.body})) < 6_291_456, "what Lambda answers with at most"
    document = json.loads(str(answer.body))
    listed = document["errors"]
    assert [error["message"] for error in listed] == [problem.message for problem in found[: len(listed)]]
    says(document["detail"])


@pytest.mark.parametrize("name", ["z" * 1_025, "T#other", "Echo", "\x00", "\udc80", ""])
def test_a_list_of_workflows_goes_on_after_the_name_of_a_workflow_only(
    name: str, http: Http, says: Says
) -> None:
    cursor = write_cursor(name.encode(errors="surrogateescape"))
    problem = http.get("/workflows", query={"cursor": cursor}).problem(400, "bad-request")
    says(problem["detail"])


@pytest.mark.parametrize(
    "path",
    [
        "/workflows/ehco",
        "/workflows/Echo",
        "/workflows/echo@1",
        "/workflows/echo/2",
        "/workflows/echo/first",
        "/workflows/echo/01",
        "/sagas/a b/cost",
    ],
)
def test_what_is_not_there_is_answered_with_what_is(path: str, http: Http, says: Says) -> None:
    says(http.get(path).problem(404, "not-found")["detail"])
