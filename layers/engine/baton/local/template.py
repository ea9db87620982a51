"""template.yaml as plain CloudFormation: expanded by SAM, with parameters, conditions and functions
evaluated.
"""

from __future__ import annotations

import base64
import copy
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import yaml

from baton.local.aws import ACCOUNT, REGION
from baton.local.processes import LocalRunError, TemplateProblem, nearest

BUCKET = "baton-local"
_PATHS = ("CodeUri", "ContentUri", "DefinitionUri")


class _AnyPolicy(dict[str, str]):
    """Substitute for the map of AWS managed policies: the local run has no permissions to grant."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return f"arn:aws:iam::aws:policy/{name}"

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


@dataclass(frozen=True)
class Template:
    """The expanded document and the file it came from."""

    path: Path
    document: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.document.get("Parameters") or {}

    @property
    def resources(self) -> Mapping[str, Any]:
        return self.document.get("Resources") or {}

    def of_type(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield logical id and resource of every resource of that type, regardless of conditions."""
        for logical_id, resource in self.resources.items():
            if resource.get("Type") == kind:
                yield logical_id, resource

    def local_path(self, logical_id: str, key: object) -> Path:
        """Return the file or folder of a code location in the template."""
        path = self.path.parent / str(key)
        if not path.exists():
            raise TemplateProblem(
                logical_id, f"{path} does not exist (paths are relative to {self.path.name})"
            )
        return path.resolve()


def load(path: Path, parameters: Mapping[str, Any]) -> Template:
    """Read and expand the template. Raises `LocalRunError` if it is missing or not valid SAM."""
    return Template(path, _expand(path, _read(path), parameters))


def defaults(path: Path) -> dict[str, str]:
    """Return the parameters' defaults, without expansion. Raises as `load` does."""
    declared = _read(path).get("Parameters") or {}
    return {name: str(spec["Default"]) for name, spec in declared.items() if "Default" in spec}


def parse(text: str) -> Any:
    """Return a template with the short forms of intrinsic functions written out. Raises `yaml.YAMLError`."""
    return yaml.load(text, _loader())  # noqa: S506  # a subclass of the safe loader: it builds no objects


@cache
def _loader() -> Any:
    """Return libyaml's loader if PyYAML has it: pure Python takes most of the start."""
    from samtranslator.yaml_helper import (  # type: ignore[import-untyped]  # has no stubs
        intrinsics_multi_constructor,
    )

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("TemplateLoader", (safe,), {})
    loader.add_multi_constructor("!", intrinsics_multi_constructor)
    return loader


