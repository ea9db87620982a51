"""The handlers of routes that only read."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from baton.runtime.desks.letter_desk import Wanted
from baton.web.ask import Ask
from baton.web.replies import Reply


async def health(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.health())


async def openapi(ask: Ask[None]) -> Reply:
    return _ok(ask.describe())


async def list_workflows(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.workflows(**ask.query))


async def show_workflow(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.workflow(ask.path["name"]))


async def show_workflow_version(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.workflow(ask.path["name"], str(ask.path["version"])))


async def list_sagas(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.sagas(**ask.query))


async def show_saga(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.show(ask.path["saga"]))


async def show_live(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.live(ask.path["saga"]))


async def list_events(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.events(ask.path["saga"], **ask.query))


async def show_value(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.value(ask.path["saga"], ask.path["digest"], **ask.query))


async def show_cost(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.cost(ask.path["saga"]))


async def show_way(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.way(ask.path["saga"], **ask.query))


async def explain_node(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.explain(ask.path["saga"], ask.path["node"]))


async def list_incidents(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.incidents(**ask.query))


async def show_incident(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.incident(ask.path["incident"]))


async def list_breakers(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.breakers.page(**ask.query))


async def show_breaker(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.breakers.show(ask.path["breaker"]))


async def list_schedules(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.schedules.page(**ask.query))


async def show_schedule(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.schedules.show(ask.path["name"]))


async def list_letters(ask: Ask[None]) -> Reply:
    query = dict(ask.query)
    wanted = Wanted(query["saga"], query["node"], query["reason"])
    return _ok(await ask.service.letters.page(wanted, query["status"], query["limit"], query["cursor"]))


async def show_letter(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.letters.show(ask.path["letter"]))


async def list_questions(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.questions(**ask.query))


async def list_costs(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.costs(**ask.query))


async def list_error_budgets(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.error_budgets(**ask.query))


async def show_budget(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.budget())


async def list_users(ask: Ask[None]) -> Reply:
    return _ok(await ask.service.users.page(**ask.query))


async def list_tools(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.tools())


async def list_node_types(ask: Ask[None]) -> Reply:
    return _ok(await ask.queries.node_types())


def _ok(body: Any) -> Reply:
    return Reply(HTTPStatus.OK, body)
