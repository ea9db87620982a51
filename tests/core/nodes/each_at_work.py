"""What an engine that has the toy kind makes of documents with it; test_toy_kind_written.py has a process with such an engine."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from baton import tool
from baton.cli.text.graph import DrawnPart, GraphShape, boxes, draw, mermaid
from baton.core.conditions.schema import violations
from baton.core.documents.compile import compile_document
from baton.core.documents.schema import document_schema, node_types
from baton.core.documents.text import parse_document
from baton.core.limits import Limits
from baton.errors import InvalidDefinition
from baton.runtime.requests.queries import Queries
from baton.testing.deployment import Deployment
from baton.testing.loop import VirtualLoop, run_virtual
from baton.tools.define import Registry

DOCUMENT = """
name: feast
nodes:
  ask: {each: {items: "${input.guests}"}}
  cook: {each: {items: [soup, cake], tool: cook}, with: {words: "${ctx.ask.output}"}, after: ask}
output: "${ctx.cook.output}"
"""
WRONG = """
name: feast
nodes:
  ask: {each: {itms: [a]}}
  fry: {each: {items: [a], tool: cok}, after: ask}
  late: {each: {items: ["${ctx.xyz.output}"]}, timeout: 5s, after: fry}
  lone: {each: [a]}
  none: {for_all: {items: [a]}}
"""
REGISTRY = Registry()
CALLS: list[str] = []


@tool("cook", registry=REGISTRY, effect="pure")
def cook(item: str, words: dict[str, str]) -> str:
    """A dish, which the first soup is not."""
    CALLS.append(item)
    if CALLS == ["soup"]:
        raise TimeoutError
    return f"{item} with {' and '.join(words.values())}"


def problems() -> list[tuple[str, str, str]]:
    try:
        compile_document(WRONG, REGISTRY.specs())
    except InvalidDefinition as error:
        return [(one.path, one.message, one.suggestion) for one in error.problems]
    return []


def published() -> dict[str, Any]:
    of_type = next(one for one in node_types() if one["kind"] == "each")
    good = parse_document(DOCUMENT).value
    bad = {"name": "feast", "nodes": {"ask": {"each": {"itms": []}}}}
    schema = document_schema()
    return {
        "good": [one.path for one in violations(schema, good)],
        "bad": [one.path for one in violations(schema, bad)],
        "capabilities": of_type["capabilities"],
        "fields": list(of_type["schema"]["properties"]["each"]["properties"]),
    }


def drawn(graph: dict[str, Any]) -> dict[str, Any]:
    found = boxes(graph)
    return {"lines": draw(found), "mermaid": mermaid(GraphShape([DrawnPart("", found)]))}


class Feast(Deployment):
    """A deployment in memory and virtual time."""

    @property
    def queries(self) -> Queries:
        return Queries(self._engine, self._caller(), self._clock.now() + 28_000)


async def scenario(loop: VirtualLoop) -> dict[str, Any]:
    feast = Feast(
        loop, REGISTRY, Limits(), begin=1_800_000_000_000, worker_timeout=60_000, caller=("acme", "ada")
    )
    await feast.service().register(DOCUMENT, json_only=False)
    view, _ = await feast.service().start("feast", {"guests": ["ada", "bo"]}, "")
    saga = view["id"]
    await feast.settle({"ada": "salt"})
    waiting, why = to_builtins((await feast.queries.show(saga), await feast.queries.explain(saga, "ask")))
    cut = waiting["version"]
    await feast.settle({"bo": "sugar"})
    first = to_builtins(await feast.queries.show(saga))
    way = to_builtins(await feast.queries.way(saga, 0, 20))
    await feast.service().fork(saga, cut, "bo has changed his mind")
    await feast.service().signal(saga, "bo", "pepper", "again")
    await feast.settle({})
    last = to_builtins(await feast.queries.show(saga))
    workflow = await feast.queries.workflow("feast")
    return {
        "waiting": waiting,
        "why": [one["text"] for one in why["iterations"]],
        "first": first,
        "way": {
            name: [one["became"] for one in way["steps"] if one["node"] == name] for name in ("ask", "cook")
        },
        "last": last,
        "drawn": drawn(workflow),
    }


def main() -> dict[str, Any]:
    graph = compile_document(DOCUMENT, REGISTRY.specs())
    return {
        "problems": problems(),
        "published": published(),
        "nodes": [node.kind for node in graph.nodes],
        **run_virtual(scenario),
        "calls": CALLS,
    }
