"""The handlers of routes."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from baton.core.log.events import CancelRequested
from baton.errors import NotFound
from baton.runtime.requests.operators import LetterFilter
from baton.web.bodies.requests import (
    AcknowledgeBody,
    AnswerBody,
    CallbackBody,
    CancelBody,
    ClaimBody,
    ConfirmBody,
    DiscardAllBody,
    DiscardBody,
    ForkBody,
    IntentionBody,
    OpenBreakerBody,
    RedriveAllBody,
    RedriveBody,
    RemindBody,
    ResumeBody,
    RollbackBody,
    SignalBody,
    StartBody,
    UserBody,
    UserLimitBody,
)
from baton.web.replies import Ask, Reply


async def register(ask: Ask[None]) -> Reply:
    """Handle `POST /workflows`."""
    registered = await ask.service.register(ask.text, json_only=ask.is_json)
    definition = registered.definition
    status = HTTPStatus.CREATED if registered.is_new else HTTPStatus.OK
    body = {
        "name": definition.name,
        "version": definition.version,
        "graph": definition.graph,
        "notes": list(registered.notes),
    }
    return Reply(status, body, {"Location": f"/workflows/{definition.name}/{definition.version}"})


async def start(ask: Ask[StartBody]) -> Reply:
    """Handle `POST /sagas`."""
    body = ask.body
    view, is_new = await ask.service.start(
        body.workflow, body.input, ask.key, labels=body.labels, correlation_key=body.correlation_key
    )
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return Reply(status, view, {"Location": f"/sagas/{view['id']}"})


async def intend(ask: Ask[IntentionBody]) -> Reply:
    """Handle `POST /intentions`."""
    if not ask.intentions:
        raise NotFound(
            "this deployment has no workflow for intentions: set the parameter `IntentionWorkflow` to the name of one, "
            "whose input has the property `words`"
        )
    given = {**ask.body.input, "words": ask.body.words}
    view, is_new = await ask.service.start(ask.intentions, given, ask.key)
    path = f"/sagas/{view['id']}"
    return Reply(HTTPStatus.CREATED if is_new else HTTPStatus.OK, {**view, "watch": path}, {"Location": path})


async def cancel(ask: Ask[CancelBody]) -> Reply:
    """Handle `POST /sagas/{saga}/cancel`."""
    body = ask.body
    done = await ask.service.cancel(ask.path["saga"], body.reason, body.grace_ms, undo=body.undo)
    return Reply(HTTPStatus.ACCEPTED, done)


async def rollback(ask: Ask[RollbackBody]) -> Reply:
    """Handle `POST /sagas/{saga}/rollback`."""
    body, saga = ask.body, ask.path["saga"]
    if body.dry_run:
        plan = await ask.service.rollback_plan(saga, body.back_to, body.step)
        return Reply(HTTPStatus.OK, plan, {"Location": f"/sagas/{saga}"})
    wanted = CancelRequested(
        reason=body.reason, by="", at=0, grace_ms=0, undo=True, back_to=body.back_to, together=body.parallel
    )
    return Reply(HTTPStatus.ACCEPTED, await ask.service.rollback(saga, wanted, ask.key, body.step))


async def signal(ask: Ask[SignalBody]) -> Reply:
    """Handle `POST /sagas/{saga}/signals/{name}`."""
    saga, name = ask.path["saga"], ask.path["name"]
    body = ask.body
    return Reply(HTTPStatus.ACCEPTED, await ask.service.signal(saga, name, body.payload, ask.key, body.why()))


async def callback(ask: Ask[CallbackBody]) -> Reply:
    """Handle `POST /callbacks/{token}`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.callback(ask.path["token"], ask.body.said()))


async def announced(ask: Ask[None]) -> Reply:
    """Handle `POST /models/{profile}/webhook`."""
    woken = await ask.service.announced(ask.path["profile"], ask.headers, ask.text.encode())
    return Reply(HTTPStatus.ACCEPTED, {"woken": woken})


async def answer_question(ask: Ask[AnswerBody]) -> Reply:
    """Handle `POST /sagas/{saga}/answer`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.answer(ask.path["saga"], ask.body.answer(), ask.key))


async def confirm(ask: Ask[ConfirmBody]) -> Reply:
    """Handle `POST /confirm`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.confirm(ask.body.token, ask.body.answer()))


async def claim(ask: Ask[ClaimBody]) -> Reply:
    """Handle `POST /sagas/{saga}/claim`."""
    questions = ask.service.questions
    do = questions.release if ask.body.release else questions.claim
    return Reply(HTTPStatus.ACCEPTED, await do(ask.path["saga"], ask.body.ask))


