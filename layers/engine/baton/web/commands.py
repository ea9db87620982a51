"""The handlers of routes that change something, by runtime/service.py."""

from __future__ import annotations

from http import HTTPStatus

from baton.web.ask import Ask
from baton.web.replies import Reply
from baton.web.requests import AnswerBody, CancelBody, ForkBody, ResumeBody, SignalBody, StartBody


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
    view, is_new = await ask.service.start(ask.body.workflow, ask.body.input, ask.key)
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return Reply(status, view, {"Location": f"/sagas/{view['id']}"})


async def cancel(ask: Ask[CancelBody]) -> Reply:
    body = ask.body
    return Reply(HTTPStatus.ACCEPTED, await ask.service.cancel(ask.path["saga"], body.reason, body.grace_ms))


async def signal(ask: Ask[SignalBody]) -> Reply:
    saga, name = ask.path["saga"], ask.path["name"]
    return Reply(HTTPStatus.ACCEPTED, await ask.service.signal(saga, name, ask.body.payload, ask.key))


async def answer(ask: Ask[AnswerBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.answer(ask.path["saga"], ask.body.answer(), ask.key))


async def resume(ask: Ask[ResumeBody]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.resume(ask.path["saga"], ask.body.budget_usd))


async def resolve(ask: Ask[None]) -> Reply:
    return Reply(HTTPStatus.ACCEPTED, await ask.service.resolve(ask.path["incident"]))


async def fork(ask: Ask[ForkBody]) -> Reply:
    body = ask.body
    return Reply(
        HTTPStatus.ACCEPTED, await ask.service.fork(ask.path["saga"], body.version, body.reason, ask.key)
    )
