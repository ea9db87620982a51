"""Events from outside over HTTP: the three ways in which CloudEvents sends them, and what is answered."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.log.events import SignalReceived, Value
from baton.errors import StoreUnavailable, TooManyRequests
from baton.ports import SagaRef
from baton.runtime.starting.start import Quota
from tests.handlers.http import Answer, Http
from tests.handlers.sagas import append
from tests.kit.bugs import replaced
from tests.kit.sentences import Says

SHIP = """
name: ship
input: {type: object, required: [order]}
events:
  start: [{type: payment.settled, source: shop}]
nodes: {pack: {value: 1}}
"""
ONE, MANY = "application/cloudevents+json", "application/cloudevents-batch+json"
SETTLED = {"specversion": "1.0", "id": "e1", "source": "shop", "type": "payment.settled"}
EVENT = {**SETTLED, "data": {"order": "A-17"}}


def send(http: Http, body: Any, kind: str = ONE, **options: Any) -> Answer:
    return http.post("/events", body, headers={"content-type": kind, **options.pop("headers", {})}, **options)


def did(answer: Answer) -> list[list[str]]:
    assert answer.status == 202, answer
    return [[one["did"] for one in event["outcomes"]] for event in answer.body["events"]]


def test_one_event_starts_one_saga_however_it_is_sent(http: Http) -> None:
    http.register(SHIP)
    first = send(http, EVENT)
    (taken,) = first.body["events"]
    (done,) = taken["outcomes"]
    assert (taken["id"], taken["source"], taken["type"], taken["matched"]) == (
        "e1",
        "shop",
        "payment.settled",
        1,
    )
    assert (done["workflow"], done["did"]) == ("ship", "started")
    assert http.get(f"/sagas/{done['saga']}").status == 200
    headers = {"ce-specversion": "1.0", "ce-id": "e1", "ce-source": "sho%70", "ce-type": "payment.settled"}
    for again in (
        send(http, EVENT, "application/json"),
        send(http, [EVENT, EVENT], MANY),
        send(http, EVENT["data"], "application/json", headers=headers),
    ):
        assert {one for event in did(again) for one in event} == {"duplicate"}
        assert again.body["events"][0]["outcomes"][0]["saga"] == done["saga"]
    assert did(send(http, {**EVENT, "id": "e2"}, roles="run")) == [["started"]]


def test_binary_data_need_not_be_json(http: Http, says: Says) -> None:
    http.register(
        SHIP.replace("[{", "[{when: event.data == 'paid', ").replace(
            "source: shop", 'input: {order: "${event.datacontenttype}"}'
        )
    )
    headers = {"ce-specversion": "1.0", "ce-id": "e1", "ce-source": "shop", "ce-type": "payment.settled"}
    assert did(send(http, "paid", "text/plain", headers=headers)) == [["started"]]
    without = send(http, None, "text/plain", headers={**headers, "ce-id": "e2"})
    says(without.problem(422, "invalid-input")["detail"])


def test_what_is_wrong_with_one_event_of_several_is_named_and_holds_up_no_other(
    http: Http, says: Says
) -> None:
    http.register(SHIP)
    bad = {key: value for key, value in EVENT.items() if key != "id"}
    unlike = {**SETTLED, "id": "e3", "data": {}}
    batch = [bad, EVENT, unlike, "x", {**EVENT, "type": "other"}]
    problem = send(http, batch, MANY).problem(422, "invalid-input")
    says(problem["detail"])
    assert [one["path"] for one in problem["errors"]] == ["/0/id", "/2", "/3"]
    assert "ship: " in problem["errors"][1]["message"]
    assert "order" in problem["errors"][1]["message"]
    assert did(send(http, [EVENT, batch[4]], MANY)) == [["duplicate"], []]


def test_an_event_that_a_rule_refuses_is_not_accepted(http: Http) -> None:
    """A sender looks at the status alone."""
    http.register(SHIP)
    http.register(SHIP.replace("name: ship", "name: note").replace("required: [order]", "required: []"))
    for _ in range(2):
        problem = send(http, {**SETTLED, "data": {}}).problem(422, "invalid-input")
        (error,) = problem["errors"]
        assert (error["path"], error["message"][:6]) == ("", "ship: ")
    assert [one["workflow"] for one in http.get("/sagas").body["sagas"]] == ["note"], (
        "once, by the other rule"
    )


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ({"type": "x"}, ONE, 422),
        ({**EVENT, "specversion": 1.0}, ONE, 422),
        ({**EVENT, "id": 5}, ONE, 422),
        ({**EVENT, "source": ""}, ONE, 422),
        ({**EVENT, "orderId": "x"}, ONE, 422),
        ({**EVENT, "order": {"id": 1}}, ONE, 422),
        ({**EVENT, "time": "yesterday"}, ONE, 422),
        ({**EVENT, "data_base64": "eA=="}, ONE, 422),
        ([EVENT], ONE, 422),
        (EVENT, MANY, 422),
        ([EVENT] * 101, MANY, 422),
        ("5", "application/json", 422),
        ("", "application/json", 422),
        ("{", ONE, 400),
    ],
)  # fmt: skip
def test_what_is_no_event_is_refused_with_what_would_be_right(
    http: Http, body: Any, kind: str, status: int, says: Says
) -> None:
    answer = send(http, body, kind)
    problem = answer.problem(status, "invalid-input" if status == 422 else "malformed")
    says((problem["detail"], problem.get("errors")))


def test_no_events_are_no_mistake(http: Http) -> None:
    assert send(http, [], MANY).body == {"events": []}


def test_what_has_to_come_again_is_refused_as_a_whole_and_done_once(http: Http, says: Says) -> None:
    http.register(SHIP)
    real, asked = Quota.admit, []

    async def full_for_the_second(self: Quota, tenant: str) -> None:
        asked.append(tenant)
        if len(asked) == 2:
            raise TooManyRequests("no room", 5)
        await real(self, tenant)

    events = [{**EVENT, "id": f"e{number}"} for number in range(3)]
    with replaced(Quota, "admit", full_for_the_second):
        refused = send(http, events, MANY)
    problem = refused.problem(429, "too-many-requests")
    says(problem["detail"])
    assert problem["errors"] == [{"path": "/1", "message": "no room"}]
    assert refused.headers["retry-after"] == "5"
    assert did(send(http, events, MANY)) == [["duplicate"], ["started"], ["duplicate"]]


def test_what_a_slow_store_leaves_of_a_batch_is_named(http: Http, says: Says) -> None:
    http.register(SHIP)
    real, asked = Quota.admit, []

    async def no_store_after_the_second(self: Quota, tenant: str) -> None:
        asked.append(tenant)
        if len(asked) > 2:
            raise StoreUnavailable("no answer")
        await real(self, tenant)

    events = [{**EVENT, "id": f"e{number}"} for number in range(4)]
    with replaced(Quota, "admit", no_store_after_the_second):
        refused = send(http, [*events, "x"], MANY)
        assert send(http, events[2:], MANY).status == 503, "nothing was done"
    problem = refused.problem(429, "too-many-requests")
    says(problem["detail"])
    assert [one["path"] for one in problem["errors"]] == ["/2", "/3"]
    assert did(send(http, events, MANY)) == [["duplicate"], ["duplicate"], ["started"], ["started"]]


def test_what_a_full_saga_has_no_room_for_is_named(http: Http, says: Says) -> None:
    http.register(
        "name: order\nnodes: {rest: {wait: {for: 1h}}, paid: {wait: {signal: paid}, after: rest}}\n"
        "events: {signal: [{type: payment.settled, correlation_key: '${event.data.order}', signal: paid}]}"
    )
    saga = http.post("/sagas", {"workflow": "order", "correlation_key": "A-17"}).body["id"]
    kept = [
        SignalReceived(name="paid", key=f"k{number}", payload=Value(v=1), by="ada", at=1)
        for number in range(http.engine.limits.signals_kept - 1)
    ]
    append(http.engine, *kept, ref=SagaRef("acme", saga))
    many = [{**EVENT, "id": f"e{number}"} for number in range(2)]
    problem = send(http, many, MANY).problem(429, "too-many-requests")
    assert [one["path"] for one in problem["errors"]] == ["/1"]
    says(problem["errors"][0]["message"])


def test_only_who_may_start_sagas_may_send_events_and_only_to_the_own_tenant(http: Http) -> None:
    http.register(SHIP)
    send(http, EVENT, roles="operate").problem(403, "forbidden")
    assert did(send(http, EVENT, tenant="globex")) == [[]]


def test_a_caller_starts_the_saga_that_events_find(http: Http, says: Says) -> None:
    http.register(
        "name: order\nnodes: {paid: {wait: {signal: paid}}}\n"
        "events: {signal: [{type: payment.settled, correlation_key: '${event.data.order}', signal: paid}]}"
    )
    assert did(send(http, EVENT)) == [["no_saga"]]
    body = {"workflow": "order", "correlation_key": "A-17"}
    first, again = (http.post("/sagas", body) for _ in range(2))
    assert (first.status, again.status, again.body["id"]) == (201, 200, first.body["id"])
    assert did(send(http, EVENT)) == [["signalled"]]
    detail = http.post("/sagas", body, key="k").problem(400, "bad-request")["detail"]
    says(detail)