def _read(path: Path) -> dict[str, Any]:
    try:
        document = parse(path.read_text("utf-8"))
    except OSError as error:
        raise LocalRunError(f"template: {path} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise LocalRunError(f"template: {path} is not valid YAML: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise LocalRunError(f"template: {path} has no section Resources")
    return document


def _expand(path: Path, document: dict[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    # Imported here: it takes 0.4 s, and MiniStack starts meanwhile.
    from samtranslator.model.exceptions import (  # type: ignore[import-untyped]  # has no stubs
        InvalidDocumentException,
    )
    from samtranslator.parser.parser import Parser  # type: ignore[import-untyped]  # has no stubs
    from samtranslator.translator.translator import (  # type: ignore[import-untyped]  # has no stubs
        Translator,
    )

    logging.getLogger("samtranslator").setLevel(logging.ERROR)  # it warns that its own metrics go nowhere
    document = copy.deepcopy(document)
    for resource in document["Resources"].values():
        properties = resource.get("Properties") if isinstance(resource, dict) else None
        for name in _PATHS:
            if isinstance(properties, dict) and isinstance(properties.get(name), str):
                properties[name] = f"s3://{BUCKET}/{properties[name].removeprefix('./')}"
    declared = document.get("Parameters") or {}
    values = {name: value for name, value in parameters.items() if name in declared}
    translator = Translator(_AnyPolicy(), Parser(), boto_session=boto3.Session(region_name=REGION))
    try:
        expanded: dict[str, Any] = translator.translate(document, values)
    except InvalidDocumentException as error:
        causes = "; ".join(cause.message for cause in error.causes) or error.message
        raise LocalRunError(f"template: {path} is not valid: {causes}") from error
    return expanded


# The property that sets the name; the attributes among them return it too (GetAtt Queue.QueueName).
_NAMES = {
    "AWS::ApiGatewayV2::Stage": ("StageName",),
    "AWS::DynamoDB::Table": ("TableName",),
    "AWS::IAM::Role": ("RoleName",),
    "AWS::Lambda::Function": ("FunctionName",),
    "AWS::Lambda::LayerVersion": ("LayerName",),
    "AWS::Logs::LogGroup": ("LogGroupName",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::Scheduler::Schedule": ("Name",),
    "AWS::StepFunctions::StateMachine": ("StateMachineName", "Name"),
}
_ARNS = {
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{name}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{name}",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{name}",
    "AWS::Lambda::LayerVersion": "arn:aws:lambda:{region}:{account}:layer:{name}:1",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{name}:*",
    "AWS::S3::Bucket": "arn:aws:s3:::{name}",
    "AWS::SNS::Topic": "arn:aws:sns:{region}:{account}:{name}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{name}",
    "AWS::Scheduler::Schedule": "arn:aws:scheduler:{region}:{account}:schedule/default/{name}",
    "AWS::StepFunctions::StateMachine": "arn:aws:states:{region}:{account}:stateMachine:{name}",
}
_REFERENCE_IS_ARN = {"AWS::Lambda::LayerVersion", "AWS::SNS::Topic", "AWS::StepFunctions::StateMachine"}


def naming_properties(kind: str) -> tuple[str, ...]:
    """Return the properties and attributes with the name of such a resource, the property first."""
    return _NAMES.get(kind, ())


def arn_of(kind: str, name: str) -> str | None:
    """Return the ARN, or None for a type whose ARN the local deployment does not need."""
    pattern = _ARNS.get(kind)
    return pattern and pattern.format(region=REGION, account=ACCOUNT, name=name)


def reference_is_arn(kind: str) -> bool:
    """Return true if `Ref` returns the ARN. For most types it returns the name."""
    return kind in _REFERENCE_IS_ARN


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
    """Value of `AWS::NoValue`, which omits the property."""


NO_VALUE = _NoValue()


def scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Resolver:
    """Resolver of functions: `value(node, where)` returns the evaluated node. `where` names it in errors."""

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
            "Fn::Join": lambda node, where: scalar_text(self.value(node[0], where)).join(
                scalar_text(part) for part in self.value(node[1], where)
            ),
            "Fn::Select": self._select,
            "Fn::Split": lambda node, where: self.value(node[1], where).split(self.value(node[0], where)),
            "Fn::FindInMap": self._find_in_map,
            "Fn::Base64": lambda node, where: base64.b64encode(
                scalar_text(self.value(node, where)).encode()
            ).decode(),
            "Fn::If": self._if,
            "Fn::Equals": lambda node, where: (
                scalar_text(self.value(node[0], where)) == scalar_text(self.value(node[1], where))
            ),
            "Fn::Not": lambda node, where: not self._truth(node[0], where),
            "Fn::And": lambda node, where: all(self._truth(part, where) for part in node),
            "Fn::Or": lambda node, where: any(self._truth(part, where) for part in node),
            "Fn::Contains": lambda node, where: (
                scalar_text(self.value(node[1], where))
                in [scalar_text(item) for item in self.value(node[0], where)]
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
                    raise TemplateProblem(where, f"the local run does not support {key}")
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
        """Return all properties of a resource, evaluated."""
        node = self._template.resources[logical_id].get("Properties") or {}
        resolved: dict[str, Any] = self.value(node, logical_id)
        return resolved

    def exists(self, logical_id: str) -> bool:
        """Return true if the resource is declared and its condition, if any, holds."""
        resource = self._template.resources.get(logical_id)
        if resource is None:
            return False
        name = resource.get("Condition")
        return name is None or self.condition(str(name), logical_id)

    # ---- references

    def learn(self, logical_id: str, attribute: str, value: str) -> None:
        """Record a physical id that exists only now. The attribute is `Ref` for the value of `Ref`."""
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
        if attribute in naming_properties(kind):
            return self.name(name)
        arn = arn_of(kind, self.name(name)) if attribute == "Arn" else None
        if arn is None:
            raise TemplateProblem(where, f"GetAtt {name}.{attribute} is not known to the local run ({kind})")
        return arn

    def name(self, logical_id: str) -> str:
        """Return the physical name, given by the template or made from stack and logical id."""
        kind = self._kind(logical_id)
        properties = self._template.resources[logical_id].get("Properties") or {}
        for key in naming_properties(kind):
            if key in properties:
                given = self.value(properties[key], f"{logical_id}.{key}")
                if given is not NO_VALUE:
                    return scalar_text(given)
        made = f"{STACK}-{logical_id}"
        return made.lower() if kind == "AWS::S3::Bucket" else made

    def references(self) -> dict[str, str]:
        """Return the values of `Ref` by logical id, for every existing resource with a known one."""
        known = {}
        for logical_id in self._template.resources:
            if self.exists(logical_id):
                try:
                    known[logical_id] = scalar_text(self.ref(logical_id, logical_id))
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
        return self.attribute(name, scalar_text(self.value(attribute, where)), where)

    def _sub(self, node: Any, where: str) -> str:
        pattern, given = (node, {}) if isinstance(node, str) else (node[0], node[1])

        def replace(match: re.Match[str]) -> str:
            if match[1]:
                return "${" + match[2] + "}"
            name = match[2].strip()
            if name in given:
                return scalar_text(self.value(given[name], where))
            return scalar_text(self._get_att(name, where) if "." in name else self.ref(name, where))

        return _SUBSTITUTION.sub(replace, pattern)

    def _select(self, node: Any, where: str) -> Any:
        index, items = int(self.value(node[0], where)), self.value(node[1], where)
        if index < 0:
            raise ValueError("the index is negative")
        return items[index]

    def _find_in_map(self, node: Any, where: str) -> Any:
        name, first, second = (scalar_text(self.value(part, where)) for part in node[:3])
        table: Any = self._template.document.get("Mappings") or {}
        for key in (name, first, second):
            # Keys that look like numbers are numbers in YAML, and text in CloudFormation.
            table = {scalar_text(known): item for known, item in table.items()}
            if key not in table:
                if len(node) > 3:
                    return self.value(node[3]["DefaultValue"], where)
                raise TemplateProblem(where, f"FindInMap {name}: there is no {key}{nearest(key, table)}")
            table = table[key]
        return table


def effective(
    template: Template, given: Mapping[str, str], trusted: Mapping[str, str]
) -> dict[str, str | list[str]]:
    """Return every declared parameter with its value, as text (lists as lists of text).

    `trusted` values come from the local run: they take precedence, and constraints for deployments (an
    https:// issuer) do not apply to them. Raises `LocalRunError` for an override that the template does not
    declare or allow, and for a parameter without a value.
    """
    declared = template.parameters
    for name in given:
        if name not in declared:
            raise LocalRunError(
                f"parameter {name}: the template declares no such parameter{nearest(name, declared)}"
            )
    values: dict[str, str | list[str]] = {}
    for name, spec in declared.items():
        if name in trusted:
            value = trusted[name]
        elif name in given:
            value = scalar_text(given[name])
            _check(name, spec, value)
        elif "Default" in spec:
            value = scalar_text(spec["Default"])
        else:
            raise LocalRunError(f"parameter {name}: has no default; pass a value")
        kind = str(spec.get("Type", "String"))
        is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
        values[name] = [item.strip() for item in value.split(",")] if is_list else value
    return values


def check_rules(template: Template, resolver: Resolver) -> None:
    """Check the section Rules: every assertion whose rule applies must hold."""
    for name, rule in (template.document.get("Rules") or {}).items():
        where = f"Rules.{name}"
        if "RuleCondition" in rule and not resolver.value(rule["RuleCondition"], where):
            continue
        for assertion in rule.get("Assertions", []):
            if not resolver.value(assertion["Assert"], where):
                raise TemplateProblem(where, assertion.get("AssertDescription", "an assertion does not hold"))


def _check(name: str, spec: Mapping[str, Any], value: str) -> None:
    def refuse(what: str) -> LocalRunError:
        hint = spec.get("ConstraintDescription")
        return LocalRunError(f"parameter {name}: {value!r} {what}" + (f" ({hint})" if hint else ""))

    allowed = [scalar_text(item) for item in spec.get("AllowedValues", [])]
    if allowed and value not in allowed:
        raise refuse(f"is not one of {', '.join(allowed)}")
    pattern = spec.get("AllowedPattern")
    if pattern and re.fullmatch(str(pattern), value) is None:
        raise refuse(f"does not match {pattern}")
    if spec.get("Type") == "Number":
        try:
            number = float(value)
        except ValueError:
            raise refuse("is not a number") from None
        if number < float(spec.get("MinValue", "-inf")):
            raise refuse(f"is less than {spec['MinValue']}")
        if number > float(spec.get("MaxValue", "inf")):
            raise refuse(f"is more than {spec['MaxValue']}")
