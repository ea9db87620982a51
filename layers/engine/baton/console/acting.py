"""Actions that a person can take on a page: their forms, their confirmation, and their execution."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.rendering import commands, part
from baton.console.visits import ENDED, OFTEN, SLOWEST_POLL_MS, Answer, Html, Redirect, Visit
from baton.errors import NotFound, UserError


def pace(view: Mapping[str, Any]) -> int:
    """Return the milliseconds between a page's checks for changes of its saga."""
    return SLOWEST_POLL_MS if view["status"] in ENDED else OFTEN


@dataclass(frozen=True, slots=True)
class Input:
    """A field of an action's form. kind: text, number or check. initial: initial value."""

    name: str
    label: str
    kind: str = "text"
    initial: str = ""


@dataclass(frozen=True, kw_only=True)
class Action:
    """An action on a saga.

    name: part of the path of its page. does: effect, before it. done: effect, after it. role: role that the
    API requires. body: of the request. baton: arguments of the `baton` command. path: path below the saga's.
    fits: returns true if a saga in this state accepts the action.
    """

    name: str
    title: str
    does: str
    done: str
    role: str
    route: str
    path: str
    inputs: tuple[Input, ...]
    body: Callable[[Visit], dict[str, Any]]
    baton: Callable[[str, Mapping[str, Any]], Sequence[str]]
    fits: Callable[[Mapping[str, Any]], bool]
    danger: bool = False
    has_key: bool = False


_REASON: Final = Input("reason", "Reason, for the log")


def _cancel(visit: Visit) -> dict[str, Any]:
    body: dict[str, Any] = {"reason": visit.said("reason")}
    if visit.said("forced"):
        body["mode"] = "forced"
    return body | ({"undo": True} if visit.said("undo") else {})


def _resume(visit: Visit) -> dict[str, Any]:
    return {"budget_usd": visit.said("budget_usd")} if visit.said("budget_usd") else {}


def _version(visit: Visit, least: int) -> int:
    said = visit.said("version") or str(least)
    if not (said.isascii() and said.isdigit() and len(said) < 10):
        raise UserError("the version is a whole number: that of an entry in the log")
    return int(said)


def _back(visit: Visit) -> dict[str, Any]:
    body: dict[str, Any] = {"version": _version(visit, 0), "reason": visit.said("reason")}
    return body | ({"parallel": True} if visit.said("parallel") else {})


def _fork(visit: Visit) -> dict[str, Any]:
    body: dict[str, Any] = {"reason": visit.said("reason")}
    if visit.said("stable"):
        body["at"] = "stable"
    if visit.said("before"):
        body["before"] = visit.said("before")
    if visit.said("version") or len(body) == 1:
        body["version"] = _version(visit, 1)
    if visit.said("input"):
        body["input"] = _json(visit.said("input"))
    return body | ({"leave": True} if visit.said("leave") else {})


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UserError('the input is JSON, such as {"party": 4}') from error


def _fork_command(saga: str, body: Mapping[str, Any]) -> list[str]:
    begins = (
        [str(body["version"])]
        if "version" in body
        else ["--before", body["before"]]
        if "before" in body
        else ["--stable"]
    )
    given = ["--input", json.dumps(body["input"])] if "input" in body else []
    return ["fork", saga, *begins, *given, *(["--leave"] if body.get("leave") else []), *_reason(body)]


def _reason(body: Mapping[str, Any]) -> list[str]:
    return ["--reason", str(body["reason"])] if body.get("reason") else []


