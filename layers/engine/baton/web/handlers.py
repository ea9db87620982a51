"""The handlers of routes whose row does not say it in one call.

A handler of a row with one answer returns its body; one of a row with several returns a `Reply`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from baton.core.log.events import CancelRequested
from baton.core.on_demand import OnDemand
from baton.errors import NotFound, UserError
from baton.runtime.requests.operators import LetterFilter
from baton.runtime.requests.service import ANSWERED
from baton.web.bodies import requests as bodies
from baton.web.bodies import users
from baton.web.bodies import versions as of_versions
from baton.web.bodies.forks import ForkBody
from baton.web.replies import Ask, Reply

if TYPE_CHECKING:
    from baton.runtime.requests import migrating, steering, versions
    from baton.runtime.starting.catalog import Registered
else:
    versions = OnDemand("baton.runtime.requests.versions")
    migrating = OnDemand("baton.runtime.requests.migrating")
    steering = OnDemand("baton.runtime.requests.steering")


async def register(ask: Ask[None]) -> Reply:
    """Handle `POST /workflows`."""
    return _registered(await ask.service.register(ask.text, json_only=ask.is_json))


def _registered(registered: Registered, *, is_stored: bool = True) -> Reply:
    definition = registered.definition
    body = {
        "name": definition.name,
        "version": definition.version,
        "graph": definition.graph,
        "notes": list(registered.notes),
    }
    status = HTTPStatus.CREATED if registered.is_new and is_stored else HTTPStatus.OK
    return Reply(status, body, {"Location": f"/workflows/{definition.name}/{definition.version}"})


async def patch_workflow(ask: Ask[of_versions.PatchWorkflowBody]) -> Reply:
    """Handle `POST /workflows/{name}/patches`."""
    body = ask.body
    patch = versions.WorkflowPatch(
        operations=body.patch, made_for=body.for_, description=body.description, dry_run=body.dry_run
    )
    registered = await ask.service.versions.patch(ask.path["name"], patch)
    return _registered(registered, is_stored=not body.dry_run)


async def start(ask: Ask[bodies.StartBody]) -> Reply:
    """Handle `POST /sagas`."""
    body = ask.body
    view, is_new = await ask.service.start(
        body.workflow, body.input, ask.key, labels=body.labels, correlation_key=body.correlation_key
    )
    return Reply(HTTPStatus.CREATED if is_new else HTTPStatus.OK, view, {"Location": f"/sagas/{view['id']}"})


async def mcp(ask: Ask[None]) -> Reply:
    """Handle `POST /mcp`."""
    from baton.web.mcp import serve  # few deployments have clients of it

    return await serve(ask)


async def intend(ask: Ask[bodies.IntentionBody]) -> Reply:
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


async def cancel(ask: Ask[bodies.CancelBody]) -> object:
    """Handle `POST /sagas/{saga}/cancel`."""
    body = ask.body
    return await ask.service.cancel(ask.path["saga"], body.reason, body.grace_ms, undo=body.undo)


async def rollback(ask: Ask[bodies.RollbackBody]) -> Reply:
    """Handle `POST /sagas/{saga}/rollback`."""
    body, saga = ask.body, ask.path["saga"]
    if body.dry_run:
        plan = await ask.service.rollback_plan(saga, body.back_to, body.step)
        return Reply(HTTPStatus.OK, plan, {"Location": f"/sagas/{saga}"})
    wanted = CancelRequested(
        reason=body.reason, by="", at=0, grace_ms=0, undo=True, back_to=body.back_to, together=body.parallel
    )
    return Reply(HTTPStatus.ACCEPTED, await ask.service.rollback(saga, wanted, ask.key, body.step))


async def patch(ask: Ask[of_versions.PatchSagaBody]) -> Reply:
    """Handle `POST /sagas/{saga}/patches`."""
    from baton.runtime.requests.patching import Patch  # few requests are patches

    body, saga = ask.body, ask.path["saga"]
    wanted = Patch(
        operations=None if body.undo else body.patch,
        made_for=body.made_for,
        description=body.description,
        dry_run=body.dry_run,
    )
    answer = await ask.service.patch(saga, wanted, ask.key)
    status = HTTPStatus.OK if body.dry_run else HTTPStatus.ACCEPTED
    return Reply(status, answer, {"Location": f"/sagas/{saga}"})


async def signal(ask: Ask[bodies.SignalBody]) -> Reply:
    """Handle `POST /sagas/{saga}/signals/{name}`."""
    saga, name = ask.path["saga"], ask.path["name"]
    body = ask.body
    sent = await ask.service.signal(saga, name, body.payload, ask.key, body.why())
    is_over = sent["outcome"] == ANSWERED
    return Reply(HTTPStatus.OK if is_over else HTTPStatus.ACCEPTED, sent, {"Location": f"/sagas/{saga}"})


async def say(ask: Ask[bodies.MessageBody]) -> Reply:
    """Handle `POST /sagas/{saga}/messages`."""
    saga, body = ask.path["saga"], ask.body
    sent = await ask.service.say(saga, body.text, ask.key, to=body.to, ends=body.ends)
    return Reply(HTTPStatus.ACCEPTED, sent, {"Location": f"/sagas/{saga}/messages"})


async def callback(ask: Ask[bodies.CallbackBody]) -> object:
    """Handle `POST /callbacks/{token}`."""
    return await ask.service.callback(ask.path["token"], ask.body.said())


async def announced(ask: Ask[None]) -> object:
    """Handle `POST /models/{profile}/webhook`."""
    woken = await ask.service.announced(ask.path["profile"], ask.headers, ask.text.encode())
    return {"woken": woken}


async def answer_question(ask: Ask[bodies.AnswerBody]) -> object:
    """Handle `POST /sagas/{saga}/answer`."""
    return await ask.service.answer(ask.path["saga"], ask.body.answer(), ask.key)


async def confirm(ask: Ask[bodies.ConfirmBody]) -> object:
    """Handle `POST /confirm`."""
    return await ask.service.confirm(ask.body.token, ask.body.answer())


async def claim(ask: Ask[bodies.ClaimBody]) -> object:
    """Handle `POST /sagas/{saga}/claim`."""
    questions = ask.service.questions
    do = questions.release if ask.body.release else questions.claim
    return await do(ask.path["saga"], ask.body.ask)


async def remind(ask: Ask[bodies.RemindBody]) -> object:
    """Handle `POST /sagas/{saga}/remind`."""
    return await ask.service.questions.remind(ask.path["saga"], ask.body.ask)


async def pause_saga(ask: Ask[bodies.PauseBody]) -> object:
    """Handle `POST /sagas/{saga}/pause`."""
    return await ask.service.pause(ask.path["saga"], ask.body.reason)


def _wanted(body: bodies.ManyBody) -> steering.SagaFilter:
    if isinstance(body, bodies.MatchManyBody):
        return steering.SagaFilter(
            workflow=body.workflow, since=body.since, code=body.code, labels=body.labels
        )
    return steering.SagaFilter(workflow=body.workflow)


def _part(body: bodies.ManyBody) -> steering.Part:
    return steering.Part(limit=body.limit, cursor=body.cursor, dry_run=body.dry_run)


async def pause_many(ask: Ask[bodies.PauseManyBody]) -> object:
    """Handle `POST /sagas/pause`."""
    return await ask.service.many.pause(_wanted(ask.body), ask.body.reason, _part(ask.body))


async def resume_many(ask: Ask[bodies.MatchManyBody]) -> object:
    """Handle `POST /sagas/resume`."""
    return await ask.service.many.resume(_wanted(ask.body), _part(ask.body))


async def cancel_many(ask: Ask[bodies.CancelManyBody]) -> object:
    """Handle `POST /sagas/cancel`."""
    body = ask.body
    grace_ms = 30_000 if body.mode == "graceful" else 0
    return await ask.service.many.cancel(_wanted(body), body.reason, grace_ms, _part(body))


async def retry_many(ask: Ask[bodies.RetryManyBody]) -> object:
    """Handle `POST /sagas/retry`."""
    body = ask.body
    return await ask.service.many.retry(_wanted(body), ask.key, _part(body), body.workflow_version)


async def migrate_many(ask: Ask[of_versions.MigrateManyBody]) -> object:
    """Handle `POST /sagas/migrate`."""
    body = ask.body
    wanted = steering.SagaFilter(workflow=body.workflow, labels=body.labels)
    migration = migrating.Migration(to=str(body.to), names=body.map, of=tuple(body.from_))
    return await ask.service.many.migrate(wanted, migration, _part(body))


async def resume_saga(ask: Ask[bodies.ResumeBody]) -> object:
    """Handle `POST /sagas/{saga}/resume`."""
    return await ask.service.resume(ask.path["saga"], ask.body.budget_usd)


async def diagnose(ask: Ask[bodies.DiagnosesBody]) -> object:
    """Handle `POST /diagnoses`."""
    body = ask.body
    return await ask.service.diagnoses(repairs=body.repair, limit=body.limit, cursor=body.cursor)


async def acknowledge(ask: Ask[bodies.AcknowledgeBody]) -> object:
    """Handle `POST /incidents/{incident}/acknowledge`."""
    return await ask.service.incidents.acknowledge(ask.path["incident"], ask.body.note)


async def open_breaker(ask: Ask[bodies.OpenBreakerBody]) -> object:
    """Handle `POST /breakers/{breaker}/open`."""
    return await ask.service.breakers.open(ask.path["breaker"], ask.body.for_s)


async def find_claims(ask: Ask[None]) -> object:
    """Handle `GET /claims`."""
    query = ask.query
    if not query["tool"]:
        raise UserError("give the `tool`, and `with` or `key`")
    return await ask.service.claims.of_key(
        query["tool"], query["with"], query["key"], query["user"], query["at"]
    )


async def free_claim(ask: Ask[bodies.FreeClaimBody]) -> object:
    """Handle `POST /claims/{key}/free`."""
    return await ask.service.claims.free(ask.path["key"], ask.body.reason, force=ask.body.force)


async def decide_alias(ask: Ask[bodies.AliasBody]) -> object:
    """Handle `POST /aliases`."""
    body = ask.body
    return await ask.service.aliases.decide(body.tool, body.given, body.parameter, body.decision)


async def block_user(ask: Ask[users.UserBody]) -> object:
    """Handle `POST /users/block`."""
    return await ask.service.users.block(ask.body.user, ask.body.note)


async def unblock_user(ask: Ask[users.UserBody]) -> object:
    """Handle `POST /users/unblock`."""
    return await ask.service.users.unblock(ask.body.user, ask.body.note)


async def limit_user(ask: Ask[users.UserLimitBody]) -> object:
    """Handle `POST /users/limit`."""
    body = ask.body
    return await ask.service.users.limit(body.user, body.limit_usd or None, body.note)


async def move_tag(ask: Ask[of_versions.TagBody]) -> object:
    """Handle `POST /workflows/{name}/tags/{tag}`."""
    body, path = ask.body, ask.path
    return await ask.service.versions.move_tag(
        path["name"], path["tag"], body.version or 0, body.was, body.reason
    )


async def warm(ask: Ask[bodies.WarmBody]) -> Reply:
    """Handle `POST /warm`."""
    view, is_new = await ask.service.warm(ask.body.tool, ask.body.arguments)
    return Reply(HTTPStatus.CREATED if is_new else HTTPStatus.OK, view, {"Location": f"/sagas/{view['id']}"})


async def list_facts(ask: Ask[None]) -> object:
    """Handle `GET /users/facts`."""
    return await ask.service.facts.page(**ask.query)


async def forget_user(ask: Ask[users.UserFactsBody]) -> object:
    """Handle `POST /users/forget`."""
    return await ask.service.facts.erase(ask.body.user)


async def trigger_schedule(ask: Ask[None]) -> Reply:
    """Handle `POST /schedules/{name}/trigger`."""
    view, is_new = await ask.service.schedules.trigger(ask.path["name"], ask.key, ask.service.start)
    return Reply(HTTPStatus.CREATED if is_new else HTTPStatus.OK, view, {"Location": f"/sagas/{view['id']}"})


async def send_events(ask: Ask[None]) -> object:
    """Handle `POST /events`."""
    from baton.web.bodies.events import take  # few deployments have any

    return await take(ask.service.event_service, ask.text, ask.headers)


async def redrive(ask: Ask[bodies.RedriveBody]) -> object:
    """Handle `POST /dead-letters/{letter}/redrive`."""
    return await ask.service.letters.redrive(ask.path["letter"], force=ask.body.force)


async def redrive_all(ask: Ask[bodies.RedriveAllBody]) -> object:
    """Handle `POST /dead-letters/redrive`."""
    body = ask.body
    wanted = LetterFilter(body.saga, body.node, body.reason)
    return await ask.service.letters.redrive_all(
        wanted, force=body.force, dry_run=body.dry_run, limit=body.limit, cursor=body.cursor
    )


async def discard(ask: Ask[bodies.DiscardBody]) -> object:
    """Handle `POST /dead-letters/{letter}/discard`."""
    return await ask.service.letters.discard(ask.path["letter"], ask.body.reason)


async def discard_all(ask: Ask[bodies.DiscardAllBody]) -> object:
    """Handle `POST /dead-letters/discard`."""
    body = ask.body
    return await ask.service.letters.discard_all(
        LetterFilter(body.saga, body.node, body.reason),
        body.why,
        dry_run=body.dry_run,
        limit=body.limit,
        cursor=body.cursor,
    )


async def fork(ask: Ask[ForkBody]) -> Reply:
    """Handle `POST /sagas/{saga}/forks`."""
    body, saga = ask.body, ask.path["saga"]
    how = {"dry_run": body.dry_run, "new": bool(body.as_)}
    answer = await ask.service.fork_with(saga, ask.key, **how, **body.wanted)
    status = HTTPStatus.OK if body.dry_run else HTTPStatus.ACCEPTED
    return Reply(status, answer, {"Location": f"/sagas/{answer['id']}"})


async def openapi(ask: Ask[None]) -> object:
    """Handle `GET /openapi.json`."""
    return ask.describe()


async def list_letters(ask: Ask[None]) -> object:
    """Handle `GET /dead-letters`."""
    query = dict(ask.query)
    wanted = LetterFilter(query["saga"], query["node"], query["reason"])
    return await ask.service.letters.page(wanted, query["status"], query["limit"], query["cursor"])
