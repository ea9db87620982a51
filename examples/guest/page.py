"""The pages over HTTP: the words, what became of them, answers and other wishes; and the looks while the guest is writing.

Pages are made by Jinja2 and need no JavaScript. Only forms of this program's own pages do anything, and only on this machine.
"""

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import httpx
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from examples.guest.api import Api, RefusedError
from examples.guest.story import tell
from examples.guest.warming import Warmer

HERE = Path(__file__).parent / "files"
MOST_WORDS, MOST_FORM = 1_000, 20_000
_OWN = ("127.0.0.1", "localhost")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_STATIC = {"page.css": "text/css", "page.js": "text/javascript"}


class Page:
    """`learn` tells it where the API is, and with which token; before that it says that everything is still starting."""

    def __init__(
        self, now: Callable[[], float] = time.time, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._now, self._transport = now, transport
        self._api: Api | None = None
        self._console = ""
        self._warmer: Warmer | None = None
        self._token = secrets.token_urlsafe(24)
        self._templates = Environment(
            loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )

    def learn(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        api = Api(httpx.AsyncClient(base_url=url, headers=headers, transport=self._transport))
        self._console, self._warmer = f"{url}/console", Warmer(api.start, api.show, self._now)
        self._api = api

    def app(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/", self._guarded(self._first)),
            Route("/", self._guarded(self._ask), methods=["POST"]),
            Route("/warm", self._guarded(self._warm), methods=["POST"]),
            Route("/evenings/{saga}", self._guarded(self._evening)),
            Route("/evenings/{saga}/answer", self._guarded(self._answer), methods=["POST"]),
            Route("/evenings/{saga}/say", self._guarded(self._say), methods=["POST"]),
            Route("/static/{name}", self._static),
        ]
        return Starlette(routes=routes)

    @property
    def warmer(self) -> Warmer | None:
        """What looks while the guest is writing."""
        return self._warmer

    def _guarded(
        self, page: Callable[[Api, Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            if (request.url.hostname or "") not in _OWN:
                return self._show("error.html", 403, why="This page is for the browser of this machine.")
            if self._api is None:
                return self._show(
                    "error.html", 503, why="Everything is still starting. Load this page again."
                )
            try:
                return await page(self._api, request)
            except RefusedError as error:
                return self._show("error.html", error.status, why=str(error))

        return serve

    async def _first(self, _: Api, request: Request) -> Response:
        return self._form()

    def _form(self, words: str = "", at: str = "", wrong: str = "") -> Response:
        tomorrow = datetime.fromtimestamp(self._now(), UTC) + timedelta(days=1)
        at = at or f"{tomorrow:%Y-%m-%d}T19:30"
        status = 422 if wrong else 200
        key = secrets.token_urlsafe(16)
        return self._show(
            "first.html", status, words=words, at=at, wrong=wrong, key=key, console=self._console
        )

    async def _ask(self, api: Api, request: Request) -> Response:
        form = await self._read(request)
        words, at = form.get("words", "").strip(), form.get("at", "").strip()
        if not 0 < len(words) <= MOST_WORDS:
            return self._form(words, at, f"Say in 1 to {MOST_WORDS:,} characters what you would like.")
        if (when := _moment(at)) is None:
            return self._form(words, "", "Say when, as a date and a time.")
        saga = await api.intend(words, when, form.get("key", "")[:64])
        return RedirectResponse(f"/evenings/{quote(saga, safe='')}", 303, _HEADERS)

    async def _warm(self, _: Api, request: Request) -> Response:
        """Best effort: it answers at once, and never with an error."""
        form = await self._read(request)
        when, known = _moment(form.get("at", "")), ""
        if self._warmer is not None and when is not None:
            known = self._warmer.warm(form.get("words", "")[:MOST_WORDS], when)
        return JSONResponse({"known": known}, headers=_HEADERS)

    async def _evening(self, api: Api, request: Request) -> Response:
        saga = request.path_params["saga"]
        view = await api.show(saga)
        steps, events = await api.steps(saga), await api.events(saga)
        children = [str(event["child"]) for event in events if event["kind"] == "child_opened"]
        child = await api.steps(children[-1]) if children else []
        data = {"story": tell(view, steps, child), "saga": str(view["id"]), "words": _words_of(events)}
        return self._show("evening.html", 200, **data, key=secrets.token_urlsafe(16), console=self._console)

    async def _answer(self, api: Api, request: Request) -> Response:
        saga, form = request.path_params["saga"], await self._read(request)
        comment = form.get("comment", "").strip()[:MOST_WORDS]
        await api.answer(saga, form.get("ask", ""), form.get("action", ""), comment, form.get("key", "")[:64])
        return RedirectResponse(f"/evenings/{quote(saga, safe='')}", 303, _HEADERS)

    async def _say(self, api: Api, request: Request) -> Response:
        saga, form = request.path_params["saga"], await self._read(request)
        if words := form.get("words", "").strip()[:MOST_WORDS]:
            await api.say(saga, words, form.get("key", "")[:64])
        return RedirectResponse(f"/evenings/{quote(saga, safe='')}", 303, _HEADERS)

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            return self._show("error.html", 404, why="There is no such page.")
        return Response((HERE / name).read_bytes(), media_type=_STATIC[name], headers=_HEADERS)

    async def _read(self, request: Request) -> dict[str, str]:
        """The fields of a form of ours. Raises `RefusedError` for any other."""
        raw = await request.body()
        try:
            if len(raw) > MOST_FORM:
                raise ValueError
            found = {
                name: values[0] for name, values in parse_qs(raw.decode(), keep_blank_values=True).items()
            }
        except ValueError:
            raise RefusedError("What was sent is no form of this page.", 400) from None
        if not secrets.compare_digest(found.get("token", "").encode(), self._token.encode()):
            raise RefusedError("This form is not of this run. Load the page again; nothing was done.", 403)
        return found

    def _show(self, template: str, status: int, **data: Any) -> Response:
        html = self._templates.get_template(template).render(token=self._token, **data)
        return HTMLResponse(html, status, _HEADERS)


def _moment(at: str) -> str | None:
    """A field of date and time, in UTC, as the API wants it."""
    try:
        return datetime.fromisoformat(at).replace(tzinfo=UTC).isoformat() if at else None
    except ValueError:
        return None


def _words_of(events: Sequence[Mapping[str, Any]]) -> str:
    """What the guest has said first; empty where the log keeps it elsewhere."""
    given = events[0].get("input") if events else None
    value = given.get("v") if isinstance(given, dict) else None
    return str(value.get("words") or "") if isinstance(value, dict) else ""
