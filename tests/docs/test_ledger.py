"""The ledger of what the engine relies on AWS for is whole: rows, tests, services, and every call of the adapters.

Whether AWS says what a row says cannot be tested here; that each row says where, and how sure it is, can.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.docs.pages import ROOT, Page

LEDGER = Page(ROOT / "docs/aws-ledger.md")
ADAPTERS = ROOT / "layers/engine/baton/adapters"
COLUMNS = "| the engine relies on | where AWS says so | how sure | test here | if it were not so |"
LEVELS = {"promised", "measured by others", "believed"}

# What a resource of the template is called in the ledger's headings.
SERVICES = {
    "ApiGatewayV2": "API Gateway",
    "CloudWatch": "CloudWatch",
    "DynamoDB": "DynamoDB",
    "Events": "EventBridge buses",
    "IAM": "IAM",
    "Lambda": "Lambda",
    "Logs": "CloudWatch Logs",
    "S3": "S3",
    "SQS": "SQS",
    "Scheduler": "EventBridge Scheduler",
    "Serverless::Function": "Lambda",
    "Serverless::LayerVersion": "Lambda",
    "Serverless::StateMachine": "Step Functions",
    "SNS": "SNS",
}

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_CALL = re.compile(r"`([a-z0-9]+)\.([a-z0-9_]+)`")


@dataclass(frozen=True)
class LedgerRow:
    """One row of the ledger, its cells as they are written."""

    relies_on: str
    where: str
    how_sure: str
    test: str
    otherwise: str


def rows() -> Iterator[LedgerRow]:
    """The rows of all tables that have the ledger's columns. Fails for a row with another number of cells."""
    inside = False
    for line in LEDGER.text.splitlines():
        if line == COLUMNS:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 5, f"not five cells: {line}"
            yield LedgerRow(*cells)


@cache
def names_of_tests(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.exists():
        return frozenset()
    tree = ast.parse(file.read_text("utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


# -- rows


def test_every_row_fills_every_column() -> None:
    found = list(rows())
    assert len(found) > 80
    assert [row for row in found if "" in vars(row).values()] == []
    assert {row.how_sure for row in found} == LEVELS


def test_a_promise_names_a_page_of_aws_and_what_names_none_is_no_promise() -> None:
    for row in rows():
        if row.how_sure == "promised":
            assert "](https://docs.aws.amazon.com/" in row.where, row.relies_on
        if row.where == "–":
            assert row.how_sure != "promised", row.relies_on


def test_every_test_that_a_row_names_exists() -> None:
    named = {test for row in rows() for test in _TEST.findall(row.test)}
    assert len(named) > 80
    assert [f"{path}::{name}" for path, name in sorted(named) if name not in names_of_tests(path)] == []


def test_a_row_without_a_test_says_so() -> None:
    silent = [
        row.relies_on for row in rows() if not _TEST.search(row.test) and not row.test.startswith("none")
    ]
    assert silent == []


# -- nothing is left out


def test_every_service_of_the_template_has_its_part() -> None:
    template = (ROOT / "template.yaml").read_text("utf-8")
    kinds = set(re.findall(r"^ +Type: AWS::(\w+)::(\w+)$", template, re.MULTILINE))
    assert len(kinds) > 10
    headings = " ".join(re.findall(r"^## (.+)$", LEDGER.text, re.MULTILINE))
    for service, kind in sorted(kinds):
        name = SERVICES.get(f"{service}::{kind}") or SERVICES.get(service)
        assert name, f"AWS::{service}::{kind} is new: say in SERVICES what the ledger calls it"
        assert re.search(rf"\b{name}\b", headings), f"the ledger has no part for {name}"


def test_every_call_of_the_adapters_has_a_row() -> None:
    calls = {call for path in sorted(ADAPTERS.rglob("*.py")) for call in calls_in(path.read_text("utf-8"))}
    services = {
        "dynamodb",
        "s3",
        "sqs",
        "sns",
        "sesv2",
        "events",
        "lambda",
        "ssm",
        "secretsmanager",
        "s3vectors",
    }
    assert {service for service, _ in calls} == services
    listed = {call for row in rows() for cell in vars(row).values() for call in _CALL.findall(cell)}
    assert sorted(calls - listed) == []


def calls_in(source: str) -> set[tuple[str, str]]:
    """(service, method) of each call on a boto3 client, whose type is that of the parameter it came by.

    A client is `self._client` of a class, or a parameter of a function; both are annotated `<Service>Client`.
    """
    found = set()
    tree = ast.parse(source)
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef):
            service = _service_of([part for part in owner.body if _is_init(part)])
        else:
            service = _service_of([owner])
        for node in ast.walk(owner):
            match node:
                case ast.Call(func=ast.Attribute(value=target, attr=method)):
                    if ast.unparse(target) in {"client", "self._client"}:
                        assert service, f"a client without an annotation calls {method}"
                        found.add((service, method))
    return found


def _is_init(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == "__init__"


def _service_of(nodes: list[ast.stmt]) -> str:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            for argument in node.args.args:
                kind = ast.unparse(argument.annotation) if argument.annotation else ""
                if kind.endswith("Client"):
                    return kind.removesuffix("Client").lower()
    return ""


def test_a_new_call_would_be_seen() -> None:
    source = """
class Adapter:
    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client

    def purge(self) -> None:
        self._client.purge_queue(QueueUrl="")

def scan(client: DynamoDBClient) -> None:
    client.scan(TableName="")
"""
    assert calls_in(source) == {("sqs", "purge_queue"), ("dynamodb", "scan")}
    with pytest.raises(AssertionError, match="without an annotation"):
        calls_in("def scan(client):\n    client.scan()")
