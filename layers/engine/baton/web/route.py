"""What a row of the table of routes is, and the parameters that many rows have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from baton.core.documents.parts.naming import WORKFLOW_NAME
from baton.runtime.queries import MAX_LIST
from baton.web.ask import Ask
from baton.web.bodies.reading import Body
from baton.web.parameters import Parameter, whole, words
from baton.web.replies import Reply

DEFAULT_LIST = 50
CALLBACKS, CONFIRMATIONS = "callbacks", "confirmations"
BY_TOKEN = (CALLBACKS, CONFIRMATIONS)
"""Requests whose token says for whom they are."""
MOST_ANNOUNCED = 65_536
"""Bytes of what a provider of models announces: an event with an id, and no answer."""
DEFAULT_EVENTS = 100
MAX_CURSOR = 8_192  # that of a list over 32 shards, of sagas deep in sagas, needs most of it
MAX_NUMBER = 999_999_999  # of versions in requests
B = TypeVar("B", bound=Body | None)


@dataclass(frozen=True, kw_only=True)
class Route(Generic[B]):
    """One method of one path.

    id: the operation's name in the OpenAPI document, which never changes. roles: any of these lets a
    caller in; none at all lets everybody in, without an identity. by_token: one of BY_TOKEN, where a token in the path or the
    body says for which tenant; such requests have a rate of their own. body: its model; `takes_text` where it
    is a document instead, or (takes: models' names by media types) something else. is_signed: the handler refuses what a provider has not signed; most_bytes: of such a body. answers: status to the name of a model in bodies/. refusals: the statuses that
    the handler itself can refuse with; those that follow from the rest of the row are not repeated here.
    """

    method: str
    path: str
    id: str
    summary: str
    handler: Callable[[Ask[B]], Awaitable[Reply]]
    roles: tuple[str, ...]
    answers: Mapping[int, str]
    parameters: tuple[Parameter, ...] = ()
    query: tuple[Parameter, ...] = ()
    body: type[B] | None = None
    takes_text: bool = False
    takes: Mapping[str, str] = field(default_factory=dict)
    has_key: bool = False
    by_token: str = ""
    is_signed: bool = False
    most_bytes: int = 0
    refusals: tuple[int, ...] = ()


WORKFLOW = words(
    "name", WORKFLOW_NAME[1:-1], "the name of a workflow", "The workflow's name.", example="dinner"
)
LIMIT = whole(
    "limit", 1, MAX_LIST, DEFAULT_LIST, "How many at most. A page may be shorter and yet not be the last."
)
CURSOR = words(
    "cursor",
    f"[A-Za-z0-9_.~=-]{{1,{MAX_CURSOR}}}",
    "the `next` of the page before",
    "The `next` of the page before.",
)
