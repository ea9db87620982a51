"""Random graphs, drawn from a seed: documents that keep every rule of the compiler, and are hard on the engine.

First a graph without loops, then loops around parts of it, then ways out, joins, conditions and what is read. Belongs
here: how they are drawn. What a node is sure to find is in sure.py; nothing here knows the engine.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

from tests.core.graphs.many import draw_items, draw_many
from tests.core.graphs.named import Graphs, draw_fresh, draw_starters
from tests.core.graphs.plan import Plan
from tests.core.graphs.sure import is_racing, sure_of
from tests.core.graphs.troubles import draw_catches, draw_rules

LETTERS = "abcdefghijklmnopqrstuvwxyz"
GO = ("red", "amber", "green")
SIZES = (3, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 14)

MIXED = 0.3
"""How often a choice may name nodes inside and outside of a loop together, or leave one beside edges that stay in it."""

ENDING = 0.12
"""How often a last node ends the saga: as failed, or early with a result."""

TROUBLED = 0.5
"""How often a graph says what is done about failures; in the others a step that fails has failed."""

Doc = dict[str, Any]


class Maker:
    """One graph in the making."""

    def __init__(self, seed: str, size: int = 0) -> None:
        self.draw = random.Random(seed)
        self.many = random.Random(f"{seed}/many")  # the same
        self.named = random.Random(f"{seed}/named")  # the same
        self.ends = random.Random(f"{seed}/ends")  # of its own, so that all other graphs stay as they were
        self.count = size or self.draw.choice(SIZES)
        self.ranked = self.draw.sample(LETTERS, self.count)
        self.nodes: Doc = {name: {"after": []} for name in self.ranked}
        self.troubled = self.often(TROUBLED)

    def often(self, chance: float) -> bool:
        return self.draw.random() < chance

    def some(self, these: list[str], least: int = 1) -> list[str]:
        return self.draw.sample(these, self.draw.randint(least, len(these)))

    @property
    def plan(self) -> Plan:
        return Plan({"nodes": self.nodes})

    # ---- edges and loops -----------------------------------------------------------------------------------

    def draw_edges(self) -> None:
        for index, name in enumerate(self.ranked):
            if index and not self.often(0.05):
                near = self.ranked[max(0, index - self.draw.choice((1, 2, 2, 3, 9))) : index]
                many = min(len(near), self.draw.choice((1, 1, 1, 2, 2, 3)))
                self.nodes[name]["after"] = self.draw.sample(near, many)

    def draw_loops(self) -> None:
        for _ in range(self.draw.choice((0, 0, 1, 1, 1, 2, 2, 3))):
            tail = self.draw.choice(self.ranked)
            if "loop" in self.nodes[tail]:
                continue
            ahead = self.plan.ahead
            headers = [name for name in self.ranked if tail in ahead[name]]
            header = tail if self.often(0.25) else self.draw.choice(headers)
            before = {name: list(node["after"]) for name, node in self.nodes.items()}
            self.nodes[tail]["loop"] = {"back_to": header}
            if not self._settle_loops():
                del self.nodes[tail]["loop"]
                for name, after in before.items():
                    self.nodes[name]["after"] = after

    def draw_collector(self) -> None:
        """Sometimes a last node that everything leads to, so that failures are tolerated nearly everywhere."""
        plan, last = self.plan, self.ranked[-1]
        if self.count > 3 and not plan.loops[last] and self.often(0.35):
            ends = [name for name in self.ranked[:-1] if not plan.after[name]]
            self.nodes[last]["after"] = sorted({*self.nodes[last]["after"], *ends})
            need = self.draw.choice(("all", "all", "any"))
            self.nodes[last]["join"] = {
                "wait_for": need,
                "tolerated_failures": self.draw.choice((1, 2, 2, "50%", "100%")),
            }

    def _settle_loops(self) -> bool:
        """Cut every edge into the middle of a body; whether the bodies are then apart or inside each other."""
        while True:
            plan = self.plan
            tails = [name for name in self.ranked if "loop" in self.nodes[name]]
            bodies = {tail: plan.body(tail) for tail in tails}
            if any(tail not in plan.ahead[plan.header(tail)] for tail in tails):
                return False
            cut = False
            for tail, body in bodies.items():
                for name in body - {plan.header(tail)}:
                    after = [other for other in self.nodes[name]["after"] if other in body]
                    cut = cut or len(after) < len(self.nodes[name]["after"])
                    self.nodes[name]["after"] = after
            if not cut:
                break
        pairs = [(one, other) for one in tails for other in tails if one < other]
        return all(self._fit(bodies[one], bodies[other]) for one, other in pairs)

    @staticmethod
    def _fit(one: set[str], other: set[str]) -> bool:
        return not one & other or one < other or other < one

    # ---- ways out ------------------------------------------------------------------------------------------

    def draw_ways(self) -> None:
        plan = self.plan
        for name in self.ranked:
            handlers, loops, node = plan.handlers(name), plan.loops[name], self.nodes[name]
            after = [other for other in plan.after[name] if other not in handlers]
            own = "loop" in node
            level = {other: plan.common(name, other) for other in after}
            out = {other for other in after if level[other] < len(loops) - own}
            if own:
                self._draw_loop(plan, name, [other for other in after if other not in out])
            named = {
                *node.get("loop", {}).get("timeout_path", ()),
                *node.get("loop", {}).get("break_path", ()),
            }
            if out:
                free = [other for other in after if other in out or other not in named]
                if self.often(MIXED):
                    node["branch"] = self._draw_branch(
                        [[other for other in free if other in out or self.often(0.6)]]
                    )
                else:
                    # Nothing is alive beside what is chosen, and what is chosen is in the same loops.
                    node.get("loop", {}).pop("break_path", None)
                    groups = [[other for other in free if level[other] == one] for one in {*level.values()}]
                    node["branch"] = self._draw_branch(sorted(group for group in groups if group))
            elif (len(after) > 1 and self.often(0.3)) or (after and self.often(0.05)):
                targets = [other for other in after if other not in named and self.often(0.75)]
                if targets:
                    node["branch"] = self._draw_branch([targets])

    def _draw_loop(self, plan: Plan, name: str, after: list[str]) -> None:
        loop = self.nodes[name]["loop"]
        if loop["back_to"] == name and self.often(0.5):
            del loop["back_to"]
        # Loops inside loops are kept short: three of three rounds each would be all that a graph does.
        deep = any(len(around) > 1 and name in around for around in plan.loops.values())
        loop["max_iterations"] = self.draw.choice((1, 2, 2) if deep else (1, 2, 3, 3, 3))
        conditions = ("output.again", "output.again", "output.go == 'red'", "loop.iteration < 1")
        loop["while"] = self.draw.choice(conditions)
        if after and self.often(0.15):
            loop["while"] = "true"
        if after and (self.often(0.5) or loop["while"] == "true"):
            loop["timeout_path"] = sorted(self.some(after))
            self.draw.shuffle(loop["timeout_path"])
        if after and self.often(0.3):
            loop["break_path"] = sorted(self.some(after))

    def _draw_branch(self, groups: list[list[str]]) -> Doc:
        """Rules that each choose among one group; everything is chosen by one of them."""
        targets = sorted(other for group in groups for other in group)
        if self.often(0.25):
            branch: Doc = {"choose": "output.next", "among": targets}
            if self.often(0.5):
                branch["default"] = self.draw.choice(targets)
            return branch
        rules = []
        for group in groups:
            for target in group:
                more = [other for other in group if other != target and self.often(0.2)]
                rules.append({"if": self._test("output"), "then": self._names([target, *more])})
        self.draw.shuffle(rules)
        if len(rules) > 1 and self.often(0.7):
            last = rules.pop()
            return {"rules": rules, "default": last["then"]}
        return {"rules": rules}

    def _names(self, these: list[str]) -> Any:
        return these[0] if len(these) == 1 and self.often(0.5) else these

    def _test(self, root: str) -> Any:
        go = self.draw.choice(GO)
        plain = f"{root}.go {self.draw.choice(('==', '==', '!='))} '{go}'"
        if self.often(0.8):
            return plain
        if self.often(0.4):
            return {"compare": {"left": f"${{{root}.go}}", "operator": "==", "right": go}}
        kind = self.draw.choice(("all", "any", "not"))
        return {"not": plain} if kind == "not" else {kind: [f"{root}.go == '{go}'", f"{root}.again"]}

    # ---- joins, kinds, and what is read --------------------------------------------------------------------

    def draw_joins(self) -> None:
        plan = self.plan
        for name in self.ranked:
            count = len(plan.before[name])
            if "join" in self.nodes[name]:
                continue
            if count > 1 and self.often(0.6):
                need: Any = self.draw.choice(("all", "any", self._count(plan, name)))
                join: Doc = {"wait_for": need}
                if self.often(0.45):
                    join["rest"] = self.draw.choice(("run", "run", "cancel"))
                if self.often(0.4):
                    join["tolerated_failures"] = self.draw.choice((0, 1, 1, 2, "50%", "67%", "100%"))
                self.nodes[name]["join"] = need if len(join) == 1 else join
            elif count == 1 and self.often(0.04):
                self.nodes[name]["join"] = {"tolerated_failures": self.draw.choice((0, 1, "100%"))}

    def _count(self, plan: Plan, name: str) -> int:
        """How many edges a join may wait for: of nodes that a branch chooses between, not all come to life."""
        near = {*plan.before[name], *(other for source in plan.before[name] for other in plan.before[source])}
        if any(self.nodes[other].keys() & {"branch", "loop", "catch"} for other in near):
            return 1
        return self.draw.randint(1, len(plan.before[name]))

    def draw_kinds(self) -> None:
        plan = self.plan
        for name in self.ranked:
            kind = self.draw.choice(("task",) * 7 + ("wait", "pass", "pass"))
            node = self.nodes[name]
            if kind == "wait":
                node["wait"] = {"signal": name}
            elif kind == "pass":
                ways: list[Any] = [None, *node.get("branch", {}).get("among", ())]
                node["value"] = {
                    "go": self.draw.choice(GO),
                    "again": self.often(0.5),
                    "next": self.draw.choice(ways),
                }
            else:
                node["tool"] = "work"
            if not plan.after[name] and not plan.loops[name] and (drawn := self.ends.random()) < ENDING:
                for key in ("wait", "value", "tool"):
                    node.pop(key, None)
                is_failure = drawn < ENDING / 3
                ending: Doc = {"end": {"result": {}}}
                node |= {"fail": {"code": "odd", "message": "so it is"}} if is_failure else ending
            if self.often(0.1):
                node["when"] = "true"
        draw_many(self.many, self.nodes, troubled=self.troubled)
        draw_starters(self.named, self.nodes, troubled=self.troubled)

    def draw_reading(self) -> None:
        plan = self.plan
        sure = sure_of(plan)
        for name in self.ranked:
            node = self.nodes[name]
            if node.get("when"):
                known = self._asked(plan, sure[name])
                node["when"] = (
                    self._test(f"ctx.{self.draw.choice(known)}.output") if known else self._test("input")
                )
                if plan.loops[name] and self.often(0.4):
                    node["when"] = "loop.iteration < 1"
            reads = self._reads(plan, sure, name)
            if node.keys() & {"tool", "workflow", "graph"} and reads:
                node["with"] = reads
            elif "end" in node:
                node["end"]["result"]["seen"] = reads
            elif "value" in node and "map" in node:
                node["value"]["seen"] = reads
            elif "value" in node:
                node["value"]["seen"] = reads
                known = self._asked(plan, sure[name])
                if known and self.often(0.5):
                    node["value"]["go"] = f"${{ctx.{self.draw.choice(known)}.output.go}}"

    @staticmethod
    def _asked(plan: Plan, sure: set[str]) -> list[str]:
        """The nodes of these that give an object: a map gives a list."""
        return sorted(other for other in sure if other in plan.nodes and "map" not in plan.nodes[other])

    def _reads(self, plan: Plan, sure: dict[str, set[str]], name: str) -> Doc:
        earlier = [other for other in self.ranked if name in plan.ahead[other] and other != name]
        reads: Doc = {}
        for other in self.draw.sample(earlier, min(len(earlier), self.draw.choice((0, 1, 1, 2, 3)))):
            if other in sure[name]:
                reads[other] = f"${{ctx.{other}.output}}"
            elif not is_racing(plan, other, name):
                field = self.draw.choice(("", ".go"))
                reads[other] = f"${{ctx.{other}.output?{'' if 'map' in self.nodes[other] else field}}}"
        together = [other for other in self.ranked if plan.common(name, other)]
        if together and self.often(0.4):
            other = self.draw.choice(together)
            if not is_racing(plan, other, name):
                reads["before"] = f"${{ctx.{other}.previous}}"
        if plan.loops[name] and self.often(0.4):
            reads["round"] = "${loop.iteration}"
        if (len(plan.before[name]) > 1 or "join" in self.nodes[name]) and self.often(0.4):
            field = self.draw.choice(("outputs", "arrived", "errors"))
            reads["join"] = f"${{join.{field}}}"
        if plan.before[name] and self.often(0.2 if len(plan.before[name]) > 1 else 0.05):
            reads["error"] = f"${{last_error.{self.draw.choice(('code', 'code', 'class', 'attempt'))}}}"
        return reads

    def document(self) -> Doc:
        """The whole of it, with its nodes and lists in any order."""
        self.draw_edges()
        self.draw_loops()
        self.draw_collector()
        if self.troubled:
            draw_catches(self.draw, self.plan, self.nodes)
        self.draw_ways()
        self.draw_joins()
        self.draw_kinds()
        self.draw_reading()
        draw_items(self.nodes)
        draw_fresh(self.named, self.nodes)
        plan = self.plan
        for name, node in self.nodes.items():
            # An edge that a branch or a loop names already may be named here, too.
            named = plan.before[name]
            spoken = [
                other
                for other in named
                if name in plan.targets(other) | plan.handlers(other)
                or name in self.nodes[other].get("loop", {}).get("break_path", ())
                or name in self.nodes[other].get("loop", {}).get("timeout_path", ())
            ]
            rare = [
                other
                for other in spoken
                if name in plan.handlers(other)
                or (
                    name in self.nodes[other].get("loop", {}).get("timeout_path", ())
                    and name not in self.nodes[other]["loop"].get("break_path", ())
                    and name not in plan.targets(other)
                )
            ]
            after = [
                other for other in named if other not in spoken or (other not in rare and self.often(0.3))
            ]
            self.draw.shuffle(after)
            node["after"] = after
            if not after:
                del node["after"]
        document: Doc = {
            "name": "graph",
            "nodes": {name: self.nodes[name] for name in self.some(self.ranked, self.count)},
        }
        outputs = [name for name in self.ranked if not is_racing(plan, name, "")]
        certain = sure_of(plan)[""]
        chosen = self.draw.sample(outputs, min(len(outputs), self.draw.choice((0, 1, 2, 2))))
        if chosen:
            document["output"] = {
                name: f"${{ctx.{name}.output{'' if name in certain else '?'}}}" for name in chosen
            }
        if self.troubled:
            draw_rules(self.draw, document)
        else:
            document["on_failure"] = ["rollback"]
        drawn = Graphs(self.named, plan, self.nodes, sure_of(plan))
        if graphs := drawn.draw_all():
            document["graphs"] = graphs
        if handler := drawn.draw_handler():
            document |= {"graphs": graphs, "failure_handler": handler}
        return document

    def signature(self) -> str:
        """The same for two graphs that differ in nothing but the names of their nodes and the order of their text."""
        number = {name: str(index) for index, name in enumerate(self.ranked)}
        text = json.dumps({name: self.nodes[name] for name in self.ranked}, sort_keys=False)
        return re.sub(r"\b[a-z]\b", lambda found: number[found.group()], text)


def shape(seed: str, size: int = 0) -> Doc:
    """The document of this seed."""
    return Maker(seed, size).document()
