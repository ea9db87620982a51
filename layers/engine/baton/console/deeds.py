"""What can be done about one thing that is not a saga: a breaker, a schedule, a dead letter. Each is a form on the thing's page.

What can be done about a saga is in acting.py, and about many at once in bulk.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from baton.console.acting import Input
from baton.console.rendering import part
from baton.console.shell import commands
from baton.console.visits import Answer, Html, Redirect, Visit
from baton.errors import NotFound, UserError


@dataclass(frozen=True, kw_only=True)
class Deed:
    """name: last part of the path of its form. does: what it will do. done: what was done. role: that the API asks for.

    path: of the API's route, behind the thing's. body: of the request; baton: the words behind `baton`. fits: whether a thing
    in this state can take it. then: where it leads, from the API's answer; without it back to the thing.
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
    """A kind of thing. at: where its pages and its routes are, such as `breakers`; parameter: of the routes.

    page: of one thing, with what was refused.
    """

    at: str
    parameter: str
    deeds: tuple[Deed, ...]
    page: Callable[[Visit, UserError | None], Awaitable[Html]]


def offered(deeds: Sequence[Deed], at: str, name: str, view: Mapping[str, Any], visit: Visit) -> list[Any]:
    """What this person can do about this thing now: deeds with the values of their fields, and their commands."""
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


def done(deeds: Sequence[Deed], visit: Visit) -> str:
    """What a page says that is come to from a deed."""
    return next((deed.done for deed in deeds if deed.name == visit.query.get("done")), "")


def does(kind: Kind, deed: Deed) -> Callable[[Visit], Awaitable[Answer]]:
    """Does it, and shows the thing again."""

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


def paged(visit: Visit, there: str, kept: Mapping[str, str], next: str | None) -> dict[str, str]:
    """Addresses of the next and the first page of a list, for its template."""

    def address(query: Mapping[str, str]) -> str:
        return f"{there}?{urlencode(query)}" if query else there

    return {
        "more": address({**kept, "cursor": next}) if next else "",
        "first": address(kept) if visit.query.get("cursor") else "",
        "same": address(kept),
    }


def asked(visit: Visit, *names: str) -> tuple[dict[str, str], dict[str, str]]:
    """The filters of a list that were chosen, and the same with the page, as a query of the API."""
    kept = {name: visit.query[name] for name in names if visit.query.get(name)}
    cursor = visit.query.get("cursor", "")
    return kept, kept | ({"cursor": cursor} if cursor else {})
