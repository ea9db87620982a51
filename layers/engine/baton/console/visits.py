"""One request for a page, and what a page answers with. Values, and the port by which pages ask the API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from baton.console.sessions import Session

OFTEN: Final = 2_000
SELDOM: Final = 30_000
"""Of what has ended, and changes only if it is undone or forked."""


class Calls(Protocol):
    """The routes of the API, for the person who visits: their roles, checks and answers."""

    @property
    def roles(self) -> frozenset[str]: ...

    @property
    def tenant(self) -> str: ...

    async def __call__(
        self,
        route: str,
        path: Mapping[str, str] = ...,
        query: Mapping[str, str] = ...,
        body: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Any:
        """The JSON that the route, named by its operation id, answers with. Raises `UserError`, `EngineFault`."""
        ...


@dataclass(frozen=True, kw_only=True)
class Visit:
    """path: the names in the page's path. form: what was sent, each name with all its values, without the token.

    now: epoch ms. token: a fresh random name. api: the address of the deployment. seen: the tag of what a page that renews itself has.
    """

    session: Session
    call: Calls
    path: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, Sequence[str]]
    now: int
    token: str
    api: str
    seen: str = ""

    def said(self, name: str) -> str:
        """The first value of a field of the form, or nothing."""
        return next(iter(self.form.get(name, ())), "").strip()


@dataclass(frozen=True, kw_only=True)
class Html:
    """A page: a template and what it shows.

    tag: a name that changes when what the element `live` of the template shows does; with one, the page renews itself.
    every: ms until it looks first whether it has changed. adds: where the live part is what is new only, the id of the element that it is
    added to.
    """

    template: str
    title: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    tag: str = ""
    every: int = OFTEN
    adds: str = ""


@dataclass(frozen=True)
class Unchanged:
    """The browser has already what the page would show."""


@dataclass(frozen=True)
class Redirect:
    """To another page of the console, by GET."""

    to: str


@dataclass(frozen=True, kw_only=True)
class Download:
    """A file that the browser keeps."""

    name: str
    kind: str
    body: str


Answer = Html | Redirect | Download | Unchanged


def tag_of(*parts: object) -> str:
    """A tag for what a page shows of these."""
    text = json.dumps(parts, default=str, sort_keys=True)
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'