async def remind(ask: Ask[RemindBody]) -> Reply:
    """Handle `POST /sagas/{saga}/remind`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.questions.remind(ask.path["saga"], ask.body.ask))


async def resume_saga(ask: Ask[ResumeBody]) -> Reply:
    """Handle `POST /sagas/{saga}/resume`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.resume(ask.path["saga"], ask.body.budget_usd))


async def resolve(ask: Ask[None]) -> Reply:
    """Handle `POST /incidents/{incident}/resolve`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.incidents.resolve(ask.path["incident"]))


async def acknowledge(ask: Ask[AcknowledgeBody]) -> Reply:
    """Handle `POST /incidents/{incident}/acknowledge`."""
    found = await ask.service.incidents.acknowledge(ask.path["incident"], ask.body.note)
    return Reply(HTTPStatus.ACCEPTED, found)


async def open_breaker(ask: Ask[OpenBreakerBody]) -> Reply:
    """Handle `POST /breakers/{breaker}/open`."""
    opened = await ask.service.breakers.open(ask.path["breaker"], ask.body.for_s)
    return Reply(HTTPStatus.ACCEPTED, opened)


async def reset_breaker(ask: Ask[None]) -> Reply:
    """Handle `POST /breakers/{breaker}/reset`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.breakers.reset(ask.path["breaker"]))


async def block_user(ask: Ask[UserBody]) -> Reply:
    """Handle `POST /users/block`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.users.block(ask.body.user, ask.body.note))


async def unblock_user(ask: Ask[UserBody]) -> Reply:
    """Handle `POST /users/unblock`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.users.unblock(ask.body.user, ask.body.note))


async def limit_user(ask: Ask[UserLimitBody]) -> Reply:
    """Handle `POST /users/limit`."""
    body = ask.body
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.users.limit(body.user, body.limit_usd or None, body.note)
    )


async def pause_schedule(ask: Ask[None]) -> Reply:
    """Handle `POST /schedules/{name}/pause`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.schedules.pause(ask.path["name"]))


async def resume_schedule(ask: Ask[None]) -> Reply:
    """Handle `POST /schedules/{name}/resume`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.schedules.resume(ask.path["name"]))


async def trigger_schedule(ask: Ask[None]) -> Reply:
    """Handle `POST /schedules/{name}/trigger`."""
    view, is_new = await ask.service.schedules.trigger(ask.path["name"], ask.key, ask.service.start)
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return Reply(status, view, {"Location": f"/sagas/{view['id']}"})


async def send_events(ask: Ask[None]) -> Reply:
    """Handle `POST /events`."""
    from baton.web.bodies.events import take  # few deployments have any

    taken = await take(ask.service.event_service, ask.text, ask.headers)
    return Reply(HTTPStatus.ACCEPTED, taken)


async def redrive(ask: Ask[RedriveBody]) -> Reply:
    """Handle `POST /dead-letters/{letter}/redrive`."""
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.letters.redrive(ask.path["letter"], force=ask.body.force)
    )


async def redrive_all(ask: Ask[RedriveAllBody]) -> Reply:
    """Handle `POST /dead-letters/redrive`."""
    body = ask.body
    wanted = LetterFilter(body.saga, body.node, body.reason)
    answer = await ask.service.letters.redrive_all(
        wanted, force=body.force, dry_run=body.dry_run, limit=body.limit, cursor=body.cursor
    )
    return Reply(HTTPStatus.ACCEPTED, answer)


async def discard(ask: Ask[DiscardBody]) -> Reply:
    """Handle `POST /dead-letters/{letter}/discard`."""
    return Reply(HTTPStatus.ACCEPTED, await ask.service.letters.discard(ask.path["letter"], ask.body.reason))


async def discard_all(ask: Ask[DiscardAllBody]) -> Reply:
    """Handle `POST /dead-letters/discard`."""
    body = ask.body
    answer = await ask.service.letters.discard_all(
        LetterFilter(body.saga, body.node, body.reason),
        body.why,
        dry_run=body.dry_run,
        limit=body.limit,
        cursor=body.cursor,
    )
    return Reply(HTTPStatus.ACCEPTED, answer)


async def fork(ask: Ask[ForkBody]) -> Reply:
    """Handle `POST /sagas/{saga}/forks`."""
    body = ask.body
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.fork(ask.path["saga"], body.version, body.reason, ask.key)
    )


