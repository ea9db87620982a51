"""Evaluates CloudFormation's intrinsic functions, parameters and conditions of an expanded template.

Knows no AWS call: what only exists after creation (queue URLs, stream ARNs, the API's address) is told
to it with `learn`. What resources are called is in naming.py.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from baton.local.aws.ministack import ACCOUNT, REGION
from baton.local.processes.problems import TemplateProblem, nearest
from baton.local.template.naming import arn_of, names_of, reference_is_arn
from baton.local.template.template import Template

STACK = "baton"
_PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{STACK}/local",
    "AWS::StackName": STACK,
    "AWS::URLSuffix": "amazonaws.com",
}
_SUBSTITUTION = re.compile(r"\$\{(!?)([^}]*)\}")


class _NoValue:
    """The value of `AWS::NoValue`: whatever holds it is left out."""


NO_VALUE = _NoValue()


def text(value: Any) -> str:
    """A scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Resolver:
    """`value(node, where)` is the node with every function evaluated; `where` names it in errors."""

    def __init__(self, template: Template, parameters: Mapping[str, Any]) -> None:
        self._template = template
        self._parameters = parameters
        self._learned: dict[tuple[str, str], str] = {}
        self._conditions: dict[str, bool] = {}
        self._functions: dict[str, Callable[[Any, str], Any]] = {
            "Ref": lambda node, where: self.ref(str(node), where),
            "Condition": lambda node, where: self.condition(str(node), where),
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": lambda node, where: text(self.value(node[0], where)).join(
                text(part) for part in self.value(node[1], where)
            ),
            "Fn::Select": self._select,
            "Fn::Split": lambda node, where: self.value(node[1], where).split(self.value(node[0], where)),
            "Fn::FindInMap": self._find_in_map,
            "Fn::Base64": lambda node, where: base64.b64encode(
                text(self.value(node, where)).encode()
            ).decode(),
            "Fn::If": self._if,
            "Fn::Equals": lambda node, where: (
                text(self.value(node[0], where)) == text(self.value(node[1], where))
            ),
            "Fn::Not": lambda node, where: not self._truth(node[0], where),
            "Fn::And": lambda node, where: all(self._truth(part, where) for part in node),
            "Fn::Or": lambda node, where: any(self._truth(part, where) for part in node),
            "Fn::Contains": lambda node, where: (
                text(self.value(node[1], where)) in [text(item) for item in self.value(node[0], where)]
            ),
        }

    # ---- values

    def value(self, node: Any, where: str) -> Any:
        if isinstance(node, dict):
            if len(node) == 1:
                ((key, argument),) = node.items()
                if key in self._functions and (key != "Condition" or isinstance(argument, str)):
                    return self._apply(key, argument, where)
                if isinstance(key, str) and key.startswith("Fn::"):
                    raise TemplateProblem(where, f"{key} is not evaluated by the local run")
            pairs = ((key, self.value(item, f"{where}.{key}")) for key, item in node.items())
            return {key: item for key, item in pairs if item is not NO_VALUE}
        if isinstance(node, list):
            items = (self.value(item, f"{where}[{index}]") for index, item in enumerate(node))
            return [item for item in items if item is not NO_VALUE]
        return node

    def _apply(self, key: str, argument: Any, where: str) -> Any:
        try:
            return self._functions[key](argument, where)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise TemplateProblem(where, f"{key} with the argument {argument!r}: {error!r}") from error

    def properties(self, logical_id: str) -> dict[str, Any]:
        """All properties of a resource, evaluated."""
        node = self._template.resources[logical_id].get("Properties") or {}
        resolved: dict[str, Any] = self.value(node, logical_id)
        return resolved

    def exists(self, logical_id: str) -> bool:
        """Whether the resource is declared and its condition, if it has one, holds."""
        resource = self._template.resources.get(logical_id)
        if resource is None:
            return False
        name = resource.get("Condition")
        return name is None or self.condition(str(name), logical_id)

    # ---- references

    def learn(self, logical_id: str, attribute: str, value: str) -> None:
        """A physical id that only exists now; the attribute is `Ref` for what `Ref` returns."""
        self._learned[logical_id, attribute] = value

    def ref(self, name: str, where: str) -> Any:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name in self._parameters:
            return self._parameters[name]
        self._must_exist(name, where)
        learned = self._learned.get((name, "Ref"))
        if learned is not None:
            return learned
        kind = self._kind(name)
        if kind in {"AWS::SQS::Queue", "AWS::ApiGatewayV2::Api"}:
            raise TemplateProblem(where, f"Ref {name} is not known before it has been created")
        return self.attribute(name, "Arn", where) if reference_is_arn(kind) else self.name(name)

    def attribute(self, name: str, attribute: str, where: str) -> Any:
        self._must_exist(name, where)
        learned = self._learned.get((name, attribute))
        if learned is not None:
            return learned
        kind = self._kind(name)
        if attribute in names_of(kind):
            return self.name(name)
        arn = arn_of(kind, self.name(name)) if attribute == "Arn" else None
        if arn is None:
            raise TemplateProblem(where, f"GetAtt {name}.{attribute} is not known to the local run ({kind})")
        return arn

    def name(self, logical_id: str) -> str:
        """The physical name: the one the template gives, else made from stack and logical id."""
        kind = self._kind(logical_id)
        properties = self._template.resources[logical_id].get("Properties") or {}
        for key in names_of(kind):
            if key in properties:
                given = self.value(properties[key], f"{logical_id}.{key}")
                if given is not NO_VALUE:
                    return text(given)
        made = f"{STACK}-{logical_id}"
        return made.lower() if kind == "AWS::S3::Bucket" else made

    def references(self) -> dict[str, str]:
        """Logical id to the value of its `Ref`, for every resource that exists and has one that is known."""
        known = {}
        for logical_id in self._template.resources:
            if self.exists(logical_id):
                try:
                    known[logical_id] = text(self.ref(logical_id, logical_id))
                except TemplateProblem:
                    continue
        return known

    def _kind(self, logical_id: str) -> str:
        return str(self._template.resources[logical_id].get("Type", ""))

    def _must_exist(self, name: str, where: str) -> None:
        if name not in self._template.resources:
            known = [*self._template.resources, *self._parameters, *_PSEUDO]
            raise TemplateProblem(where, f"there is no parameter or resource {name}{nearest(name, known)}")
        if not self.exists(name):
            raise TemplateProblem(where, f"{name} is not created: its condition does not hold")

    # ---- functions

    def condition(self, name: str, where: str) -> bool:
        if name not in self._conditions:
            declared = self._template.document.get("Conditions") or {}
            if name not in declared:
                raise TemplateProblem(where, f"there is no condition {name}{nearest(name, declared)}")
            self._conditions[name] = self._truth(declared[name], f"Conditions.{name}")
        return self._conditions[name]

    def _truth(self, node: Any, where: str) -> bool:
        value = self.value(node, where)
        if not isinstance(value, bool):
            raise TemplateProblem(where, f"{value!r} is not a condition")
        return value

    def _if(self, node: Any, where: str) -> Any:
        name, then, otherwise = node
        return self.value(then if self.condition(name, where) else otherwise, where)

    def _get_att(self, node: Any, where: str) -> Any:
        name, attribute = node.split(".", 1) if isinstance(node, str) else (node[0], node[1])
        return self.attribute(name, text(self.value(attribute, where)), where)

    def _sub(self, node: Any, where: str) -> str:
        pattern, given = (node, {}) if isinstance(node, str) else (node[0], node[1])

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return "${" + match[2] + "}"
            name = match[2].strip()
            if name in given:
                return text(self.value(given[name], where))
            return text(self._get_att(name, where) if "." in name else self.ref(name, where))

        return _SUBSTITUTION.sub(replace, pattern)

    def _select(self, node: Any, where: str) -> Any:
        index, items = int(self.value(node[0], where)), self.value(node[1], where)
        if index < 0:
            raise ValueError("the index is negative")
        return items[index]

    def _find_in_map(self, node: Any, where: str) -> Any:
        name, first, second = (text(self.value(part, where)) for part in node[:3])
        table: Any = self._template.document.get("Mappings") or {}
        for key in (name, first, second):
            # Keys that look like numbers are numbers in YAML, and text in CloudFormation.
            table = {text(known): item for known, item in table.items()}
            if key not in table:
                if len(node) > 3:
                    return self.value(node[3]["DefaultValue"], where)
                raise TemplateProblem(where, f"FindInMap {name}: there is no {key}{nearest(key, table)}")
            table = table[key]
        return table