ACTIONS: Final = (
    Action(
        name="cancel",
        title="Cancel",
        does="Nothing new starts. Steps that run may finish for 30 seconds; forced, they are interrupted at once. The saga then ends as "
        "cancelled. With undoing, it first takes back what it has done, as far as its tools can.",
        done="It is asked to cancel.",
        role="run",
        route="cancelSaga",
        path="/cancel",
        inputs=(
            _REASON,
            Input("forced", "Interrupt running steps", "check"),
            Input("undo", "Undo what was done", "check"),
        ),
        body=_cancel,
        baton=lambda saga, body: [
            "cancel",
            saga,
            *_reason(body),
            *(["--forced"] if body.get("mode") else []),
            *(["--undo"] if body.get("undo") else []),
        ],
        fits=lambda view: view["status"] not in ENDED and not view["cancelling"],
        danger=True,
    ),
    Action(
        name="resume",
        title="Resume",
        does="A paused saga goes on where it was. A parked one tries again what it was parked for, with its attempts counted anew. One that was "
        "parked for its money may spend as much again, or up to the sum that you give.",
        done="It goes on.",
        role="operate",
        route="resumeSaga",
        path="/resume",
        inputs=(Input("budget_usd", "Dollars that it may spend in all (may be left empty)"),),
        body=_resume,
        baton=lambda saga, body: ["resume", saga, *(["--budget", body["budget_usd"]] if body else [])],
        fits=lambda view: view["status"] in ("parked", "paused", "reflecting"),
    ),
    Action(
        name="pause",
        title="Pause",
        does="It begins nothing until it is resumed, and its time stands still. Steps that run end. Its children go on.",
        done="It is paused.",
        role="operate",
        route="pauseSaga",
        path="/pause",
        inputs=(_REASON,),
        body=lambda visit: {"reason": visit.said("reason")},
        baton=lambda saga, body: ["pause", saga, *_reason(body)],
        fits=lambda view: view["status"] not in (*ENDED, "paused"),
    ),
    Action(
        name="wake",
        title="Wake",
        does="A worker looks at the saga now, whatever time it is due at.",
        done="A worker looks at it now.",
        role="operate",
        route="wakeSaga",
        path="/wake",
        inputs=(),
        body=lambda _: {},
        baton=lambda saga, _: ["wake", saga],
        fits=lambda view: view["status"] not in ENDED,
    ),
    Action(
        name="rollback",
        title="Roll back",
        does="What the saga has done behind that version of its log is undone, the last step first, by what its tools name for it. 0 undoes "
        "everything. What runs is stopped; a saga that has ended goes on in a new branch and ends as rolled back.",
        done="It undoes what it has done.",
        role="operate",
        route="rollBackSaga",
        path="/rollback",
        inputs=(
            Input("version", "Version that stays", "number", "0"),
            _REASON,
            Input("parallel", "Undo steps side by side", "check"),
        ),
        body=_back,
        baton=lambda saga, body: [
            "rollback",
            saga,
            *(["--to", str(body["version"])] if body["version"] else []),
            *_reason(body),
            *(["--parallel"] if body.get("parallel") else []),
        ],
        fits=lambda view: bool(view["undo"]),
        danger=True,
        has_key=True,
    ),
    Action(
        name="fork",
        title="Fork",
        does="The saga goes on from the state at that version of its log, in a new branch. The old branch is kept in the log; what was done in "
        "it outside is not undone, and not done again where its key stays. A saga that has ended runs again.",
        done="It goes on from there.",
        role="operate",
        route="forkSaga",
        path="/forks",
        inputs=(
            Input("version", "Version to go on from", "number"),
            Input("before", "Or a step that runs again"),
            Input("stable", "Or the last version at which nothing had failed", "check"),
            Input("input", "Another input for the saga, as JSON (may be left empty)"),
            Input("leave", "Leave effects that may then be done again", "check"),
            _REASON,
        ),
        body=_fork,
        baton=_fork_command,
        fits=lambda view: view["version"] > 1,
        has_key=True,
    ),
)
_BY_NAME: Final = {one.name: one for one in ACTIONS}


def possible(view: Mapping[str, Any], roles: frozenset[str]) -> list[Action]:
    """Return the actions that this person can take on a saga in this state."""
    return [one for one in ACTIONS if one.role in roles and one.fits(view)]


def action_done(visit: Visit) -> str:
    """Return the message of a page reached after an action."""
    if visit.query.get("done") == "start":
        return "It is started."
    action = _BY_NAME.get(visit.query.get("done", ""))
    if action is None:
        return ""
    return action.done if visit.query.get("changed") != "no" else "It was so before. Nothing was changed."


def confirmation_page(name: str) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that explains the action before it is taken."""

    async def page(visit: Visit) -> Answer:
        return await _page(_BY_NAME[name], visit)

    return page


def action_page(name: str) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that takes the action."""

    async def page(visit: Visit) -> Answer:
        action, saga = _BY_NAME[name], visit.path["saga"]
        key = visit.said("key")[:64] if action.has_key else ""
        try:
            found = await visit.call(action.route, {"saga": saga}, body=action.body(visit), key=key)
        except NotFound:
            raise
        except UserError as error:
            return await _page(action, visit, error)
        changed = "" if found.get("changed", True) else "&changed=no"
        return Redirect(f"/console/sagas/{saga}?done={name}{changed}")

    return page


