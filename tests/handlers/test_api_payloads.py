"""The api function against every request in events/api, in a deployment where Ada's dinner is under way."""

from __future__ import annotations

import pytest

from baton.core.failures.breakers import Breaker, forced_open
from baton.core.letters import Letter
from baton.ports import Effect, SagaRef
from baton.ports.records import FAILED, Tag, TagMove
from baton.web.app import matches
from baton.web.routes import ROUTES
from tests.handlers.deployment import ROOT, Deployment, payload, request_names
from tests.handlers.described import check
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, ALL, GRACE, PARTY, SILENT, asking, begin

DINNER = (ROOT / "layers/app/sagas/dinner.yaml").read_text("utf-8")
IAM_ACCOUNT = "123456789012"

DEAD = Letter(
    id=ADA.id,
    tenant=ADA.tenant,
    saga=ADA.id,
    code="unreadable_log",
    reason="CorruptLog: an entry does not decode",
    node="guests",
    version=2,
    messages=1,
    attempts=1,
    first=1_767_225_600_000,
    since=1_767_225_600_000,
    last=1_767_225_600_000,
    number=1,
    expires=32_503_680_000_000,
)

FAILED_CLAIM = Effect(
    tenant=ADA.tenant,
    key="0123456789abcdef0123456789abcdef",
    status=FAILED,
    owner="i-1",
    tool="table.deposit",
    saga=ADA.id,
    slot="deposit",
    until=1_767_225_600_000,
    first=1_767_225_600_000,
    updated=1_767_225_600_000,
    code="declined",
    message="the card was declined",
)

REPORT = "name: report\nnodes: {a: {value: 1}}\nschedule: {cron: '0 18 * * fri', timezone: Europe/Berlin}\n"

# status, and the problem's code where it is one
EXPECTED: dict[str, tuple[int, str]] = {
    "announce-model": (401, "unauthenticated"),
    "answer": (202, ""),
    "answer-no-option": (422, "invalid-input"),
    "budget": (200, ""),
    "costs": (200, ""),
    "confirm": (404, "not-found"),
    "callback": (404, "not-found"),  # its token is another deployment's
    "cancel": (202, ""),
    "claim": (202, ""),
    "cost": (200, ""),
    "discard-dead-letter": (202, ""),
    "discard-dead-letters": (202, ""),
    "error-budgets": (200, ""),
    "events": (200, ""),
    "explain": (200, ""),
    "state": (200, ""),
    "diff": (200, ""),
    "explain-node": (200, ""),
    "list-steps": (200, ""),
    "find-claims": (200, ""),
    "decide-alias": (202, ""),
    "fork": (202, ""),
    "patch": (200, ""),
    "saga-workflow": (200, ""),
    "free-claim": (202, ""),
    "health": (200, ""),
    "warm": (404, "not-found"),  # this deployment has no tool with a cache
    "intend": (404, "not-found"),  # this deployment names no workflow for it
    "list-aliases": (200, ""),
    "list-breakers": (200, ""),
    "list-dead-letters": (200, ""),
    "list-incidents": (200, ""),
    "list-questions": (200, ""),
    "list-saga-claims": (200, ""),
    "list-sagas": (200, ""),
    "list-sagas-bad-query": (400, "bad-request"),
    "list-schedules": (200, ""),
    "list-workflows": (200, ""),
    "live": (200, ""),
    "messages": (200, ""),
    "say": (404, "not-found"),  # no agent of this workflow hears messages
    "mcp": (200, ""),
    "node-types": (200, ""),
    "open-breaker": (202, ""),
    "list-users": (200, ""),
    "block-user": (202, ""),
    "unblock-user": (202, ""),
    "limit-user": (202, ""),
    "list-facts": (200, ""),
    "forget-user": (202, ""),
    "openapi": (200, ""),
    "pause-schedule": (202, ""),
    "redrive-dead-letter": (202, ""),
    "redrive-dead-letters": (202, ""),
    "register-workflow": (201, ""),
    "register-workflow-base64": (201, ""),
    "register-workflow-malformed-yaml": (400, "malformed"),
    "register-workflow-with-problems": (422, "invalid-definition"),
    "remind": (202, ""),
    "reset-breaker": (202, ""),
    "acknowledge-incident": (202, ""),
    "show-incident": (200, ""),
    "resolve-incident": (202, ""),
    "rollback": (200, ""),
    "resume-schedule": (202, ""),
    "resume": (202, ""),
    "pause": (202, ""),
    "wake": (202, ""),
    "retry": (409, "not-allowed-now"),
    "pause-many": (202, ""),
    "resume-many": (202, ""),
    "cancel-many": (202, ""),
    "retry-many": (202, ""),
    "diagnose": (200, ""),
    "diagnose-all": (202, ""),
    "repair": (202, ""),
    "replay": (200, ""),
    "show": (200, ""),
    "show-breaker": (200, ""),
    "show-claim": (200, ""),
    "show-dead-letter": (200, ""),
    "show-schedule": (200, ""),
    "show-value": (200, ""),
    "show-unknown": (404, "not-found"),
    "show-workflow": (200, ""),
    "show-workflow-version": (200, ""),
    "signal": (202, ""),
    "start": (201, ""),
    "start-input-against-schema": (422, "invalid-input"),
    "start-malformed-json": (400, "malformed"),
    "start-same-key-other-body": (422, "idempotency-key-reused"),
    "start-signed-with-iam": (201, ""),
    "start-unknown-workflow": (404, "not-found"),
    "start-without-role": (403, "forbidden"),
    "start-without-tenant": (401, "unauthenticated"),
    "tools": (200, ""),
    "send-events": (202, ""),
    "migrate-many": (202, ""),
    "move-tag": (202, ""),
    "patch-workflow": (200, ""),
    "show-tag": (200, ""),
    "trigger-schedule": (201, ""),
    "unknown-route": (404, "no-route"),
}


