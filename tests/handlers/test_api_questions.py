"""Questions of nodes over HTTP: what is shown of them, who may answer, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.events import Ask, NoticeDue, QuestionClaimed, QuestionOpened, SagaEnded, SignalReceived
from baton.ports import QuestionRow
from tests.handlers.deployment import Deployment
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, append, begin
from tests.kit.sentences import Says

PARAMETERS = {"AppModule": "tests.kit.app.trial"}
SAGA = f"/sagas/{ADA.id}"
DOCUMENT = """
name: form
nodes:
  form:
    human: {title: Seats, schema: {type: object, properties: {seats: {type: integer}}, required: [seats]}, to: {group: hosts}}
"""
SCHEMA = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
LATE = 4_000_000_000_000
SAID = {"ask": "0.form", "action": "submit", "data": {"seats": 4}}


def asking(http: Http, expires_at: int = LATE) -> None:
    """Begin a saga whose only node asks the group `hosts`."""
    begin(http.engine, ADA, DOCUMENT)
    ask = Ask(
        id="0.form",
        kind="input",
        type="input",
        title="Seats",
        message="",
        options=("submit",),
        schema=SCHEMA,
        to="group:hosts",
        asked_at=1_767_225_600_000,
        expires_at=expires_at,
    )
    append(http.engine, QuestionOpened(node="form", ask=ask))


def answer(
    http: Http, said: dict[str, Any] = SAID, *, groups: str | None = "hosts", user: str = "eve", **more: Any
) -> Any:
    event = http.event("POST", f"{SAGA}/answer", said, user=user, roles="[answer]", **more)
    claims = event["requestContext"]["authorizer"]["jwt"]["claims"]
    if groups is not None:
        claims["groups"] = groups
    return http.send(event)


def answers(deployment: Deployment) -> list[SignalReceived]:
    return [
        event
        for entry in deployment.entries(ADA)
        for event in entry.events
        if isinstance(event, SignalReceived)
    ]


def test_a_question_of_a_node_is_among_those_of_its_saga(http: Http) -> None:
    asking(http)
    view = http.get(SAGA).body
    (question,) = view["questions"]
    assert (view["status"], question["type"], question["title"]) == ("suspended", "input", "Seats")
    assert (question["options"], question["schema"]) == (["submit"], SCHEMA)
    assert question["for"] == [{"kind": "group", "name": "hosts"}, {"kind": "role", "name": "operate"}]
    assert question["asked_at"] == "2026-01-01T00:00:00.000Z"


def test_a_member_of_the_group_answers_and_a_repetition_changes_nothing(
    http: Http, deployment: Deployment
) -> None:
    asking(http)
    said = SAID | {"comment": "By the window."}
    told = [answer(http, said, key="k") for _ in range(2)]
    assert [(one.status, one.body["changed"]) for one in told] == [(202, True), (202, False)]
    (event,) = answers(deployment)
    assert (event.key, event.by, event.payload.v) == ("0.form/k", "eve", said)
    answer(http, SAID, key="l").problem(409, "not-allowed-now")


def test_after_the_end_the_same_answer_is_known_and_another_is_refused_with_the_reason(
    http: Http, says: Says
) -> None:
    asking(http)
    assert answer(http).body["changed"] is True
    append(http.engine, SagaEnded(status="completed"))
    assert answer(http).body["changed"] is False
    problem = answer(http, SAID | {"data": {"seats": 5}}).problem(409, "not-allowed-now")
    says(problem["detail"])
    problem = answer(http, SAID | {"ask": "0.other"}).problem(409, "not-allowed-now")
    says(problem["detail"])


@pytest.mark.parametrize("groups", [None, "guests", "hostsx", "[hosts]", "group:hosts"])
def test_a_caller_of_no_such_group_is_refused_and_nothing_changes(
    groups: str | None, http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http)
    problem = answer(http, groups=groups, user="ada").problem(403, "forbidden")
    says(problem["detail"])
    assert answers(deployment) == []


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ({"action": "submit"}, ["/data"]),
        ({"action": "submit", "data": {"seats": "four"}}, ["/data/seats"]),
        ({"action": "approve"}, ["/action"]),
        ({"action": "submit", "data": {"seats": 4}, "arguments": {"a": 1}}, ["/arguments"]),
        ({"action": "submit", "data": {"seats": 4}, "comment": "x" * 2_001}, ["/comment"]),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_its_place(
    said: dict[str, Any], places: list[str], http: Http, deployment: Deployment
) -> None:
    asking(http)
    problem = answer(http, {"ask": "0.form", **said}).problem(422, "invalid-input")
    assert [error["path"] for error in problem["errors"]] == places
    assert answers(deployment) == []


def test_an_answer_after_the_end_is_late_also_where_no_worker_has_looked(
    http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http, expires_at=1_000)
    problem = answer(http).problem(409, "not-allowed-now")
    says(problem["detail"])
    assert answers(deployment) == []


# ---- lists


def row(saga: str, **changes: Any) -> QuestionRow:
    fields: dict[str, Any] = {"workflow": "form", "ask": "0.form", "type": "input", "kind": "input"}
    fields |= {"title": "Seats", "message": "How many?", "to": "user:ada", "actions": ("submit",)}
    return QuestionRow(saga=saga, **fields | {"asked_at": 1_767_225_600_000, "expires_at": LATE} | changes)


def listed(http: Http, *, groups: str = "", roles: str = "[read]", **more: Any) -> list[str]:
    event = http.event("GET", "/questions", roles=roles, **more)
    event["requestContext"]["authorizer"]["jwt"]["claims"]["groups"] = groups
    return [question["saga"] for question in http.send(event).body["questions"]]


def test_a_list_has_what_is_for_the_caller_the_groups_and_the_roles_and_nothing_else(http: Http) -> None:
    audiences = ["user:ada", "user:eve", "group:hosts", "role:answer", "role:operate", "on_call"]
    for number, to in enumerate(audiences):
        http.engine.store.questions.put(
            "acme", row(to.replace(":", "-"), to=to, expires_at=LATE - number), 1, 0
        )
    http.engine.store.questions.put("globex", row("theirs"), 1, 0)
    http.engine.store.questions.put("acme", row("over", expires_at=1_000), 1, 0)
    assert listed(http) == ["user-ada"]
    assert listed(http, groups="hosts guests") == ["group-hosts", "user-ada"]
    assert listed(http, roles="[answer]", user="eve") == ["role-answer", "user-eve"]
    assert listed(http, roles="[operate]", user="bob") == ["on_call", "role-operate"]
    assert listed(http, tenant="globex") == ["theirs"]


def test_a_listed_question_says_what_it_is_and_where_to_answer(http: Http) -> None:
    http.engine.store.questions.put("acme", row(ADA.id, told=True, expires_at=0), 1, 0)
    assert http.get("/questions").body == {
        "questions": [
            {
                "saga": ADA.id,
                "workflow": "form",
                "id": "0.form",
                "type": "input",
                "asked_for": None,
                "title": "Seats",
                "message": "How many?",
                "for": {"kind": "user", "name": "ada"},
                "options": ["submit"],
                "risk": None,
                "asked_at": "2026-01-01T00:00:00.000Z",
                "expires_at": None,
                "told": True,
                "answer_at": f"{SAGA}/answer",
            }
        ],
        "next": None,
    }


def test_the_questions_of_a_saga_are_read_from_its_log_whomever_they_are_for(http: Http) -> None:
    asking(http)
    (question,) = http.get("/questions", query={"saga": ADA.id}).body["questions"]
    assert (question["id"], question["for"]) == ("0.form", {"kind": "group", "name": "hosts"})
    assert question["told"] is False
    http.get("/questions", query={"saga": "nowhere"}).problem(404, "not-found")
    http.get("/questions", query={"saga": ADA.id}, tenant="globex").problem(404, "not-found")
    assert answer(http).status == 202
    assert http.get("/questions", query={"saga": ADA.id}).body["questions"] == []


def test_a_question_of_a_saga_that_has_expired_is_not_listed(http: Http) -> None:
    asking(http, expires_at=1_767_225_600_001)
    assert http.get("/questions", query={"saga": ADA.id}).body["questions"] == []


def test_a_list_of_questions_comes_in_pages_of_a_cursor_that_is_its_own(http: Http) -> None:
    for number in range(5):
        http.engine.store.questions.put("acme", row(f"s{number}", expires_at=LATE + number), 1, 0)
    first = http.get("/questions", query={"limit": "3"}).body
    rest = http.get("/questions", query={"limit": "3", "cursor": first["next"]}).body
    assert [one["saga"] for page in (first, rest) for one in page["questions"]] == [
        "s0",
        "s1",
        "s2",
        "s3",
        "s4",
    ]
    assert rest["next"] is None
    http.get("/questions", query={"cursor": "nonsense"}).problem(400, "bad-request")
    http.get("/questions", query={"cursor": first["next"]}, user="eve").problem(400, "bad-request")


# ---- claims and reminders


def ask_for(http: Http, what: str, *, user: str = "eve", groups: str = "hosts", **more: Any) -> Any:
    event = http.event("POST", f"{SAGA}/{what}", {"ask": "0.form", **more}, user=user, roles="[answer]")
    event["requestContext"]["authorizer"]["jwt"]["claims"]["groups"] = groups
    return http.send(event)


def test_a_claimed_question_is_its_claimers_until_it_is_released(
    http: Http, deployment: Deployment, says: Says
) -> None:
    asking(http)
    assert [ask_for(http, "claim").body["changed"] for _ in range(2)] == [True, False]
    (question,) = http.get(SAGA).body["questions"]
    assert question["for"] == [{"kind": "user", "name": "eve"}, {"kind": "role", "name": "operate"}]
    claim = question["claim"]
    assert (claim["by"], claim["from"]) == ("eve", {"kind": "group", "name": "hosts"})
    problem = ask_for(http, "claim", user="bo").problem(409, "not-allowed-now")
    says.within(problem["detail"])
    for what, more in dict[str, dict[str, Any]](claim={"release": True}, remind={}).items():
        problem = ask_for(http, what, user="bo", **more).problem(403, "forbidden")
        assert "claimed by `eve`" in problem["detail"]
    answer(http, user="bo").problem(403, "forbidden")
    told = [ask_for(http, "claim", release=True) for _ in range(2)]
    assert [(one.status, one.body["changed"]) for one in told] == [(202, True), (202, False)]
    assert http.get(SAGA).body["questions"][0]["claim"] is None
    assert answer(http, user="bo").status == 202
    claimed = [
        one for entry in deployment.entries(ADA) for one in entry.events if isinstance(one, QuestionClaimed)
    ]
    assert [(one.by, one.to) for one in claimed] == [("eve", "user:eve"), ("eve", "")]
    ask_for(http, "claim").problem(409, "not-allowed-now")


def test_a_claim_and_a_reminder_carry_a_wake(http: Http, deployment: Deployment, says: Says) -> None:
    asking(http)
    assert [ask_for(http, what).status for what in ("claim", "remind")] == [202, 202]
    items = deployment.saga_items(ADA)
    *_, claimed, reminded = (items[key] for key in sorted(items) if key.startswith("LOG#"))
    assert ("wake" in claimed, "wake" in reminded) == (True, True)
    notices = [
        one.notice for entry in deployment.entries(ADA) for one in entry.events if isinstance(one, NoticeDue)
    ]
    assert [(notice.to, notice.message) for notice in notices] == [("user:eve", "Reminder: Seats")]
    assert http.get(SAGA).body["questions"][0]["told_at"] is not None
    problem = ask_for(http, "remind").problem(409, "not-allowed-now")
    says.within(problem["detail"])


def test_a_question_whose_time_is_over_is_neither_claimed_nor_reminded_of(http: Http) -> None:
    asking(http, expires_at=1_000)
    for what in ("claim", "remind"):
        ask_for(http, what).problem(409, "not-allowed-now")
    assert "open" in http.post(f"{SAGA}/claim", {"ask": "0.other"}).problem(404, "not-found")["detail"]
