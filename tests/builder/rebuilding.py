"""Any document by calls of the builder, with its helpers and references wherever they can say the same.

And conditions of every form, as hypothesis draws them: whole documents are drawn in tests/core/documents.py.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from baton import (
    OUTPUT,
    Workflow,
    all_of,
    any_of,
    branch,
    caught,
    cel,
    choose,
    compare,
    join,
    jsonpath,
    loop,
    matches,
    not_,
    python,
    rule,
)
from baton.core.conditions.document import FIELDS
from baton.core.expressions import ExpressionError, Path, expressions_in

_FAILING = ("retry", "on_failure", "failover")
_HEAD = (
    *("description", "owner", "metadata", "input", "schemas", "timeout", "limits", "guardrails"),
    *_FAILING,
    "replan",
)
_ALONE: dict[str, Any] = {"cel": cel, "jsonpath": jsonpath, "schema": matches, "python": python}
_ALIKE = ("join", "output_schema", "limits", "description", *_FAILING)


def rebuilt(document: dict[str, Any]) -> Workflow:
    head = {key: document[key] for key in _HEAD if key in document}
    if "failover" in head:
        # What a reference stands for is unknown yet.
        head["failover"] = _policies(head["failover"], _Plain(Workflow("w")))
    again = _Again(Workflow(document["name"], **head))
    for name, node in document["nodes"].items():
        again.add(name, node)
    if "output" in document:
        again.built.output(again.value(document["output"]))
    return again.built


def _policies(policies: list[Any], again: _Again) -> list[Any]:
    return [
        {**policy, "when": {**policy["when"], "if": again.condition(policy["when"]["if"])}}
        if "if" in policy.get("when", ())
        else policy
        for policy in policies
    ]


class _Again:
    def __init__(self, built: Workflow) -> None:
        self.built = built
        self.nodes: dict[str, Any] = {}

    def add(self, name: str, node: dict[str, Any]) -> None:
        more = {key: node[key] for key in _ALIKE if key in node}
        if isinstance(more.get("join"), dict):
            found = more["join"]
            more["join"] = join(**found)
        if "after" in node:
            more["after"] = self.names(node["after"])
        if "when" in node:
            more["when"] = self.condition(node["when"])
        if "branch" in node:
            more["branch"] = self.branch(node["branch"])
        if "map" in node:
            more["map"] = self.value(node["map"])
        if "loop" in node:
            more["loop"] = self.loop(node["loop"])
        more |= self.failing(node)
        if "with" in node:
            more["with_"] = self.value(node["with"])
        if "timeout" in node:
            more["timeout"] = node["timeout"]
        self.nodes[name] = self.node(name, node, more)

    def node(self, name: str, node: dict[str, Any], more: dict[str, Any]) -> Any:
        if "wait" in node:
            wait = {("for_" if key == "for" else key): self.value(item) for key, item in node["wait"].items()}
            return self.built.wait(name, **more, **wait)
        if "human" in node:
            return self.built.human(name, **more, **self.human(node["human"]))
        if "value" in node:
            return self.built.value(name, self.value(node["value"]), **more)
        if "fail" in node:
            fail = {
                ("class_" if key == "class" else key): self.value(item) for key, item in node["fail"].items()
            }
            return self.built.fail(name, **more, **fail)
        if "end" in node:
            return self.built.end(name, self.value(node["end"].get("result")), **more)
        if "model" in node or "agent" in node:
            return self.asked(name, dict(node.get("model") or node["agent"]), more, "agent" in node)
        if "tool" in node:
            own = {key: node[key] for key in ("replan",) if key in node}
            return self.built.task(name, node["tool"], **more, **own)
        return self.built.workflow(name, node["workflow"], **more)

    def asked(self, name: str, said: dict[str, Any], more: dict[str, Any], is_agent: bool) -> Any:
        model, prompt = said.pop("model" if is_agent else "name"), self.value(said.pop("prompt"))
        make = self.built.agent if is_agent else self.built.model
        return make(name, model, prompt, **said, **more)

    def human(self, human: dict[str, Any]) -> dict[str, Any]:
        as_they_are = {"type", "schema", "expires"}
        return {key: item if key in as_they_are else self.value(item) for key, item in human.items()}

    def names(self, names: Any) -> Any:
        """Nodes may stand in any order: one that is not built yet goes by its name."""
        if isinstance(names, str):
            return self.nodes.get(names, names)
        return [self.nodes.get(name, name) for name in names]

    def branch(self, value: dict[str, Any]) -> Any:
        default = self.names(value["default"]) if "default" in value else None
        if "choose" in value:
            return choose(self.value(value["choose"]), self.names(value["among"]), default)
        rules = [rule(self.condition(item["if"]), self.names(item["then"])) for item in value["rules"]]
        return branch(*rules, default=default)

    def loop(self, value: dict[str, Any]) -> Any:
        more = {
            key: self.names(item) for key, item in value.items() if key not in {"while", "max_iterations"}
        }
        if "max_iterations" in value:
            more["max_iterations"] = value["max_iterations"]
        return loop(self.condition(value["while"]), **more)

    def failing(self, node: dict[str, Any]) -> dict[str, Any]:
        found = {}
        if "failover" in node:
            found["failover"] = _policies(node["failover"], self)
        if "catch" in node:
            found["catch"] = self.catch(node["catch"])
        return found

    def catch(self, value: Any) -> Any:
        if isinstance(value, str) or isinstance(value[0], str):
            return self.names(value)
        return [self.caught(rule) for rule in value]

    def caught(self, value: dict[str, Any]) -> Any:
        more = {f"{key}_" if key in {"if", "class"} else key: item for key, item in value.items()}
        if "if_" in more:
            more["if_"] = self.condition(more["if_"])
        return caught(self.names(more.pop("then")), **more)

    def condition(self, value: Any) -> Any:
        if isinstance(value, str):
            return value
        kind = next(key for key in FIELDS if key in value)
        what = value[kind]
        more = {key: self.value(item) if key == "of" else item for key, item in value.items() if key != kind}
        match kind:
            case "all":
                return all_of(*map(self.condition, what))
            case "any":
                return any_of(*map(self.condition, what))
            case "not":
                return not_(self.condition(what))
            case "compare":
                return compare(self.value(what["left"]), what["operator"], self.value(what["right"]))
            case "python":
                more["needs"] = [self.reference(text) for text in more["needs"]] if "needs" in more else None
        return _ALONE[kind](what, **more)

    def reference(self, text: str) -> Any:
        found = self.value(f"${{{text}}}")
        return text if isinstance(found, str) else found

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return tuple(map(self.value, value))
        found = list(expressions_in(value))
        assert not any(isinstance(error, ExpressionError) for _, error in found)
        if len(found) != 1 or not isinstance(path := found[0][1], Path):
            return value
        reference = self._root(path)
        for step in path.steps[1:] if path.root in {"saga", "loop", "join"} else path.inner:
            reference = None if reference is None else reference[step]
        # Spaces, quotes and texts around it that a person chose stay theirs.
        return reference if reference is not None and str(reference) == value else value

    def _root(self, path: Path) -> Any:
        match path.root:
            case "ctx":
                node = self.nodes.get(path.node)
                field = "maybe" if path.optional else "previous" if path.is_previous else "output"
                return node and getattr(node, field)
            case "output":
                return OUTPUT
            case "saga" | "loop" | "join":
                return getattr(getattr(self.built, path.root), str(path.steps[0]))
            case _:
                return getattr(self.built, path.root)


class _Plain(_Again):
    """With every expression as text."""

    def value(self, value: Any) -> Any:
        return value


# ---- conditions --------------------------------------------------------------------------------------------------

_OF = st.sampled_from(
    ["${output.x}", "${ctx.b.output}", "${input}", "${ctx.b.output?}", "${last_error.code}"]
)
_SIDES = _OF | st.sampled_from(
    [None, 5, "gold", ["${loop.iteration}", "${join.arrived[0]}"], {"x": "a ${output}"}]
)
_CODE = st.sampled_from(["def evaluate(output, context):\n    return True\n", f"cas://sha256/{'0' * 64}"])


def _form(required: dict[str, Any], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


_ALONE_STANDING = (
    st.sampled_from(["output.x >= 80", "ctx.b.output.x == 'gold' && loop.iteration < 3"])
    | _form({"cel": st.just("has(ctx.b.output)")})
    | _form({"jsonpath": st.just("$.x[?@.y > 1]")}, of=_OF)
    | _form({"jsonpath": st.just("$.x"), "operator": st.just("=="), "value": st.none() | st.integers()})
    | _form({"schema": st.sampled_from([{}, {"type": "object"}, True, "done"])}, invert=st.booleans(), of=_OF)
    | _form({"compare": _form({"left": _SIDES, "operator": st.just("!="), "right": _SIDES})})
    | _form(
        {"python": _CODE},
        of=_OF,
        needs=st.lists(st.sampled_from(["ctx.b.output", "input.x"]), max_size=2),
        timeout=st.sampled_from(["1s", 0.5]),
        max_memory_mb=st.just(20),
    )
)
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    _ALONE_STANDING,
    lambda inner: (
        _form({"not": inner})
        | _form({"all": st.lists(inner, min_size=1, max_size=2)})
        | _form({"any": st.lists(inner, min_size=1, max_size=2)})
    ),
    max_leaves=4,
)
