"""compile_document(text, tools) -> graph and every problem at once, each with its path and position.

The order of the checks, which see a document whose shape is right.
The checks themselves have a file for each thing that can be wrong.
Each named graph is compiled as a document of its own. It sees the input of its starter, unless the node that
names it says `with` or `input`; its own nodes; and, of the place that starts it, `item` and `index`,
`last_error`, and what nodes of the document gave, where it has no node of that name itself. What it sees
besides its input is a template that its starter renders. An agent with `map` becomes a graph of one node.
Nothing here runs a workflow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import structs

from baton.core.documents.compile import build as of_kinds
from baton.core.documents.compile import control, expressions, failing, source, tools, triggers
from baton.core.documents.compile.control import circular_delegates, circular_graphs
from baton.core.documents.compile.notes import children_of, no_such_child, notes_of, shared_keys
from baton.core.documents.compile.source import MAX_HINTS, Children, OutOfTime, Source, Tools, Within
from baton.core.documents.expand import expand_own_kinds
from baton.core.documents.models import BY_KEY, GraphModel, WorkflowModel
from baton.core.documents.nodes.base import MAP
from baton.core.documents.nodes.own import OwnKinds
from baton.core.documents.read import as_written, read_definition
from baton.core.documents.text import parse_document
from baton.core.expressions import escape
from baton.core.graph.graph import Graph, inner_name
from baton.core.limits import USUAL, Limits
from baton.errors import InvalidDefinition, Problem

if TYPE_CHECKING:
    from baton.core.documents.models import NodeModel

_CHECKS: tuple[Callable[[Source], Iterator[Problem]], ...] = (
    control.check_edges,
    control.check_loops,
    control.check_joins,
    tools.check_map,
    tools.check_tools,
    of_kinds.check_kinds,
    failing.check_failing,
    control.check_bounds,
    source.check_schemas,
    expressions.check_expressions,
    triggers.check_schedule,
    triggers.check_events,
)

_TAKES_LONG = "the document takes too long to check; this is how far it came"
_SPLIT = "split it into workflows that start each other (`workflow:`), or write fewer conditions"


def compile_document(
    text: str,
    tools: Tools,
    *,
    json_only: bool = False,
    children: Children | None = None,
    kinds: OwnKinds | None = None,
    has_time: Callable[[], bool] = lambda: True,
    limits: Limits = USUAL,
) -> Graph:
    """Compile a document to a graph.
    Raises `MalformedDocument` for text that cannot be parsed, `InvalidDefinition` with all problems.

    `children`: what is known of the workflows that this one starts. `kinds`: those of the application's own.
    Where `has_time` says no, the document is refused for
    that. `limits`: those of the deployment, for what the document leaves open.
    """
    document = parse_document(text, json_only=json_only)
    parts = GraphParts(document.value)
    found: list[tuple[GraphPart, Source | None, tuple[Problem, ...]]] = []
    for part in parts.all:
        within = parts.within(part)
        known = {**(children or {}), **within.inputs}
        found.append((part, *_checked(part.value, kinds or {}, tools, known, has_time, within, limits)))
    sources = [(part.name, source) for part, source, _ in found]
    circles = [*circular_graphs(sources), *circular_delegates(sources)] if len(sources) > 1 else []
    told = [(part, (*its, *(one for name, one in circles if name == part.name))) for part, _, its in found]
    problems = problems_for_author(parts, told)
    if not problems:
        return whole_of(parts, [(part, of_kinds.built(source)) for part, source, _ in found if source])
    raise refusal_of(sorted(map(document.locate, problems), key=lambda p: (p.line, p.column)))


def _checked(
    value: Any,
    kinds: OwnKinds,
    tools: Tools,
    known: Children,
    has_time: Callable[[], bool],
    within: Within,
    limits: Limits,
) -> tuple[Source | None, tuple[Problem, ...]]:
    """Return a document, or a graph as one, with all its problems."""
    own = expand_own_kinds(value, kinds) if kinds else None
    model, problems, written, is_whole = read_definition(value if own is None else own.value)
    source = None
    if model is not None:
        # All of them are looked through, again and again: a mapping that asks for each whether it is granted takes longer.
        source = Source(model, dict(tools), is_whole, known, has_time=has_time, within=within, limits=limits)
        try:
            problems += tuple(_problems(source))
        except OutOfTime as error:
            problems = (Problem(error.place, _TAKES_LONG, _SPLIT),)
        problems = tuple(as_polls(problems, model.nodes))
    problems = as_written(problems, written)
    if own is not None:
        return source, (*own.problems, *own.for_author(problems))
    return source, tuple(dict.fromkeys(problems))


def as_polls(problems: Iterable[Problem], nodes: Mapping[str, NodeModel]) -> Iterator[Problem]:
    """Move the problems of a poll's loop to the place of the poll in the document."""
    for problem in problems:
        _, *steps = problem.path.split("/")
        node = nodes.get(steps[1]) if steps[:1] == ["nodes"] and steps[2:3] == ["loop"] else None
        if node is not None and node.poll is not None and "loop" not in node.model_fields_set:
            below = steps[3:]
            if below[:2] == ["while", "not"]:
                below = ["until", *below[2:]]
            else:
                below = [*(_IN_POLLS.get(step, step) for step in below[:1]), *below[1:]]
            problem = replace(problem, path="/".join(("", "nodes", steps[1], "poll", *below)))
        yield problem


