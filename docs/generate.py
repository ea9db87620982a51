"""Writes the parts of the pages that are derived from the code: `python -m docs.generate`, at the project's root.

Each part is one function here, and stands between its markers in a page. The search for transitions is in
transitions.py. tests/docs fails when a page is stale.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import get_args

import msgspec

from baton.adapters.dynamo.items import ATTRIBUTES, ITEM_BYTES
from baton.core.decide.carrying import MOST_CHANGES
from baton.core.decide.decide import RULES, advance
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.documents.parts.fields import MAX_NODES
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import LONGEST_MS
from baton.core.limits import Limits
from baton.core.log import codec
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.state import FINISHED, KEYS_REMEMBERED, LISTS, WAITING, State, group_of
from baton.core.nodes.registry import KINDS
from baton.core.read.metrics import METRICS
from baton.ports.log import MAX_DELAY_S
from baton.runtime.requests.queries import MAX_EVENTS, MAX_LIST
from baton.runtime.requests.registering import MAX_DOCUMENT
from baton.web.bodies.requests import MAX_KEY
from docs.document_tables import (
    approval_fields,
    branch_fields,
    callback_fields,
    catch_fields,
    common_fields,
    compensate_fields,
    default_risk,
    document_fields,
    escalation_fields,
    guardrail_fields,
    handler_fields,
    join_fields,
    limit_fields,
    loop_fields,
    map_fields,
    node_fields,
    poll_fields,
    replan_fields,
    risk_fields,
    schema_text,
    shared_fields,
)
from docs.effect_tables import effect_doubts, key_strategies
from docs.failure_tables import (
    backoffs,
    failure_bugs,
    failure_classes,
    failure_codes,
    failure_defects,
    failure_domains,
    failure_hints,
    failure_hooks,
    failure_matrix,
    failure_statuses,
    failure_strategies,
    retry_presets,
)
from docs.pattern_tables import pattern_count, pattern_rows
from docs.pipeline_tables import pipeline_limits, pipeline_steps
from docs.scale_tables import (
    scale_asked,
    scale_ceilings,
    scale_cost,
    scale_counts,
    scale_first,
    scale_goals,
    scale_money,
    scale_outage,
    scale_quotas,
    scale_settings,
    scale_waiting,
)
from docs.settings_table import parameters, settings
from docs.transitions import FOUND, NONE, Transitions, find_operations, find_transitions, searched
from tests.architecture.law import ALLOWED

ROOT = Path(__file__).parents[1]
PAGES = tuple(
    ROOT / page
    for page in (
        "README.md",
        "docs/api.md",
        "docs/architecture.md",
        "docs/configuration.md",
        "docs/documents.md",
        "docs/effects.md",
        "docs/failures.md",
        "docs/log.md",
        "docs/metrics.md",
        "docs/patterns.md",
        "docs/protocols.md",
        "docs/scale.md",
        "docs/tools.md",
    )
)
# Whole files that are derived from the code.
FILES: Mapping[Path, Callable[[], str]] = {ROOT / "docs/workflow.schema.json": schema_text}
COMMAND = "python -m docs.generate"

STATUSES = {
    "pending": "started; entry 1 is not written yet",
    "running": "something is ready, runs, or is about to end",
    "waiting": "every token waits: for a time, a signal, a child, or the next attempt",
    "parked": "a person has to decide; the reason says about what, and a question to operators how",
    "completed": "no token is left; the output is the saga's result",
    "failed": "a step failed and nothing runs",
    "cancelled": "a caller cancelled it and nothing runs",
    "suspended": "as waiting, and a question is open: of a node, or about a failed step",
    "paused": "an operator holds it back; it begins nothing until it is resumed",
    "reflecting": "a deploy changed the schema of a tool, and a step does not fit it: it is parked until code is deployed that it fits",
    "rolled_back": "its effects are undone; `error` says why",
    "compensating": "it undoes its effects before it ends",
    "rollback_failed": "an effect could not be undone; `undo` names it, and another rollback tries it again",
}


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(header), *map(list, rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def _prose(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


# ---- the core's log ------------------------------------------------------------------------------------------


def events() -> str:
    """Every kind of event: its tag, its docstring, its fields."""
    return _table(("kind", "what it says", "fields (`?`: may be absent)"), map(_event, get_args(ev.Event)))


def _event(kind: type[msgspec.Struct]) -> tuple[str, str, str]:
    fields = [
        f"`{field.name}{'' if field.required else '?'}`"
        for field in sorted(msgspec.structs.fields(kind), key=lambda field: not field.required)
    ]
    return f"`{kind.__struct_config__.tag}`", _prose(kind.__doc__), " ".join(fields)


def statuses() -> str:
    """Every status, and whether anything leads there yet."""
    names = FINISHED | WAITING | {before for _, before in find_transitions()}
    if names != STATUSES.keys():
        raise LookupError(f"say in docs/generate.py what these mean: {sorted(names ^ STATUSES.keys())}")
    reached = {status for after in find_transitions().values() for status in after} | {"pending"}
    rows = [
        (f"`{name}`", group_of(name), meaning if name in reached else f"*reserved:* {meaning}")
        for name, meaning in STATUSES.items()
    ]
    return _table(("status", "group in the status index", "meaning"), rows)


def api_statuses() -> str:
    """Every status that the API shows, in the order of a saga's life. Raises `LookupError` for one that nothing leads to."""
    reached = {status for after in find_transitions().values() for status in after} | {"pending"}
    shown = ["pending", *(name for name in LISTS if name not in ("open", "done"))]
    if reached != set(shown):
        raise LookupError(f"what is listed is not what a saga comes to: {sorted(reached ^ set(shown))}")
    return _table(("status", "meaning"), ((f"`{name}`", STATUSES[name]) for name in shown))


