"""compile_document(text, tools) -> graph and every problem at once, each with its path and position.

The order of the checks, which see a document whose shape is right.
The checks themselves have a file for each thing that can be wrong.
Nothing here runs a workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from baton.core.documents.compile import build as of_kinds
from baton.core.documents.compile import failing, tools, triggers
from baton.core.documents.compile.analysis import source
from baton.core.documents.compile.analysis.source import MAX_HINTS, Children, OutOfTime, Source, Tools, Within
from baton.core.documents.compile.checks import control, expressions
from baton.core.documents.compile.checks.control import circular_graphs
from baton.core.documents.compile.checks.named import GraphPart, GraphParts, problems_for_author, whole_of
from baton.core.documents.compile.checks.notes import children_of, no_such_child, notes_of, shared_keys
from baton.core.documents.expand import expand_own_kinds
from baton.core.documents.nodes.own import OwnKinds
from baton.core.documents.read import as_written, read_definition
from baton.core.documents.text import parse_document
from baton.core.graph.graph import Graph
from baton.errors import InvalidDefinition, Problem

if TYPE_CHECKING:
    from baton.core.documents.read import NodeModel

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
) -> Graph:
    """Compile a document to a graph.
    Raises `MalformedDocument` for text that cannot be parsed, `InvalidDefinition` with all problems.

    `children`: what is known of the workflows that this one starts. `kinds`: those of the application's own.
    Where `has_time` says no, the document is refused for
    that.
    """
    document = parse_document(text, json_only=json_only)
    parts = GraphParts(document.value)
    found: list[tuple[GraphPart, Source | None, tuple[Problem, ...]]] = []
    for part in parts.all:
        within = parts.within(part)
        known = {**(children or {}), **within.inputs}
        found.append((part, *_checked(part.value, kinds or {}, tools, known, has_time, within)))
    circles = list(circular_graphs([(part.name, source) for part, source, _ in found]))
    told = [(part, (*its, *(one for name, one in circles if name == part.name))) for part, _, its in found]
    problems = problems_for_author(parts, told)
    if not problems:
        return whole_of(parts, [(part, of_kinds.built(source)) for part, source, _ in found if source])
    raise refusal_of(sorted(map(document.locate, problems), key=lambda p: (p.line, p.column)))


def _checked(
    value: Any,
    kinds: OwnKinds,
    tools: Tools,
    children: Children,
    has_time: Callable[[], bool],
    within: Within,
) -> tuple[Source | None, tuple[Problem, ...]]:
    """Return a document, or a graph as one, with all its problems."""
    own = expand_own_kinds(value, kinds)
    model, problems, written, is_whole = read_definition(own.value)
    source = None
    if model is not None:
        # All of them are looked through, again and again: a mapping that asks for each whether it is granted takes longer.
        source = Source(model, dict(tools), is_whole, children, has_time=has_time, within=within)
        try:
            problems += tuple(_problems(source))
        except OutOfTime as error:
            problems = (Problem(error.place, _TAKES_LONG, _SPLIT),)
        problems = tuple(as_polls(problems, model.nodes))
    return source, (*own.problems, *own.for_author(as_written(problems, written)))


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
