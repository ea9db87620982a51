"""Schemas of tools that a deploy has changed under running sagas.

A step is compiled with the hash of its tool's schemas. If the deployed tool has another hash, the step must
still fit. Its arguments fit if the tool takes them, which is found by the call itself, before the tool acts.
Its result fits if the tool's schema has each field that the document reads of it, which is found here. What
the document does not use may change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from baton.core.conditions.schemafaults import Schema
from baton.core.decide.decision import RunStep
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import Path
from baton.core.graph.graph import FUNCTION, Graph, Node
from baton.core.log.scopes import is_index

Reads = Iterable[tuple[str, Path]]
"""Paths in a document, each with the node that reads it; empty for the output of the saga."""


def unfit_results(graph: Graph, reads: Reads, tools: Mapping[str, ToolSpec], build: str) -> dict[str, str]:
    """Return, by node, the fields that the document reads of its result and that its tool no longer has."""
    found, reads = dict[str, str](), list(reads)
    for node in graph.nodes:
        work = node.work
        spec = tools.get(work.tool)
        # A declared schema counts in the place of the tool's: the result is checked by it.
        if spec is None or spec.schema_hash == work.schema_hash or work.output_schema is not None:
            continue
        if texts := dict.fromkeys(_unfit(node, spec, reads)):
            found[node.name] = f"{'; '.join(texts)}. {_change(work, spec, build)}"
    return found


def with_unfit(steps: tuple[RunStep, ...], unfit: Mapping[str, str]) -> tuple[RunStep, ...]:
    """Return the steps with the reason why one must not begin: the first call of its node's own tool."""
    return tuple(
        replace(step, unfit=unfit[step.node.name])
        if step.node.name in unfit and _is_own(step) and not step.look and step.way is None
        else step
        for step in steps
    )


def reason_of(step: RunStep, spec: ToolSpec | None, build: str) -> str:
    """Return the change of a tool that refuses the arguments of a step; empty if it is the same tool, or if
    they are a model's to correct.
    """
    node = step.node
    is_of_model = bool(step.place.item) and not is_index(step.place.item) and node.kind != FUNCTION
    if spec is None or spec.name != node.tool or not node.schema_hash:
        return ""
    if is_of_model and not step.place.scope:
        return ""
    return "" if spec.schema_hash == node.schema_hash else _change(node, spec, build)


def _is_own(step: RunStep) -> bool:
    """Return true for the work of a node, or of one of its items, and not for an inverse."""
    return not step.place.scope and (not step.place.item or is_index(step.place.item))


def _change(node: Node, spec: ToolSpec, build: str) -> str:
    """Return the change of a tool as a sentence: its version and schema at the time when the document was
    compiled and now, and the deploy.
    """
    deploy = f" by the deploy of build `{build}`" if build else " by a deploy"
    return (
        f"The schema of `{spec.name}` was changed{deploy}: the document was compiled with version "
        f"{node.tool_version or '?'} ({node.schema_hash}), and the tool has version {spec.version} "
        f"({spec.schema_hash})"
    )


def _unfit(node: Node, spec: ToolSpec, reads: Reads) -> Iterator[str]:
    result = Schema(spec.result, spec.result)
    for reader, path in _reads(node.name, reads):
        steps = path.inner
        if node.each is not None:
            if node.each.tells_all:
                continue  # it reads the outcomes of items
            steps = steps[1:]
        known: list[str | int] = []
        for step in steps:
            if isinstance(step, Path):
                break
            known.append(step)
        _, taken = result.follow(known)
        if taken < len(known):
            of = f"`{reader}`" if reader else "the output of the saga"
            yield f"`{spec.name}` no longer returns `{known[taken]}`, which {of} reads as `{path.text}`"


def _reads(name: str, reads: Reads) -> Iterator[tuple[str, Path]]:
    """Yield each path into the output of a node, with its reader; empty for the output of the saga."""
    for reader, path in reads:
        is_of_it = path.node == name or (path.root == "output" and reader == name)
        if is_of_it and not path.may_be_null:
            yield reader, path
