"""The handlers of routes that change something."""

from __future__ import annotations

from http import HTTPStatus

from baton.core.log.events import CancelRequested
from baton.errors import NotFound
from baton.runtime.desks.letter_desk import Wanted
from baton.web.ask import Ask
from baton.web.bodies.incident_requests import AcknowledgeBody
from baton.web.bodies.letter_requests import DiscardAllBody, DiscardBody, RedriveAllBody, RedriveBody
from baton.web.bodies.people_requests import AnswerBody, ClaimBody, ConfirmBody, RemindBody
from baton.web.bodies.requests import (
    CallbackBody,
    CancelBody,
    ForkBody,
    IntentionBody,
    OpenBreakerBody,
    ResumeBody,
    SignalBody,
    StartBody,
)
from baton.web.bodies.rollback_body import RollbackBody
from baton.web.bodies.user_requests import UserBody, UserLimitBody
from baton.web.replies import Reply


async def register(ask: Ask[None]) -> Reply:
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
    body = ask.body
    view, is_new = await ask.service.start(
        body.workflow, body.input, ask.key, labels=body.labels, correlation_key=body.correlation_key
    )
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return Reply(status, view, {"Location": f"/sagas/{view['id']}"})


async def intend(ask: Ask[IntentionBody]) -> Reply:
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
    body = ask.body
    done = await ask.service.cancel(ask.path["saga"], body.reason, body.grace_ms, undo=body.undo)
    return Reply(HTTPStatus.ACCEPTED, done)


async def rollback(ask: Ask[RollbackBody]) -> Reply:
    body, saga = ask.body, ask.path["saga"]
    if body.dry_run:
        plan = await ask.service.rollback_plan(saga, body.back_to, body.step)
        return Reply(HTTPStatus.OK, plan, {"Location": f"/sagas/{saga}"})
    wanted = CancelRequested(
        reason=body.reason, by="", at=0, grace_ms=0, undo=True, back_to=body.back_to, together=body.parallel
    )
    return Reply(HTTPStatus.ACCEPTED, await ask.service.rollback(saga, wanted, ask.key, body.step))


async def signal(ask: Ask[SignalBody]) -> Reply:
    saga, name = ask.path["saga"], ask.path["name"]
    body = ask.body
    return Reply(HTTPStatus.ACCEPTED, await ask.service.signal(saga, name, body.payload, ask.key, body.why()))


async def callback(ask: Ask[CallbackBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.callback(ask.path["token"], ask.body.said()))


async def announced(ask: Ask[None]) -> Reply:
    woken = await ask.service.announced(ask.path["profile"], ask.headers, ask.text.encode())
    return Reply(HTTPStatus.ACCEPTED, {"woken": woken})


async def answer(ask: Ask[AnswerBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.answer(ask.path["saga"], ask.body.answer(), ask.key))


async def confirm(ask: Ask[ConfirmBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.confirm(ask.body.token, ask.body.answer()))


async def claim(ask: Ask[ClaimBody]) -> Reply:
    questions = ask.service.questions
    do = questions.release if ask.body.release else questions.claim
    return Reply(HTTPStatus.ACCEPTED, await do(ask.path["saga"], ask.body.ask))


async def remind(ask: Ask[RemindBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.questions.remind(ask.path["saga"], ask.body.ask))


async def resume(ask: Ask[ResumeBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.resume(ask.path["saga"], ask.body.budget_usd))


async def resolve(ask: Ask[None]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.incidents.resolve(ask.path["incident"]))


async def acknowledge(ask: Ask[AcknowledgeBody]) -> Reply:
    found = await ask.service.incidents.acknowledge(ask.path["incident"], ask.body.note)
    return Reply(HTTPStatus.ACCEPTED, found)


async def open_breaker(ask: Ask[OpenBreakerBody]) -> Reply:
    opened = await ask.service.breakers.open(ask.path["breaker"], ask.body.for_s)
    return Reply(HTTPStatus.ACCEPTED, opened)


async def reset_breaker(ask: Ask[None]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.breakers.reset(ask.path["breaker"]))


async def block_user(ask: Ask[UserBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.users.block(ask.body.user, ask.body.note))


async def unblock_user(ask: Ask[UserBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.users.unblock(ask.body.user, ask.body.note))


async def limit_user(ask: Ask[UserLimitBody]) -> Reply:
    body = ask.body
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.users.limit(body.user, body.limit_usd or None, body.note)
    )


async def pause_schedule(ask: Ask[None]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.schedules.pause(ask.path["name"]))


async def resume_schedule(ask: Ask[None]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.schedules.resume(ask.path["name"]))


async def trigger_schedule(ask: Ask[None]) -> Reply:
    view, is_new = await ask.service.schedules.trigger(ask.path["name"], ask.key, ask.service.start)
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return Reply(status, view, {"Location": f"/sagas/{view['id']}"})


async def send_events(ask: Ask[None]) -> Reply:
    from baton.web.bodies.event_bodies import take  # few deployments have any

    taken = await take(ask.service.event_desk, ask.text, ask.headers)
    return Reply(HTTPStatus.ACCEPTED, taken)


async def redrive(ask: Ask[RedriveBody]) -> Reply:
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.letters.redrive(ask.path["letter"], force=ask.body.force)
    )


async def redrive_all(ask: Ask[RedriveAllBody]) -> Reply:
    body = ask.body
    wanted = Wanted(body.saga, body.node, body.reason)
    answer = await ask.service.letters.redrive_all(
        wanted, force=body.force, dry_run=body.dry_run, limit=body.limit, cursor=body.cursor
    )
    return Reply(HTTPStatus.ACCEPTED, answer)


async def discard(ask: Ask[DiscardBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.letters.discard(ask.path["letter"], ask.body.reason))


async def discard_all(ask: Ask[DiscardAllBody]) -> Reply:
    body = ask.body
    answer = await ask.service.letters.discard_all(
        Wanted(body.saga, body.node, body.reason),
        body.why,
        dry_run=body.dry_run,
        limit=body.limit,
        cursor=body.cursor,
    )
    return Reply(HTTPStatus.ACCEPTED, answer)


async def fork(ask: Ask[ForkBody]) -> Reply:
    body = ask.body
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.fork(ask.path["saga"], body.version, body.reason, ask.key)
    )