_IN_POLLS = {"while": "until", "pause": "every", "max_iterations": "tries"}


def _problems(source: Source) -> Iterator[Problem]:
    for check in _CHECKS:
        source.go_on()
        for problem in check(source):
            source.go_on(problem.path)
            yield problem


def refusal_of(problems: Sequence[Problem]) -> InvalidDefinition:
    """Return the error that lists these problems, at least one, and tells the first."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return InvalidDefinition(
        f"{count}; the first: {problems[0].message} (at {problems[0].path or '/'})", tuple(problems)
    )


__all__ = [
    "MAX_HINTS",
    "Children",
    "children_of",
    "compile_document",
    "no_such_child",
    "notes_of",
    "refusal_of",
    "shared_keys",
]


_Object = dict[str, Any]
GRAPHS, HANDLER = "graphs", "failure_handler"
OWN = tuple(GraphModel.model_fields)
"""Keys that a graph defines itself."""
_ONLY_OF_DOCUMENTS = (
    "$schema", "name", "owner", "metadata", "guardrails", GRAPHS, HANDLER, "schedule", "events", "mcp"
)  # fmt: skip
SHARED = tuple(
    {field.alias or name for name, field in WorkflowModel.model_fields.items()} - {*OWN, *_ONLY_OF_DOCUMENTS}
)
"""Keys that a graph takes over from the document unchanged."""
_NOT_OF_A_GRAPH = (*_ONLY_OF_DOCUMENTS, *SHARED)
_LIFTED = {key for key, kind in BY_KEY.items() if kind.lifted}
_OUTSIDE = ("after", "when", "branch", "loop", "join", "catch", "limits", "description", "map")
"""Keys that describe the place of an agent with `map`; its other keys are about one item."""
_CTX = re.compile(r"(has\(\s*)?\bctx\.([A-Za-z_][A-Za-z0-9_]*)(\.output\?)?")
_SEEN = re.compile(r"\b(item|index|last_error)\b")
_EXPRESSION = re.compile(r"(?<!\$)\$\{([^}]*)\}")
_CONDITIONS = {"when", "if", "while", "until"}
MOST_GRAPHS = 100
"""Of one document, agents with `map` among them: each is compiled with all that it has of the document."""


@dataclass
class GraphPart:
    """A graph that is compiled as a document: the document itself (without a name), or one that it names."""

    name: str
    value: Any
    lifted: dict[str, str] = field(default_factory=dict)
    """By node that has become a graph of one node: the key of its kind."""
    lifted_from: GraphPart | None = None
    """Part with the node that has become this graph; None for any other graph."""
    at: str = ""
    """Its place, or that of the node."""

    @property
    def nodes(self) -> Mapping[str, Any]:
        nodes = self.value.get("nodes") if isinstance(self.value, dict) else None
        return (
            {name: node for name, node in nodes.items() if isinstance(node, dict)}
            if isinstance(nodes, dict)
            else {}
        )

    @cached_property
    def text(self) -> tuple[str, ...]:
        """Every expression and condition that its author has written in it.
        Other texts, prompts among them, may say `ctx.name` and mean no value.
        """
        keys = OWN if self.name else ("nodes", "output")
        return tuple(_texts([self.value.get(key) for key in keys])) if isinstance(self.value, dict) else ()

    @cached_property
    def seen(self) -> frozenset[str]:
        """`item`, `index` and `last_error`, as far as it names them."""
        return frozenset(root for text in self.text for root in _SEEN.findall(text))

    def for_author(self, problem: Problem) -> Problem | None:
        """Return the problem where its author can mend it;
        None where it is about what the graph has of the document.
        """
        _, *steps = problem.path.split("/")
        if steps[:1] == ["nodes"] and steps[2:3] == ["graph"] and len(steps) > 3:
            steps = steps[:3]  # it is about what is seen from there
        if steps[:2] == [HANDLER, "graph"]:
            steps = steps[:2]
        if steps[:1] == ["nodes"] and len(steps) > 1 and steps[1] in self.lifted and steps[2:3] == ["graph"]:
            steps = [*steps[:2], self.lifted[steps[1]]]
        if not self.name:
            return replace(problem, path="".join(f"/{step}" for step in steps))
        if steps[:1] and steps[0] not in OWN:
            return None
        if self.lifted_from is not None:
            steps = steps[2:]
        return replace(problem, path=self.at + "".join(f"/{step}" for step in steps))


class GraphParts:
    """The document and its named graphs as parts to compile, the document first."""

    def __init__(self, document: Any) -> None:
        self.problems: list[Problem] = []
        self.all = [GraphPart("", document)]
        if not isinstance(document, dict) or not (GRAPHS in document or _has_lifted(document)):
            return
        whole = {key: value for key, value in document.items() if key != GRAPHS}
        self.all = [GraphPart("", whole)]
        if (count := _count(document)) > MOST_GRAPHS:
            what = f"{count:,} graphs, agents with `map` included; a document has at most {MOST_GRAPHS}"
            self.problems.append(Problem(f"/{GRAPHS}", what, "give some of them a workflow of their own"))
            self.all = []
            return
        for name, graph in self._written(document.get(GRAPHS, {})):
            self.all.append(GraphPart(name, _as_document(whole, graph), at=f"/{GRAPHS}/{escape(name)}"))
        names = {part.name for part in self.all}
        for part in [*self.all]:
            self._lift(part, whole, names)
        self._by_name = {part.name: part for part in self.all}
        self._inputs: dict[str, Any] = {}
        for part in self.all[1:]:
            part.value = {**part.value, **({} if (known := self._input(part)) is None else {"input": known})}

    def _written(self, graphs: Any) -> Iterator[tuple[str, _Object]]:
        if not isinstance(graphs, dict):
            self.problems.append(
                Problem(
                    f"/{GRAPHS}",
                    "must be an object",
                    "write each graph under its name: `graphs: {first: {nodes: …}}`",
                )
            )
            return
        for name, graph in graphs.items():
            place = f"/{GRAPHS}/{escape(name)}"
            if not isinstance(graph, dict):
                self.problems.append(
                    Problem(place, "must be an object", "write `nodes`, and perhaps `output`")
                )
                continue
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
                self.problems.append(
                    Problem(place, f"`{name}` is not a name", "write letters, digits and `_`")
                )
                continue
            for key in _NOT_OF_A_GRAPH:
                if key in graph:
                    hint = (
                        f"leave it out: `{key}` of the document holds for its graphs"
                        if key in SHARED
                        else f"`{key}` is for the document"
                    )
                    self.problems.append(Problem(f"{place}/{key}", f"a graph has no `{key}`", hint))
            yield name, {key: value for key, value in graph.items() if key not in _NOT_OF_A_GRAPH}

    def _lift(self, part: GraphPart, whole: _Object, names: set[str]) -> None:
        """Make a graph of its own of each agent with `map`; the graph has one node of the same name."""
        made = {}
        for name, node in part.nodes.items():
            if not _is_lifted(node):
                continue
            graph = name
            while graph in names:
                graph += "_"
            names.add(graph)
            inside = {key: value for key, value in node.items() if key not in _OUTSIDE}
            made[name] = {**{key: node[key] for key in _OUTSIDE if key in node}, "graph": graph}
            part.lifted[name] = min(_LIFTED & node.keys())
            body = {"nodes": {name: inside}, "output": f"${{ctx.{name}.output}}"}
            at = f"{part.at}/nodes/{escape(name)}"
            self.all.append(GraphPart(graph, _as_document(whole, body), lifted_from=part, at=at))
        if made:
            part.value = {**part.value, "nodes": {**part.value["nodes"], **made}}

    # ---- what a graph is started with ------------------------------------------------------------------------

    def _users(self, graph: str) -> Iterator[tuple[GraphPart, _Object, bool]]:
        """Yield each node or failure handler that names the graph.

        The items are (part, node or handler, true if the graph is started for each item of a list).
        """
        for part in self.all:
            for node in part.nodes.values():
                if node.get("graph") == graph:
                    yield part, node, "map" in node
        handler = self.all[0].value.get(HANDLER)
        if isinstance(handler, dict) and handler.get("graph") == graph:
            yield self.all[0], handler, False

    def _input(self, part: GraphPart) -> Any:
        """Return the schema of the graph's input, as far as it is known; None for any value."""
        if not part.name or "input" in part.value:
            return part.value.get("input")
        if part.name in self._inputs:
            return self._inputs[part.name]
        self._inputs[part.name] = None  # one that starts itself says nothing of it
        found: list[Any] = []
        for user, said, _ in self._users(part.name):
            given = said.get("input", said.get("with"))
            if given is None:
                found.append(self._input(user))
            elif isinstance(given, dict):
                found.append(
                    {
                        "type": "object",
                        "properties": {key: {} for key in given},
                        "additionalProperties": False,
                        "required": sorted(given),
                    }
                )
            else:
                found.append(None)
        if found and all(one == found[0] for one in found):
            self._inputs[part.name] = found[0]
        return self._inputs[part.name]

    # ---- what a graph sees -----------------------------------------------------------------------------------

    @cached_property
    def _wanted(self) -> dict[str, dict[str, bool]]:
        """By graph, the nodes of the document whose outputs it names, and
        whether they have to be there; through other graphs, too.
        """
        wanted: dict[str, dict[str, bool]] = {part.name: {} for part in self.all}
        outer = self.all[0].nodes
        is_news = True
        while is_news:
            is_news = False
            for part in self.all[1:]:
                found = _named(part.text)
                for node in part.nodes.values():
                    found |= {
                        name: strict or found.get(name, False)
                        for name, strict in wanted.get(str(node.get("graph")), {}).items()
                    }
                mine, around = wanted[part.name], part.lifted_from.nodes if part.lifted_from else {}
                for name, strict in found.items():
                    is_there = (name in outer or name in around) and name not in part.nodes
                    if is_there and (name not in mine or (strict and not mine[name])):
                        mine[name], is_news = strict, True
        return wanted

    @cached_property
    def _tells(self) -> frozenset[str]:
        """The graphs that name `last_error`, or start another one that does."""
        found, news = set[str](), {part.name for part in self.all[1:] if "last_error" in part.seen}
        while news:
            found |= news
            starters = (
                part.name
                for part in self.all[1:]
                if any(str(node.get("graph")) in news for node in part.nodes.values())
            )
            news = {*starters} - found
        return frozenset(found)

    def _template(self, part: GraphPart, graph: str, *, is_mapped: bool) -> _Object:
        named = self._by_name[graph].seen if graph in self._by_name else ()
        seen: _Object = {root: f"${{{root}}}" for root in ("item", "index") if is_mapped and root in named}
        if graph in self._tells:
            seen["last_error"] = "${last_error}"
        if wanted := self._wanted.get(graph):
            seen["ctx"] = {
                name: f"${{ctx.{name}.output{'' if strict else '?'}}}"
                for name, strict in sorted(wanted.items())
            }
        return seen

    def within(self, part: GraphPart) -> Within:
        """Return the context of a part for the compiler, besides its document."""
        if len(self.all) == 1:
            return Within()
        seen = {}
        for name, node in part.nodes.items():
            if "graph" in node:
                seen[name] = self._template(part, str(node["graph"]), is_mapped="map" in node)
        handler = None if part.name else part.value.get(HANDLER)
        if isinstance(handler, dict) and "graph" in handler:
            seen[""] = self._template(part, str(handler["graph"]), is_mapped=False)
        users = [is_mapped for _, _, is_mapped in self._users(part.name)] if part.name else [False]
        users += [False for one in self.all for _, _, graph in _delegated(one) if graph == part.name]
        return Within(
            graph=part.name,
            inputs={inner_name("", one.name): self.declared(one) for one in self.all[1:]},
            outer=frozenset(self._wanted[part.name]),
            has_item=all(users),
            seen=seen,
        )

    def declared(self, part: GraphPart) -> Any:
        """Return the schema that the graph itself says its input has."""
        return None if part.name in self._inputs else part.value.get("input")

    def unseen(self) -> Iterator[tuple[GraphPart, Problem]]:
        """Yield the agents whose delegates name what an agent does not give them."""
        for part in self.all:
            for name, index, graph in _delegated(part):
                wanted = [f"ctx.{one}" for one in self._wanted.get(graph, ())]
                if wanted or graph in self._tells:
                    message = f"the graph `{graph}` names `{(*wanted, 'last_error')[0]}`, and a call of an agent gives it its `input` alone"
                    hint = f"add what it needs to the `input` of `{graph}`"
                    yield part, Problem(f"/nodes/{escape(name)}/agent/tools/{index}", message, hint)

    def hidden(self) -> Iterator[tuple[GraphPart, Problem]]:
        """Yield the nodes of a graph that hide one of the document from another graph that it starts."""
        for part in self.all[1:]:  # the document itself hides nothing
            for name, node in part.nodes.items():
                if name in part.lifted:
                    continue
                for wanted in self._wanted.get(str(node.get("graph")), {}):
                    if wanted in part.nodes:
                        message = f"`{node['graph']}` names `ctx.{wanted}` of the document, and a node of this graph has that name"
                        yield (
                            part,
                            Problem(f"/nodes/{name}/graph", message, f"give `{wanted}` another name here"),
                        )