async def health(ask: Ask[None]) -> Reply:
    """Handle `GET /health`."""
    return _ok(await ask.service.health())


async def openapi(ask: Ask[None]) -> Reply:
    """Handle `GET /openapi.json`."""
    return _ok(ask.describe())


async def list_workflows(ask: Ask[None]) -> Reply:
    """Handle `GET /workflows`."""
    return _ok(await ask.queries.workflows(**ask.query))


async def show_workflow(ask: Ask[None]) -> Reply:
    """Handle `GET /workflows/{name}`."""
    return _ok(await ask.queries.workflow(ask.path["name"]))


async def show_workflow_version(ask: Ask[None]) -> Reply:
    """Handle `GET /workflows/{name}/{version}`."""
    return _ok(await ask.queries.workflow(ask.path["name"], str(ask.path["version"])))


async def list_sagas(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas`."""
    return _ok(await ask.queries.sagas(**ask.query))


async def show_saga(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}`."""
    return _ok(await ask.queries.show(ask.path["saga"]))


async def show_live(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/live`."""
    return _ok(await ask.queries.live(ask.path["saga"]))


async def list_events(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/events`."""
    return _ok(await ask.queries.events(ask.path["saga"], **ask.query))


async def show_value(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/values/{digest}`."""
    return _ok(await ask.queries.value(ask.path["saga"], ask.path["digest"], **ask.query))


async def show_cost(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/cost`."""
    return _ok(await ask.queries.cost(ask.path["saga"]))


async def show_way(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/explain`."""
    return _ok(await ask.queries.way(ask.path["saga"], **ask.query))


async def explain_node(ask: Ask[None]) -> Reply:
    """Handle `GET /sagas/{saga}/explain/{node}`."""
    return _ok(await ask.queries.explain(ask.path["saga"], ask.path["node"]))


async def list_incidents(ask: Ask[None]) -> Reply:
    """Handle `GET /incidents`."""
    return _ok(await ask.queries.incidents(**ask.query))


async def show_incident(ask: Ask[None]) -> Reply:
    """Handle `GET /incidents/{incident}`."""
    return _ok(await ask.queries.incident(ask.path["incident"]))


async def list_breakers(ask: Ask[None]) -> Reply:
    """Handle `GET /breakers`."""
    return _ok(await ask.service.breakers.page(**ask.query))


async def show_breaker(ask: Ask[None]) -> Reply:
    """Handle `GET /breakers/{breaker}`."""
    return _ok(await ask.service.breakers.show(ask.path["breaker"]))


async def list_schedules(ask: Ask[None]) -> Reply:
    """Handle `GET /schedules`."""
    return _ok(await ask.service.schedules.page(**ask.query))


async def show_schedule(ask: Ask[None]) -> Reply:
    """Handle `GET /schedules/{name}`."""
    return _ok(await ask.service.schedules.show(ask.path["name"]))


async def list_letters(ask: Ask[None]) -> Reply:
    """Handle `GET /dead-letters`."""
    query = dict(ask.query)
    wanted = LetterFilter(query["saga"], query["node"], query["reason"])
    return _ok(await ask.service.letters.page(wanted, query["status"], query["limit"], query["cursor"]))


async def show_letter(ask: Ask[None]) -> Reply:
    """Handle `GET /dead-letters/{letter}`."""
    return _ok(await ask.service.letters.show(ask.path["letter"]))


async def list_questions(ask: Ask[None]) -> Reply:
    """Handle `GET /questions`."""
    return _ok(await ask.queries.questions(**ask.query))


async def list_costs(ask: Ask[None]) -> Reply:
    """Handle `GET /costs`."""
    return _ok(await ask.queries.costs(**ask.query))


async def list_error_budgets(ask: Ask[None]) -> Reply:
    """Handle `GET /error-budgets`."""
    return _ok(await ask.queries.error_budgets(**ask.query))


async def show_budget(ask: Ask[None]) -> Reply:
    """Handle `GET /budget`."""
    return _ok(await ask.queries.budget())


async def list_users(ask: Ask[None]) -> Reply:
    """Handle `GET /users`."""
    return _ok(await ask.service.users.page(**ask.query))


async def list_tools(ask: Ask[None]) -> Reply:
    """Handle `GET /tools`."""
    return _ok(await ask.queries.tools())


async def list_node_types(ask: Ask[None]) -> Reply:
    """Handle `GET /node-types`."""
    return _ok(await ask.queries.node_types())


def _ok(body: Any) -> Reply:
    return Reply(HTTPStatus.OK, body)
