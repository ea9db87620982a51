"""The template as CloudFormation would see it: expanded by the SAM translator, parameters filled in.

Reading and resolving is the local run's own (baton.local): what these tests look at is what runs. No
assertions here.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from baton.local.template import Resolver, Template, effective, load, parse

ROOT = Path(__file__).parents[2]
FUNCTIONS = {
    "api": "ApiFunction",
    "worker": "WorkerFunction",
    "relay": "RelayFunction",
    "reconciler": "ReconcilerFunction",
}


@cache
def as_written() -> dict[str, Any]:
    """The template before the translator: it drops what only `sam build` reads."""
    document: dict[str, Any] = parse((ROOT / "template.yaml").read_text("utf-8"))
    return document


class Stack:
    """All resources with their properties resolved; names and ARNs are those of the local account."""

    def __init__(self, template: Template, values: dict[str, Any]) -> None:
        self.template = template
        self.parameters = values
        self.resolver = Resolver(template, values)
        for logical_id, _ in template.of_type("AWS::SQS::Queue"):
            self.resolver.learn(logical_id, "Ref", f"https://sqs.test/{logical_id}")
        for logical_id, _ in template.of_type("AWS::ApiGatewayV2::Api"):
            self.resolver.learn(logical_id, "Ref", logical_id)
            self.resolver.learn(logical_id, "ApiEndpoint", f"https://{logical_id}.test")
        for logical_id, _ in template.of_type("AWS::DynamoDB::Table"):
            stream = f"{self.arn(logical_id)}/stream/now"
            self.resolver.learn(logical_id, "StreamArn", stream)
        for kind in ("Integration", "Authorizer"):
            for logical_id, _ in template.of_type(f"AWS::ApiGatewayV2::{kind}"):
                self.resolver.learn(logical_id, "Ref", logical_id)

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties by logical id, of the resources whose condition holds."""
        ids = [
            logical_id for logical_id, _ in self.template.of_type(kind) if self.resolver.exists(logical_id)
        ]
        return {logical_id: self.resolver.properties(logical_id) for logical_id in ids}

    def properties(self, logical_id: str) -> dict[str, Any]:
        return self.resolver.properties(logical_id)

    def arn(self, logical_id: str) -> str:
        return str(self.resolver.attribute(logical_id, "Arn", "test"))

    def variables(self, function: str) -> dict[str, str]:
        """Environment variables of a function, by its short name."""
        found = self.properties(FUNCTIONS[function])["Environment"]["Variables"]
        return {name: str(value) for name, value in found.items()}


@cache
def _template() -> Template:
    """Expanded once: the translator leaves references to parameters as they are."""
    return load(ROOT / "template.yaml", {})


@cache
def stack(**given: str) -> Stack:
    """The stack with these parameters, the template's defaults for the rest."""
    return Stack(_template(), effective(_template(), given, {}))
