"""Dispatch of an event to a page of the table, through session and CSRF token, to HTML."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import unquote

from baton.console import (
    acting,
    catalog,
    controls,
    conversations,
    inbox,
    lists,
    overview,
    rendering,
    saga,
)
from baton.console.acting import Kind, deed_page
from baton.console.signing import Signing
from baton.console.visits import (
    HEADERS,
    ROOT,
    SESSION,
    Answer,
    Calls,
    Download,
    Html,
    Redirect,
    Session,
    Unchanged,
    Visit,
    address_of,
    cookie_name,
    cookies,
    form_of,
    header,
    here,
    page_response,
)
from baton.errors import EngineFault, NotFound, Unreadable, UserError
from baton.ports import Clock, Entropy


@dataclass(frozen=True)
class Page:
    """A method and a path below `/console`. `{name}` is one part of the path."""

    method: str
    path: str
    handler: Callable[[Visit], Awaitable[Answer]]


_KINDS: Final = (controls.INCIDENT, controls.LETTER, controls.BREAKER, controls.SCHEDULE)


def _of(kind: Kind) -> list[Page]:
    """Return the page of one thing, and the targets of its forms."""
    path = f"{kind.at}/{{{kind.parameter}}}"
    forms = [Page("POST", f"{path}/{deed.name}", deed_page(kind, deed)) for deed in kind.deeds]
    return [Page("GET", path, lambda visit: kind.page(visit, None)), *forms]


PAGES: Final = (
    Page("GET", "", overview.overview),
    Page("GET", "sagas", lists.sagas),
    Page("GET", "sagas/{saga}", saga.saga_page),
    Page("GET", "sagas/{saga}/log", saga.log),
    Page("GET", "sagas/{saga}/log.json", saga.download),
    Page("GET", "sagas/{saga}/log/{version}", saga.entry),
    Page("GET", "sagas/{saga}/cost", saga.cost),
    Page("GET", "sagas/{saga}/talk", conversations.conversations),
    Page("GET", "sagas/{saga}/values/{digest}", conversations.value),
    Page("GET", "sagas/{saga}/graph", saga.graph),
    Page("GET", "sagas/{saga}/diff", saga.comparison),
    Page("GET", "inbox", inbox.inbox),
    Page("GET", "sagas/{saga}/questions/{ask}", inbox.question_page),
    Page("POST", "sagas/{saga}/questions/{ask}", inbox.submit_answer),
    Page("POST", "sagas/{saga}/questions/{ask}/claim", inbox.submit_claim),
    *(
        Page("GET", f"sagas/{{saga}}/{one.name}", acting.confirmation_page(one.name))
        for one in acting.ACTIONS
    ),
    *(Page("POST", f"sagas/{{saga}}/{one.name}", acting.action_page(one.name)) for one in acting.ACTIONS),
    *(Page("GET", f"bulk/{one.action.name}", lists.bulk_confirmation_page(one)) for one in lists.MANY),
    *(Page("POST", f"bulk/{one.action.name}", lists.does(one)) for one in lists.MANY),
    Page("GET", "incidents", controls.incidents),
    Page("GET", "dead-letters", controls.letters),
    # A word in a path comes before a name: no letter is called so.
    Page("GET", "dead-letters/redrive", controls.matching_letters),
    Page("POST", "dead-letters/redrive", controls.submit_redrive),
    Page("GET", "breakers", controls.breakers),
    Page("GET", "schedules", controls.schedules),
    Page("GET", "users", controls.users),
    *(Page("POST", f"users/{one.name}", controls.user_deed(one)) for one in controls.USER_DEEDS),
    *(page for kind in _KINDS for page in _of(kind)),
    Page("GET", "workflows", catalog.workflows),
    Page("GET", "workflows/{name}", catalog.workflow),
    # A word in a path comes before a name: versions are numbers.
    Page("GET", "workflows/{name}/start", catalog.form),
    Page("POST", "workflows/{name}/start", catalog.submit_start),
    *(
        Page("POST", f"workflows/{{name}}/{one.name}", catalog.workflow_deed(one))
        for one in catalog.WORKFLOW_DEEDS
    ),
    Page("GET", "workflows/{name}/{version}", catalog.workflow),
    Page("GET", "workflows/{name}/{version}/start", catalog.form),
    Page("POST", "workflows/{name}/{version}/start", catalog.submit_start),
    Page("GET", "error-budgets", catalog.error_budgets),
    Page("GET", "tools", catalog.tools_page),
    Page("GET", "tools/{tool}", catalog.tool),
    Page("GET", "node-types", catalog.node_types_page),
    Page("GET", "node-types/{kind}", catalog.node_type),
    Page("GET", "money", overview.money),
)
NAVIGATION: Final = (
    ("", "Overview"),
    ("/sagas", "Sagas"),
    ("/inbox", "Inbox"),
    ("/incidents", "Incidents"),
    ("/dead-letters", "Dead letters"),
    ("/breakers", "Breakers"),
    ("/schedules", "Schedules"),
    ("/workflows", "Workflows"),
    ("/tools", "Tools"),
    ("/money", "Money"),
    ("/users", "Users"),
)
"""Path below `/console` and label of each entry of the navigation."""


logger = logging.getLogger("baton.console")
_MOST_ANSWERED: Final = 6_000_000  # bytes of a body as Lambda quotes it
_HTML: Final = "text/html; charset=utf-8"


class CallsFor(Protocol):
    """Factory of the calls of one visitor. Raises `Unauthenticated`, `TooManyRequests`."""

    async def __call__(self, claims: Mapping[str, Any], event: Mapping[str, Any]) -> Calls: ...


class Site:
    """The console of a deployment. `handle` takes a payload 2.0 event of a path under `/console`."""

    def __init__(self, signing: Signing, calls: CallsFor, clock: Clock, entropy: Entropy) -> None:
        self._signing, self._calls, self._clock, self._entropy = signing, calls, clock, entropy

    async def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer in the format of API Gateway."""
        path = str(event.get("rawPath", "")).rstrip("/") or ROOT
        session = call = None
        try:
            if (opened := self._open(path, event)) is not None:
                return opened
            if not self._signing.is_set_up:
                return self._show(Html(template="off.html", title="There is no console here", status=404))
            seal = await self._signing.seal()
            if path.startswith(f"{ROOT}/sign-"):
                return await self._signing.handle(path, event)
            session = Session.open(
                seal, cookies(event).get(cookie_name(event, SESSION), ""), self._clock.now()
            )
            if session is None:
                there = path if event["requestContext"]["http"]["method"] == "GET" else ROOT
                page = Html(template="sign-in.html", title="Sign in", data={"there": there}, status=401)
                return self._show(page)
            # Before anything else is looked at: a page that says what is wrong says, too, who sees it.
            call = await self._calls(session.claims, event)
            return self._show(await self._page(path, event, session, call), session, call, event)
        except UserError as error:
            return self._show(_refusal(error), session, call)
        except Unreadable as error:
            logger.error("engine fault", extra={"fault": repr(error)})
            data = {"detail": error.detail, "problems": ()}
            page = Html(template="error.html", title="This saga cannot be read", data=data, status=500)
            return self._show(page, session, call)
        except EngineFault as error:
            logger.error("engine fault", extra={"fault": repr(error)})
            title, status = "The store did not answer in time", 503
        except Exception as error:
            logger.error("console defect", exc_info=error)
            title, status = "A defect in Baton; it has been logged", 500
        return self._show(
            Html(template="error.html", title=title, data=_NO_DETAIL, status=status), session, call
        )

    def _open(self, path: str, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a resource that requires no session: style sheet, scripts, icon. None for other paths."""
        name = path.removeprefix(f"{ROOT}/static/")
        found = rendering.asset(name) if name != path else None
        if found is None:
            return None
        asked = (event.get("queryStringParameters") or {}).get("v")
        kept = "public, max-age=31536000, immutable" if asked == found.version else "no-cache"
        return page_response(200, found.text, {**HEADERS, "content-type": found.kind, "cache-control": kept})

    async def _page(self, path: str, event: Mapping[str, Any], session: Session, call: Calls) -> Answer:
        method = event["requestContext"]["http"]["method"]
        handler, named = _found(method, path)
        form = form_of(event) if method == "POST" else {}
        if method == "POST" and not session.admits(next(iter(form.pop("csrf", [])), "")):
            title = "This form is not of your sign-in any more"
            data = {"detail": "Open the page again and send its form. Nothing was done.", "problems": ()}
            return Html(template="error.html", title=title, data=data, status=403)
        return await handler(
            Visit(
                session=session,
                call=call,
                path=named,
                query=event.get("queryStringParameters") or {},
                form=form,
                now=self._clock.now(),
                token=self._entropy.token(128),
                api=address_of(event),
                seen=_seen(event),
            )
        )

    def _show(
        self,
        page: Answer,
        session: Session | None = None,
        call: Calls | None = None,
        event: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        if isinstance(page, Redirect):
            return page_response(303, "", {**HEADERS, "location": page.to})
        if isinstance(page, Download):
            name = re.sub(r"[^A-Za-z0-9_.-]", "_", page.name)
            kept = {"content-type": page.kind, "content-disposition": f'attachment; filename="{name}"'}
            sent = page_response(200, page.body, HEADERS | kept)
            return sent if _fits(sent) else self._show(_TOO_LARGE, session, call, event)
        if isinstance(page, Unchanged) or (page.tag and _seen(event) == page.tag):
            return page_response(304, "", HEADERS)
        common = {
            "title": page.title,
            "session": session,
            "csrf": session.csrf if session else "",
            "now": self._clock.now(),
            "api": address_of(event) if event else "",
            "tenant": call.tenant if call else "",
            "nav": NAVIGATION if session else (),
            "live": {"tag": page.tag, "every": page.every, "here": here(event)} if page.tag else None,
        }
        html = rendering.render(page.template, common | dict(page.data))
        kept = {**HEADERS, "content-type": _HTML} | ({"etag": page.tag} if page.tag else {})
        if page.pictures:
            policy = HEADERS["content-security-policy"].replace("img-src", f"img-src {page.pictures}")
            kept |= {"content-security-policy": policy}
        if page.adds:
            kept |= {"hx-retarget": f"#{page.adds}", "hx-reswap": "beforeend"}
        is_part = page.tag and header(event, "hx-request")
        shown = page_response(page.status, rendering.live_part(html) if is_part else html, kept)
        return shown if _fits(shown) else self._show(_TOO_LARGE, session, call, event)


_NO_DETAIL: Final = {"detail": "Nothing is known of what you asked for. Try it again.", "problems": ()}
_TOO_LARGE: Final = Html(
    template="error.html",
    title="This page is too large to be sent",
    data={"detail": "An answer has at most 6 MB. Look at a part of it, or ask `baton`.", "problems": ()},
    status=500,
)


def _fits(shown: Mapping[str, Any]) -> bool:
    """Return true if the answer fits Lambda's size limit. Otherwise the caller would receive a bare 500."""
    body = shown["body"]
    return (
        len(body) * 6 < _MOST_ANSWERED or len(json.dumps(body, ensure_ascii=False).encode()) < _MOST_ANSWERED
    )


Handler = Callable[[Visit], Awaitable[Answer]]


def _found(method: str, path: str) -> tuple[Handler, dict[str, str]]:
    """Return the page of a path, and the names in it. Raises `NotFound`."""
    parts = path.removeprefix(ROOT).strip("/").split("/")
    for page in PAGES:
        wanted = page.path.strip("/").split("/")
        if page.method != method or len(wanted) != len(parts):
            continue
        if all(one.startswith("{") or one == other for one, other in zip(wanted, parts, strict=True)):
            named = {
                one[1:-1]: unquote(other) for one, other in zip(wanted, parts, strict=True) if one[:1] == "{"
            }
            return page.handler, named
    raise NotFound("the console has no such page")


def _seen(event: Mapping[str, Any]) -> str:
    """Return the tag of the content that a self-renewing page has."""
    return header(event, "if-none-match") if header(event, "hx-request") else ""


def _refusal(error: UserError) -> Html:
    data = {"detail": error.detail, "problems": error.problems}
    return Html(template="error.html", title=error.title, data=data, status=error.status)
