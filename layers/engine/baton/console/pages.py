"""The pages of the console, as one table. What a page shows is in the file of its family."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from baton.console import (
    acting,
    bulk,
    catalog,
    graphs,
    inbox,
    lists,
    money,
    overview,
    saga,
    schedules,
    starting,
    talking,
    targets,
    timeline,
    troubles,
)
from baton.console.deeds import Kind, does
from baton.console.visits import Answer, Visit


@dataclass(frozen=True)
class Page:
    """A method and a path below `/console`; `{name}` is one part of the path."""

    method: str
    path: str
    handler: Callable[[Visit], Awaitable[Answer]]


_KINDS: Final = (troubles.INCIDENT, troubles.LETTER, targets.BREAKER, schedules.SCHEDULE)


def _of(kind: Kind) -> list[Page]:
    """The page of one thing, and what its forms are sent to."""
    path = f"{kind.at}/{{{kind.parameter}}}"
    forms = [Page("POST", f"{path}/{deed.name}", does(kind, deed)) for deed in kind.deeds]
    return [Page("GET", path, lambda visit: kind.page(visit, None)), *forms]


PAGES: Final = (
    Page("GET", "", overview.overview),
    Page("GET", "sagas", lists.sagas),
    Page("GET", "sagas/{saga}", saga.show),
    Page("GET", "sagas/{saga}/log", saga.log),
    Page("GET", "sagas/{saga}/log.json", saga.download),
    Page("GET", "sagas/{saga}/log/{version}", saga.entry),
    Page("GET", "sagas/{saga}/cost", saga.cost),
    Page("GET", "sagas/{saga}/time", timeline.timeline),
    Page("GET", "sagas/{saga}/talk", talking.conversations),
    Page("GET", "sagas/{saga}/values/{digest}", talking.value),
    Page("GET", "sagas/{saga}/graph", graphs.graph),
    Page("GET", "sagas/{saga}/nodes/{node}", graphs.node),
    Page("GET", "inbox", inbox.inbox),
    Page("GET", "sagas/{saga}/questions/{ask}", inbox.question),
    Page("POST", "sagas/{saga}/questions/{ask}", inbox.answer),
    Page("POST", "sagas/{saga}/questions/{ask}/claim", inbox.claim),
    *(Page("GET", f"sagas/{{saga}}/{one.name}", acting.asks(one.name)) for one in acting.ACTIONS),
    *(Page("POST", f"sagas/{{saga}}/{one.name}", acting.does(one.name)) for one in acting.ACTIONS),
    *(Page("GET", f"bulk/{one.action.name}", bulk.asks(one)) for one in bulk.MANY),
    *(Page("POST", f"bulk/{one.action.name}", bulk.does(one)) for one in bulk.MANY),
    Page("GET", "incidents", troubles.incidents),
    Page("GET", "dead-letters", troubles.letters),
    # A word in a path comes before a name: no letter is called so.
    Page("GET", "dead-letters/redrive", troubles.counted),
    Page("POST", "dead-letters/redrive", troubles.redrive),
    Page("GET", "breakers", targets.breakers),
    Page("GET", "schedules", schedules.schedules),
    *(page for kind in _KINDS for page in _of(kind)),
    Page("GET", "workflows", catalog.workflows),
    Page("GET", "workflows/{name}", catalog.workflow),
    # A word in a path comes before a name: versions are numbers.
    Page("GET", "workflows/{name}/start", starting.form),
    Page("POST", "workflows/{name}/start", starting.start),
    Page("GET", "workflows/{name}/{version}", catalog.workflow),
    Page("GET", "workflows/{name}/{version}/start", starting.form),
    Page("POST", "workflows/{name}/{version}/start", starting.start),
    Page("GET", "error-budgets", catalog.error_budgets),
    Page("GET", "tools", catalog.tools),
    Page("GET", "tools/{tool}", catalog.tool),
    Page("GET", "node-types", catalog.node_types),
    Page("GET", "node-types/{kind}", catalog.node_type),
    Page("GET", "money", money.money),
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
)
"""Path below `/console` and words of what is on every page."""
