"""A document as the interpreter sees it: its edges, its loops and what leads where, from the plain JSON alone.

Shares no code with the engine. What happens when it runs is in interpreter.py, conditions and expressions are in
language.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import takewhile
from typing import Any

Document = Mapping[str, Any]
KINDS = {"tool": "task", "workflow": "child", "graph": "child"} | {
    key: key for key in ("wait", "fail", "end")
}


def names(value: Any) -> tuple[str, ...]:
    """What stands where one name or a list of them may stand."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def inner_document(document: Document, name: str) -> Document:
    """A graph of a document as a document: what it says itself, and the rest of the document."""
    around = {key: value for key, value in document.items() if key not in ("output", "failure_handler")}
    return {**around, **document["graphs"][name]}


def _looping(node: Any) -> Any:
    """A node that polls is a loop of itself, which goes on while its condition does not hold."""
    if "poll" not in node:
        return node
    poll = node["poll"]
    loop = {"while": {"not": poll["until"]}, "max_iterations": poll["tries"], "pause": poll["every"]}
    return {**node, "loop": loop}


class Plan:
    """A document, read. Every node has a name; `before` and `after` are its neighbours by forward edges, sorted."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes: dict[str, Any] = {name: _looping(node) for name, node in document["nodes"].items()}
        self._joins: dict[str, tuple[int, int | None, str]] = {}
        self._common: dict[tuple[str, str], int] = {}
        edges = {(source, name) for name, node in self.nodes.items() for source in names(node.get("after"))}
        for name, node in self.nodes.items():
            loop = node.get("loop", {})
            to = self.targets(name) | self.handlers(name)
            to |= {*names(loop.get("break_path")), *names(loop.get("timeout_path"))}
            edges |= {(name, target) for target in to}
        self.before: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.after: dict[str, list[str]] = {name: [] for name in self.nodes}
        for source, target in sorted(edges):
            self.before[target].append(source)
            self.after[source].append(target)
        self.loops = self._loops()
        self.headed = {
            name: tuple(tail for tail in self.loops[name] if self.header(tail) == name) for name in self.nodes
        }

    def targets(self, name: str) -> set[str]:
        """The nodes that `branch` of this one can choose."""
        branch = self.nodes[name].get("branch", {})
        rules = (target for rule in branch.get("rules", ()) for target in names(rule["then"]))
        return {*rules, *names(branch.get("default")), *names(branch.get("among"))}

    def catch(self, name: str) -> list[Any]:
        """The rules by which a failure of this node is caught."""
        said = self.nodes[name].get("catch", [])
        rules = said if isinstance(said, list) else [said]
        return [{"then": rules}] if any(isinstance(rule, str) for rule in rules) else rules

    def handlers(self, name: str) -> set[str]:
        """The nodes that a failure of this one can lead to."""
        return {target for rule in self.catch(name) for target in names(rule["then"])}

    def header(self, tail: str) -> str:
        return str(self.nodes[tail]["loop"].get("back_to", tail))

    def of(self, name: str) -> Any:
        """The node of this name; of an item, that of its map."""
        return self.nodes[name.partition("#")[0]]

    def kind(self, name: str) -> str:
        """What is done there: for a map nothing itself, for an item of it what the node says."""
        node = self.of(name)
        if "map" in node and "#" not in name:
            return "map"
        return next((kind for key, kind in KINDS.items() if key in node), "pass")

    def join(self, name: str) -> tuple[int, int | None, str]:
        """So many edges must be alive (0: all have to speak), so many may fail, what becomes of the rest."""
        if name not in self._joins:
            self._joins[name] = self._read_join(name)
        return self._joins[name]

    def _read_join(self, name: str) -> tuple[int, int | None, str]:
        join = self.nodes[name].get("join", "all")
        if not isinstance(join, Mapping):
            join = {"wait_for": join}
        need = {"all": 0, "any": 1}.get(join.get("wait_for", "all"), join.get("wait_for"))
        may = join.get("tolerated_failures")
        if isinstance(may, str):
            may = len(self.before[name]) * int(may.rstrip("%")) // 100
        return need, may, join.get("rest", "cancel")

    @cached_property
    def ahead(self) -> dict[str, set[str]]:
        """Itself, and everything that a way leads to."""
        found: dict[str, set[str]] = {}

        def visit(name: str) -> set[str]:
            if name not in found:
                found[name] = {name}.union(*(visit(other) for other in self.after[name]))
            return found[name]

        for name in self.nodes:
            visit(name)
        return found

    @cached_property
    def order(self) -> list[str]:
        """Whatever leads to a node stands in front of it."""
        return sorted(self.nodes, key=lambda name: (-len(self.ahead[name]), name))

    def body(self, tail: str) -> set[str]:
        return {name for name in self.ahead[self.header(tail)] if tail in self.ahead[name]}

    def _loops(self) -> dict[str, tuple[str, ...]]:
        bodies = {tail: self.body(tail) for tail, node in self.nodes.items() if "loop" in node}
        wide_first = sorted(bodies, key=lambda tail: -len(bodies[tail]))
        return {name: tuple(tail for tail in wide_first if name in bodies[tail]) for name in self.nodes}

    def common(self, one: str, other: str) -> int:
        """How many loops are around both."""
        if (one, other) not in self._common:
            pairs = zip(self.loops[one], self.loops[other], strict=False)
            self._common[one, other] = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return self._common[one, other]

    def leads_only_to(self, goals: Iterable[str]) -> set[str]:
        """The nodes from which every way leads to one of `goals`."""
        wanted = set(goals)
        found: set[str] = set()
        for name in reversed(self.order):
            if self.after[name] and all(other in wanted or other in found for other in self.after[name]):
                found.add(name)
        return found

    @cached_property
    def readers(self) -> dict[str, set[str]]:
        """For each node, those whose expressions name it; the empty name is the saga's output and its failure handler.

        What a round reads of the one before it is read by the tail, which hands it on.
        """
        found: dict[str, set[str]] = {name: set() for name in self.nodes}
        for reader, node in [
            *self.nodes.items(),
            ("", {"value": self.document.get("output"), **self.document.get("failure_handler", {})}),
        ]:
            text = json.dumps(node)
            named = re.findall(r"ctx\.(\w+)\.(output|previous)", text)
            named += [(name, "output") for name in self.seen_in(node.get("graph", ""))]
            for name, field in named:
                if name not in self.nodes:
                    continue  # a graph reads it of its document
                found[name].add(
                    self.loops[reader][self.common(reader, name) - 1] if field == "previous" else reader
                )
            if "join.outputs" in text:
                for name in self.before[reader]:
                    found[name].add(reader)
        return found

    def seen_in(self, graph: str) -> set[str]:
        """The nodes of the document that a graph of it reads, or that one reads which it starts."""
        if not graph:
            return set()
        its = self.document["graphs"][graph]
        named: set[str] = {*re.findall(r"ctx\.(\w+)\.output", json.dumps(its))}
        named |= {name for node in its["nodes"].values() for name in self.seen_in(node.get("graph", ""))}
        return named.difference(its["nodes"])

    @cached_property
    def tolerated(self) -> set[str]:
        """The nodes whose failure does not fail the saga."""
        return self.leads_only_to({name for name in self.nodes if self.join(name)[1] is not None})

    @cached_property
    def rest(self) -> dict[str, tuple[int, set[str]]]:
        """For each join: what leads to it only, within so many loops. A loop's header is joined from outside of it."""
        found = {}
        for join in (name for name in self.nodes if "join" in self.nodes[name]):
            around = self.loops[join][: len(self.loops[join]) - len(self.headed[join])]
            inside = {name for name in self.nodes if self.loops[name][: len(around)] == around}
            found[join] = len(around), self.leads_only_to([join]) & inside
        return found
