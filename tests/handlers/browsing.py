"""A browser that has signed in to the console, as far as the api function notices: cookies, forms, pages.

Asking and reading; what must hold is in the tests.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from baton.console.visits import SESSION, Seal, Session
from baton.ports.outside import HttpAnswer, HttpRequest
from tests.handlers.deployment import Context
from tests.handlers.http import Http

SECRET = "the-secret-of-the-console-client"
ISSUER = "https://issuer.test"
PARAMETERS = {
    "AppModule": "tests.kit.app.trial",
    "ConsoleIssuer": ISSUER,
    "ConsoleClient": "console",
}
VARIABLE = "BATON_CONSOLE_KEY_CLIENT"
HOSTILE = "<script>alert(1)</script> \" ' & \u202etfel ot thgir \x1b[31m 👩‍👩‍👧 &lt;b&gt; {{7*7}} "


@dataclass
class Seen:
    """An answer as a browser has it."""

    status: int
    html: str
    headers: dict[str, str]
    cookies: list[str]

    @property
    def text(self) -> str:
        """What a person reads, with one space between words."""
        parser = _Text()
        parser.feed(self.html)
        return " ".join("".join(parser.parts).split())

    def field(self, name: str) -> str:
        """The value of the first field of that name."""
        found = re.search(rf'<input[^>]*name="{re.escape(name)}"[^>]*value="([^"]*)"', self.html)
        assert found, f"no field {name}"
        return found[1]

    def elements(self) -> list[tuple[str, dict[str, str | None]]]:
        parser = _Text()
        parser.feed(self.html)
        return parser.elements


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("b", "bdi", "code", "span", "a", "time"):
            self.parts.append(" ")


@dataclass
class Browser:
    """user, tenant, roles, groups: what the issuer says of the person; None: has not signed in."""

    http: Http
    user: str | None = "ada"
    tenant: str = "acme"
    roles: tuple[str, ...] = ("read", "run", "answer", "operate")
    groups: tuple[str, ...] = ()
    csrf: str = "of-this-session"
    more: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, **query: str) -> Seen:
        return self._send("GET", path, query, None)

    def post(self, path: str, form: dict[str, Any] | None = None, *, csrf: str | None = None) -> Seen:
        pairs = [
            (name, one)
            for name, value in (form or {}).items()
            for one in (value if isinstance(value, list) else [value])
        ]
        pairs.append(("csrf", self.csrf if csrf is None else csrf))
        return self._send("POST", path, {}, urlencode(pairs))

    def session(self) -> str:
        claims = {"sub": self.user, "tenant": self.tenant, "roles": self.roles, "groups": self.groups}
        return Session(claims, self.csrf).close(Seal(SECRET), self.http.engine.clock.now())

    def _send(self, method: str, path: str, query: dict[str, str], body: str | None) -> Seen:
        place = urlsplit(path)
        query = dict(parse_qsl(place.query)) | query
        event = self.http.event(method, place.path, query=query, headers=self.more)
        del event["requestContext"]["authorizer"], event["headers"]["authorization"]
        event["requestContext"]["domainName"] = "api.test"
        event["headers"]["x-forwarded-proto"] = "https"
        if self.user is not None:
            event["cookies"] = [f"__Host-baton-{SESSION}={self.session()}"]
        event["cookies"] = [*event.get("cookies", []), *self.more_cookies]
        if body is not None:
            event["body"] = body
            event["headers"]["content-type"] = "application/x-www-form-urlencoded"
        answer = self.http.module.handler(event, Context())
        json.dumps(answer)
        return Seen(answer["statusCode"], answer["body"], answer["headers"], answer["cookies"])

    more_cookies: list[str] = field(default_factory=list)


class FakeIssuer:
    """An issuer's two pages. `claims` is what it says of the person; `asked` what it was sent."""

    def __init__(self, claims: dict[str, Any]) -> None:
        self.claims, self.asked, self.status = claims, list[HttpRequest](), 200

    async def send(self, request: HttpRequest) -> HttpAnswer:
        self.asked.append(request)
        if request.url.endswith("/.well-known/openid-configuration"):
            found: Any = {"authorization_endpoint": f"{ISSUER}/go", "token_endpoint": f"{ISSUER}/token"}
        else:
            found = {"id_token": token_of(self.claims)}
        body = json.dumps(found).encode()
        return HttpAnswer(status=self.status, headers={}, body=body)

    async def aclose(self) -> None:
        """Nothing is open."""


def token_of(claims: dict[str, Any]) -> str:
    from base64 import urlsafe_b64encode

    body = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"e30.{body}.signature"