async def _page(action: Action, visit: Visit, error: UserError | None = None) -> Html:
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    said = {
        one.name: visit.said(one.name) if visit.form else visit.query.get(one.name, one.initial)
        for one in action.inputs
    }
    plan = None
    if action.name == "rollback" and action.role in visit.call.roles:
        try:
            asked = {"version": _version(visit, int(said["version"] or 0)), "dry_run": True}
            plan = (await visit.call(action.route, {"saga": saga}, body=asked))["plan"]
        except (UserError, ValueError) as refused:
            error = error or (refused if isinstance(refused, UserError) else None)
    try:
        body = (
            action.body(visit)
            if visit.form
            else {"version": int(said["version"] or 1)}
            if "version" in said
            else {}
        )
    except (UserError, ValueError):
        body = {"version": 1}
    path = f"/sagas/{saga}{action.path}"
    data = {
        "action": action,
        "saga": view,
        "said": said,
        "key": visit.said("key") or visit.token,
        "error": error,
        "plan": plan,
        "commands": commands(visit.api, path, action.baton(saga, body), body, has_key=action.has_key),
    }
    status = 200 if error is None else error.status
    return Html(template="action.html", title=f"{action.title} {saga}", data=data, status=status)


@dataclass(frozen=True, kw_only=True)
class Deed:
    """An action on a thing other than a saga.

    name: last part of the path of its form. does: effect, before it. done: effect, after it. role: role that
    the API requires. path: path of the API's route, below the thing's. body: of the request. baton: arguments
    of the `baton` command. fits: returns true if a thing in this state accepts the action. then: target, from
    the API's answer; by default the thing.
    """

    name: str
    title: str
    does: str
    done: str
    role: str
    route: str
    baton: Callable[[str, Mapping[str, Any]], Sequence[str]]
    inputs: tuple[Input, ...] = ()
    body: Callable[[Visit], dict[str, Any]] = lambda _: {}
    fits: Callable[[Mapping[str, Any]], bool] = lambda _: True
    then: Callable[[Mapping[str, Any]], str] | None = None
    danger: bool = False
    has_key: bool = False


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of thing. at: path of its pages and routes, such as `breakers`. parameter: of the routes. page:
    of one thing, with the error of a refused action.
    """

    at: str
    parameter: str
    deeds: tuple[Deed, ...]
    page: Callable[[Visit, UserError | None], Awaitable[Html]]


def possible_actions(
    deeds: Sequence[Deed], at: str, name: str, view: Mapping[str, Any], visit: Visit
) -> list[Any]:
    """Return the actions that this person can take on this thing now, with fields and commands."""
    found = []
    for deed in deeds:
        if deed.role not in visit.call.roles or not deed.fits(view):
            continue
        body = deed.body(visit)
        path = f"/{at}/{part(name)}/{deed.name}"
        found.append(
            {
                "deed": deed,
                "there": f"/console{path}",
                "said": {one.name: visit.said(one.name) or one.initial for one in deed.inputs},
                "commands": commands(visit.api, path, deed.baton(name, body), body, has_key=deed.has_key),
            }
        )
    return found


def deed_done(deeds: Sequence[Deed], visit: Visit) -> str:
    """Return the message of a page reached after a deed."""
    return next((deed.done for deed in deeds if deed.name == visit.query.get("done")), "")


def deed_page(kind: Kind, deed: Deed) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that executes the deed and shows the thing again."""

    async def page(visit: Visit) -> Answer:
        name = visit.path[kind.parameter]
        key = visit.said("key")[:64] if deed.has_key else ""
        try:
            found = await visit.call(deed.route, {kind.parameter: name}, body=deed.body(visit), key=key)
        except NotFound:
            raise
        except UserError as error:
            return await kind.page(visit, error)
        return Redirect(
            deed.then(found) if deed.then else f"/console/{kind.at}/{part(name)}?done={deed.name}"
        )

    return page


def page_links(visit: Visit, there: str, kept: Mapping[str, str], next: str | None) -> dict[str, str]:
    """Return the addresses of the next and the first page of a list, for its template."""

    def address(query: Mapping[str, str]) -> str:
        return f"{there}?{urlencode(query)}" if query else there

    return {
        "more": address({**kept, "cursor": next}) if next else "",
        "first": address(kept) if visit.query.get("cursor") else "",
        "same": address(kept),
    }


def chosen_filters(visit: Visit, *names: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the chosen filters of a list, and the same with the page, as a query of the API."""
    kept = {name: visit.query[name] for name in names if visit.query.get(name)}
    cursor = visit.query.get("cursor", "")
    return kept, kept | ({"cursor": cursor} if cursor else {})