@pytest.fixture(scope="module")
def _evening(shared_http: Http, shared_deployment: Deployment) -> None:
    """The dinner is known to both tenants, one saga waits, one asks, one has a large input, and one was started under a key."""
    begin(shared_http.engine, ADA, PARTY)
    asking(shared_http.engine, GRACE, SILENT)
    begin(shared_http.engine, ALL, PARTY, {"guests": ["Ada", "Grace"] * 600})
    broken = forced_open(Breaker(), "ada", 0, shared_http.engine.clock.now())
    shared_http.engine.store.breakers.write_breaker("acme", "payments", broken, 0)
    shared_http.engine.store.letters.write(DEAD, 0)
    shared_http.engine.store.effects.claim(FAILED_CLAIM)
    shared_http.register(DINNER)
    shared_http.register(REPORT)
    shared_http.register(DINNER, tenant=IAM_ACCOUNT)
    main = Tag(
        tenant="acme", workflow="dinner", name="main", writes=1, moves=(TagMove(version=1, by="ann", at=1),)
    )
    shared_http.engine.store.definitions.write_tag(main)
    shared_deployment.keep()


@pytest.fixture
def busy(_evening: None, http: Http) -> Http:
    return http


def test_every_request_has_an_expected_answer() -> None:
    assert sorted(EXPECTED) == request_names()


def test_every_route_has_a_request() -> None:
    answered = [
        payload("api", name)
        for name, (status, _) in EXPECTED.items()
        if status < 400 or name in {"retry", "callback", "confirm", "announce-model", "intend", "say", "warm"}
    ]
    asked = {(event["requestContext"]["http"]["method"], event["rawPath"]) for event in answered}
    without = [
        f"{route.method} {route.path}"
        for route in ROUTES
        if not any(method == route.method and matches(route.path, path) for method, path in asked)
    ]
    assert without == []


@pytest.mark.parametrize("name", request_names())
def test_a_request_is_answered_as_expected_and_described(name: str, busy: Http) -> None:
    status, code = EXPECTED[name]
    if name == "start-same-key-other-body":
        assert busy.send(payload("api", "start")).status == 201
    event = payload("api", name)
    answer = busy.send(event)
    if code:
        answer.problem(status, code)
    else:
        assert answer.status == status, answer
        assert answer.headers["content-type"] == "application/json"
    method = event["requestContext"]["http"]["method"]
    routes = [route for route in ROUTES if route.method == method and matches(route.path, event["rawPath"])]
    assert len(routes) == (name != "unknown-route")
    for route in routes:
        check(route, answer)


@pytest.mark.parametrize("name", [name for name, (status, _) in EXPECTED.items() if status >= 400])
def test_a_refused_request_changes_nothing(name: str, busy: Http, deployment: Deployment) -> None:
    busy.send(payload("api", "start"))
    before = deployment.items()
    assert busy.send(payload("api", name)).status >= 400
    assert deployment.items() == before


def test_a_request_signed_with_iam_acts_for_its_account_and_principal(
    busy: Http, deployment: Deployment
) -> None:
    answer = busy.send(payload("api", "start-signed-with-iam"))
    head = deployment.head(SagaRef(IAM_ACCOUNT, answer.body["id"]))
    assert head.user == f"arn:aws:iam::{IAM_ACCOUNT}:user/ada"


def test_a_body_in_base64_is_read_like_any_other(busy: Http) -> None:
    encoded = busy.send(payload("api", "register-workflow-base64"))
    plain = busy.send(payload("api", "register-workflow"))
    assert (encoded.status, plain.status) == (201, 200)
    assert plain.body == encoded.body