def _as_document(whole: _Object, graph: _Object) -> _Object:
    """Return the graph as a document that can be compiled alone."""
    name = whole.get("name")
    shared = {key: whole[key] for key in SHARED if key in whole}
    rails = whole.get("guardrails")
    if isinstance(rails, dict) and "allowed_tools" in rails:
        shared["guardrails"] = {"allowed_tools": rails["allowed_tools"]}
    is_name = isinstance(name, str) and re.fullmatch(r"[a-z][a-z0-9-]{0,63}", name)
    return {"name": name if is_name else "graph", **shared, **graph}


def _delegated(part: GraphPart) -> Iterator[tuple[str, int, str]]:
    """Yield (node, index, graph) for each graph that an agent's model may start."""
    for name, node in part.nodes.items():
        inside = next((node[key] for key in _LIFTED & node.keys()), None)
        calls = inside.get("tools") if isinstance(inside, dict) else None
        for index, one in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(one, dict) and isinstance(graph := one.get("graph"), str):
                yield name, index, graph


def _is_lifted(node: Any) -> bool:
    return isinstance(node, dict) and MAP in node and not _LIFTED.isdisjoint(node) and "graph" not in node


def _has_lifted(document: _Object) -> bool:
    return any(map(_is_lifted, _nodes_of([document])))