def transitions() -> str:
    """Kinds of event against statuses: what an event makes of a status."""
    found = find_transitions()
    columns = [name for name in STATUSES if any(before == name for _, before in found)]
    rows = []
    for kind in (str(kind.__struct_config__.tag) for kind in get_args(ev.Event)):
        after = [(name, found.get((kind, name), frozenset())) for name in columns]
        rows.append([f"`{kind}`", *(_cell(name, becomes) for name, becomes in after)])
    return _table(("event", *columns), rows)


def lifecycle() -> str:
    """Table of the next status of a saga by event, forks aside."""
    found = {key: after for key, after in find_transitions().items() if key[0] != "forked"}
    return _table(("status", "becomes", "by"), _moves(found, list(STATUSES)))


def operations() -> str:
    """Table of the next work at a slot by event."""
    found = find_operations()
    kinds = sorted({kind for _, kind in found} | {kind for after in found.values() for kind in after})
    order = [NONE, *(kind for kind in kinds if kind != NONE)]
    return _table(("work at a slot", "becomes", "by"), _moves(found, order, stays=True))


def _moves(found: Transitions, order: list[str], *, stays: bool = False) -> Iterable[tuple[str, str, str]]:
    by: dict[tuple[str, str], list[str]] = {}
    for kind in (str(kind.__struct_config__.tag) for kind in get_args(ev.Event)):
        for before in order:
            for after in found.get((kind, before), ()):
                by.setdefault((before, after), []).append(f"`{kind}`")
    for before, after in sorted(by, key=lambda move: tuple(map(order.index, move))):
        if stays or before != after:
            yield before, "stays" if before == after else f"**{after}**", ", ".join(by[before, after])


def _cell(before: str, after: frozenset[str]) -> str:
    named = [name for name in STATUSES if name in after]
    return ", ".join("stays" if name == before else f"**{name}**" for name in named)


def entry() -> str:
    """An entry as it is stored, made by the core itself."""
    spec = ToolSpec(name="table.hold", version="1", effect="idempotent", parameters={}, result={})
    document = "{name: evening, nodes: {hold: {tool: table.hold}, answer: {wait: {signal: ok, timeout: 2h}, after: hold}}}"
    program = Program(compile_document(document, {spec.name: spec}), KINDS)
    at = 1_790_000_000_000
    start = ev.SagaStarted(
        workflow="evening", graph="", tenant="acme", user="ann", saga="s1", input=ev.Value(), at=at,
        emits=(ev.Token("", "hold"),),
    )  # fmt: skip
    state = fold(State(), ev.Entry(version=1, at=at, invocation="request-1", events=(start,)))
    outcome = Outcome(
        slot="hold", attempt=1, started_at=at + 180, ended_at=at + 610, tool_version=spec.version,
        schema_hash=spec.schema_hash, output=ev.Value(v={"id": "h-17", "deposit_cents": 2000}),
    )  # fmt: skip
    stored = ev.Entry(
        version=2, at=at + 612, epoch=1, invocation="8f4e2c60.5a91c3", cold=True,
        traceparent="00-3b88375130e9b65ce33e48e0e5837d98-86e2732fd8db79e3-01",
        events=advance(program, state, (outcome,), at + 612).events,
    )  # fmt: skip
    return f"```json\n{json.dumps(json.loads(codec.encode_entry(stored)), indent=2)}\n```"


# ---- rooms, items, limits ------------------------------------------------------------------------------------


def rooms() -> str:
    """The import law, from the test that holds it."""
    named = {name or "`baton` itself": needs for name, needs in ALLOWED.items()}
    rows = [
        (name, ", ".join(sorted(need or "`baton` itself" for need in needs)) or "nothing")
        for name, needs in named.items()
    ]
    return _table(("room", "may import, besides itself"), rows)


