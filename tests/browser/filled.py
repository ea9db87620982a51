"""A deployment in whose every field that users, tools and models fill there is hostile text, and the pages that show it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec.structs import replace

from baton.core.failures.breakers import Breaker, BreakerTerms, FailureReport, Move, with_reports
from baton.core.letters import Letter
from baton.core.log.codec import SCHEME
from baton.core.log.questions import Answer
from baton.core.schedules import TickOutcome
from baton.runtime.engine.request import Caller
from baton.runtime.requests.queries import Queries
from tests.browser.hostile import MEGABYTE, hostile, plain, url
from tests.browser.kitchen import EVENING
from tests.browser.site import Site


def document(name: str, nodes: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"name": name, "description": hostile("workflow"), "nodes": nodes, **more})


def search(city: str, **more: Any) -> dict[str, Any]:
    return {"tool": "table.search", "with": {"city": city, "party": 2, "at": EVENING}, **more}


SCHEMA = {
    "type": "object",
    "title": hostile("schema title"),
    "properties": {
        "free": {
            "type": "string",
            "title": hostile("field title"),
            "description": hostile("field description"),
        },
        "one": {"enum": [hostile("enum"), "other"], "default": hostile("enum")},
        hostile("property"): {"type": "string", "default": hostile("default")},
    },
}
OPEN = document(
    "hostile-open",
    {
        "choose": {
            "description": hostile("node description"),
            "human": {
                "title": "${input.title}",
                "message": "${input.message}",
                "details": {"${input.key}": "${input.details}"},
                "options": [{"id": "one", "label": "${input.label}", "description": "${input.meaning}"}],
                "to": {"role": "answer"},
            },
        },
        "form": {"human": {"title": hostile("form"), "schema": SCHEMA, "to": {"role": "answer"}}},
        "hand": {
            "human": {
                "title": "Hand",
                "takeover": {
                    "url": url("url"),
                    "picture": "${input.picture}",
                    "instructions": "${input.instructions}",
                },
                "to": {"role": "answer"},
            }
        },
        "broken": search("${input.nowhere}", on_failure={"any": "ask"}),
        "found": search("${input.city}"),
        "scribe": {
            "agent": {
                "model": "gpt-5-mini",
                "instructions": hostile("instructions"),
                "prompt": "${input.prompt}",
                "tools": ["table.search"],
            }
        },
    },
    output="${ctx.found.output}",
)
ANSWERED = document(
    "hostile-answered",
    {
        "asked": {"human": {"title": hostile("asked"), "schema": True, "to": {"role": "answer"}}},
        "again": {"human": {"title": "Again", "type": "approval", "to": {"role": "answer"}}},
        "kept": {
            "value": {"large": "${input.large}", "said": "${ctx.asked.output}"},
            "after": ["asked", "again"],
        },
    },
    output={
        "data": "${ctx.asked.output.data}",
        "comment": "${ctx.again.output.comment}",
    },
)
PARKED = document("hostile-parked", {"escalated": search("${input.city}", on_failure={"any": "escalate"})})
FAILED = document("hostile-failed", {"failed": search("${input.city}", on_failure={"any": "fail"})})
HEARD = document(
    "hostile-heard",
    {"later": {"wait": {"signal": "never"}}},
    events={"start": [{"type": "hostile", "input": {"id": "${event.id}", "source": "${event.source}"}}]},
    schedule={"rate": "1d", "input": {"day": hostile("schedule")}},
)
REGISTERED = (OPEN, ANSWERED, PARKED, FAILED, HEARD)


def fill(site: Site) -> tuple[str, ...]:
    """The addresses of pages on which these texts are."""
    engine = site.engine
    site.register(*REGISTERED)
    event = {
        "type": "hostile",
        "id": hostile("event id"),
        "source": plain("event-source"),
        "specversion": "1.0",
    }
    site.run(site.service().event_service.take(event))
    site.settle()
    given = {
        field: hostile(field)
        for field in (
            "title",
            "message",
            "details",
            "label",
            "meaning",
            "instructions",
            "city",
            "prompt",
            "key",
        )
    }
    given |= {"picture": url("picture"), "nowhere": f"Nowhere {hostile('failure')}"}
    opened = site.start("hostile-open", given, note=plain("saga label"))
    answered = site.start("hostile-answered", {"large": hostile("large") + MEGABYTE})
    parked = site.start("hostile-parked", {"city": f"Nowhere {hostile('parked')}{MEGABYTE}"})
    failed = site.start("hostile-failed", {"city": f"Nowhere {hostile('failed')}"})
    cancelled = site.start("hostile-failed", {"city": "Lisbon"})
    site.run(site.service().cancel(cancelled, hostile("cancel reason"), 0))
    site.settle()
    site.run(
        site.service().answer(
            answered,
            Answer(
                ask="0.asked",
                action="submit",
                data={hostile("answer key"): hostile("answer") + MEGABYTE[:200_000]},
            ),
            key="one",
        )
    )
    site.run(
        site.service().answer(
            answered, Answer(ask="0.again", action="approve", comment=hostile("comment")), key="two"
        )
    )
    site.settle()
    events = site.run(queries(site).events(answered, 0, 1))
    digest = str(events).partition(SCHEME)[2][:64]  # of its input
    now = engine.clock.now()
    letter = Letter(
        id=failed,
        tenant="acme",
        saga=failed,
        code="unreadable_log",
        reason=hostile("letter reason") + MEGABYTE,
        node="failed",
        body=hostile("letter body"),
        by="ada",
        why=hostile("letter why"),
        first=now,
        since=now,
        last=now,
        at=now,
    )
    assert engine.store.letters.write(letter, 0)
    told = (FailureReport(now, hostile("breaker code"), 9, 9, "i-1"),)
    breaker = with_reports(Breaker(), told, BreakerTerms(failures=2), now, 0.0)
    breaker = replace(breaker, moves=(Move(now, "open", hostile("breaker why"), "ada"),))
    assert engine.store.breakers.write_breaker("acme", "hostile", breaker, now) is None
    record = engine.store.schedules.read_schedule("acme", "hostile-heard")
    assert record is not None
    ticks = (TickOutcome(now, "refused", why=hostile("tick")),)
    assert engine.store.schedules.write_schedule(replace(record, number=record.number + 1, recent=ticks))
    heard = site.run(queries(site).sagas(workflow="hostile-heard")).sagas[0].id
    incident = site.run(queries(site).incidents(status="open")).incidents[0].id
    site.run(site.service().incidents.acknowledge(incident, hostile("incident note")))
    return (
        *(
            "./",
            "sagas",
            "inbox",
            "incidents",
            "dead-letters",
            "breakers",
            "schedules",
            "workflows",
            "money",
            "users",
        ),
        *(
            f"sagas?{urlencode({'workflow': hostile('query')})}",
            f"dead-letters?{urlencode({'reason': hostile('query')})}",
        ),
        *(f"sagas/{opened}{part}" for part in ("", "/graph", "/talk", "/log", "/log/1", "/cost", "/cancel")),
        *(f"sagas/{opened}?node={node}" for node in ("broken", "scribe")),
        *(f"sagas/{opened}/questions/{ask}" for ask in ("0.choose", "0.form", "0.hand", "0.broken.1")),
        *(f"sagas/{answered}{part}" for part in ("", "/log", "/fork", "/rollback")),
        *(f"sagas/{one}{part}" for one in (parked, failed) for part in ("", "/log")),
        *(f"sagas/{answered}/values/{digest}", f"sagas/{parked}/resume"),
        f"sagas/{answered}/diff?with={failed}",
        *(f"sagas/{parked}/pause", f"sagas/{parked}/wake"),
        *(f"sagas/{one}/log" for one in (heard, cancelled)),
        *(f"bulk/{many}?{urlencode({'workflow': 'hostile-open'})}" for many in ("cancel", "resume", "pause")),
        f"incidents/{incident}",
        *("dead-letters/redrive", f"dead-letters/{failed}", "breakers/hostile", "schedules/hostile-heard"),
        *("workflows/hostile-open", "workflows/hostile-open/1", "workflows/hostile-heard", "error-budgets"),
        *("workflows/hostile-open/start", "workflows/hostile-open/1/start"),
        *("tools", "tools/table.search", "node-types", "node-types/human"),
    )


def queries(site: Site) -> Queries:
    caller = Caller(tenant="acme", user="ada", request="outside", roles=frozenset({"read"}))
    return Queries(site.engine, caller, site.engine.clock.now() + 28_000)