def _count(document: _Object) -> int:
    """Return the number of graphs in a document, agents with `map` included."""
    graphs = document.get(GRAPHS)
    written = list(graphs.values()) if isinstance(graphs, dict) else []
    return len(written) + sum(map(_is_lifted, _nodes_of([document, *written])))


def _nodes_of(graphs: Iterable[Any]) -> Iterator[Any]:
    for graph in graphs:
        nodes = graph.get("nodes") if isinstance(graph, dict) else None
        yield from nodes.values() if isinstance(nodes, dict) else ()


def _texts(value: Any, *, is_condition: bool = False) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value,) if is_condition else _EXPRESSION.findall(value)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one, is_condition=is_condition)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(one, is_condition=is_condition or key in _CONDITIONS)


def _named(texts: Iterable[str]) -> dict[str, bool]:
    """Return the nodes whose outputs are named, and true for those that have to be there:
    no `?` is behind one, and nothing asks whether it is there.
    """
    needed: dict[str, bool] = {}
    asked = set()
    for text in texts:
        for has, name, optional in _CTX.findall(text):
            asked |= {name} if has else set()
            needed[name] = needed.get(name, False) or not optional
    return {name: is_needed and name not in asked for name, is_needed in needed.items()}


def problems_for_author(
    parts: GraphParts, found: Sequence[tuple[GraphPart, Sequence[Problem]]]
) -> list[Problem]:
    """Return all problems, where their author can mend them.
    One of what graphs have of the document is one where it is one in all of them.
    """
    unseen = (*parts.hidden(), *parts.unseen()) if len(parts.all) > 1 else ()
    told = [*parts.problems, *(one for part, problem in unseen if (one := part.for_author(problem)))]
    shared = [{problem.path for problem in problems} for _, problems in found]
    for part, problems in found:
        for problem in problems:
            is_shared = problem.path.split("/")[1:2] and problem.path.split("/")[1] in SHARED
            if is_shared and not all(problem.path in paths for paths in shared):
                continue
            if (one := part.for_author(problem)) is not None:
                told.append(one)
    return list(dict.fromkeys(told))


def whole_of(parts: GraphParts, graphs: Sequence[tuple[GraphPart, Graph]]) -> Graph:
    """Return the graph of the document, with those that it names."""
    (_, whole), *others = graphs
    if not others:
        return whole
    named = {
        part.name: structs.replace(
            graph, name=inner_name(whole.name, part.name), input_schema=parts.declared(part)
        )
        for part, graph in others
    }
    return structs.replace(whole, graphs=named)