def rules() -> str:
    """The rules of a decision, in their order."""
    found = (
        (
            rule.name,
            "always" if rule.when == "program" else f"`{rule.when}`",
            str(rule.then.__doc__).split(".")[0],
        )
        for rule in RULES
    )
    return _table(("rule", "looks at", "decides"), found)


def attributes() -> str:
    """Every attribute of the table's items."""
    return _table(("attribute", "holds"), ((f"`{name}`", meaning) for name, meaning in ATTRIBUTES.items()))


def _time(ms: float) -> str:
    for unit, size in (("days", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms > size:
            return f"{ms / size:g} {unit}"
    return f"{ms:g} ms"


def limits() -> str:
    """What is limited and cannot be set."""
    have = Limits()
    rows = [
        ("nodes of a workflow", f"{MAX_NODES:,}", "code"),
        ("workflow document", f"{MAX_DOCUMENT:,} bytes", "code, and `MaxBodyBytes`"),
        ("item of the table", f"{ITEM_BYTES:,} bytes", "DynamoDB"),
        ("events of one entry together", f"{have.entry_bytes:,} bytes", "code"),
        ("changes of the graph of a saga", f"{MOST_CHANGES}", "code"),
        ("duration in a document", f"1 ms to {_time(LONGEST_MS)}", "code"),
        ("timer sent as a delayed message; a longer one is the reconciler's", _time(MAX_DELAY_S * 1_000), "SQS"),
        ("a saga that was started and not taken is looked at after", _time(have.start_due_ms), "code"),
        ("time that a fork has from arming the saga to its entry", _time(have.fork_deadline_ms), "code"),
        ("`Idempotency-Key`", f"{MAX_KEY} characters", "code"),
        ("keys that a saga remembers, besides those of forks and of signals that still wait", f"{KEYS_REMEMBERED}", "code"),
        ("entries of one page of events", f"at most {MAX_EVENTS:,}", "`?limit=`"),
        ("rows of one page of a list", f"at most {MAX_LIST}", "`?limit=`"),
    ]  # fmt: skip
    return _table(("what", "limit", "set by"), rows)


def metrics() -> str:
    """Every metric that a deployment writes."""
    rows = [(f"`{name}`", unit, says) for name, (unit, _, says) in METRICS.items()]
    return _table(("metric", "unit", "what it counts"), rows)


def dimensions() -> str:
    """The sets of dimensions of each metric."""
    by_sets: dict[str, list[str]] = {}
    for name, (_, sets, _) in METRICS.items():
        written = "; ".join(", ".join(f"`{one}`" for one in each) for each in sets)
        by_sets.setdefault(written, []).append(f"`{name}`")
    return _table(
        ("metrics", "sets of dimensions"), [(", ".join(names), sets) for sets, names in by_sets.items()]
    )


# ---- pages ---------------------------------------------------------------------------------------------------

PARTS: Mapping[str, Callable[[], str]] = {
    part.__name__: part
    for part in (
        events,
        statuses,
        api_statuses,
        transitions,
        lifecycle,
        operations,
        entry,
        rooms,
        rules,
        attributes,
        settings,
        parameters,
        limits,
        metrics,
        dimensions,
        document_fields,
        escalation_fields,
        node_fields,
        shared_fields,
        common_fields,
        branch_fields,
        loop_fields,
        poll_fields,
        handler_fields,
        join_fields,
        map_fields,
        callback_fields,
        catch_fields,
        limit_fields,
        guardrail_fields,
        approval_fields,
        compensate_fields,
        replan_fields,
        risk_fields,
        default_risk,
        failure_classes,
        failure_codes,
        failure_defects,
        failure_bugs,
        failure_statuses,
        failure_strategies,
        failure_hints,
        failure_hooks,
        failure_domains,
        failure_matrix,
        backoffs,
        retry_presets,
        key_strategies,
        effect_doubts,
        pattern_count,
        pattern_rows,
        pipeline_steps,
        pipeline_limits,
        scale_first,
        scale_goals,
        scale_settings,
        scale_ceilings,
        scale_money,
        scale_asked,
        scale_cost,
        scale_waiting,
        scale_outage,
        scale_counts,
        scale_quotas,
    )
}


def render(page: str) -> str:
    """The page with every generated part made anew. Raises `ValueError` for a part whose end is missing."""
    for name, make in PARTS.items():
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        if begin in page:
            before, _, rest = page.partition(begin)
            _, found, after = rest.partition(end)
            if not found:
                raise ValueError(f"`{begin}` has no `{end}`")
            page = f"{before}{begin}\n{make()}\n{end}{after}"
    return page


def main() -> None:
    """Search for transitions, then write every page whose generated parts have changed, and every file."""
    FOUND.write_text(searched(), "utf-8")
    for page in PAGES:
        text = page.read_text("utf-8")
        if (fresh := render(text)) != text:
            page.write_text(fresh, "utf-8")
    for path, make in FILES.items():
        path.write_text(make(), "utf-8")


if __name__ == "__main__":
    main()
