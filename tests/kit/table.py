"""The saga table for tests, with the properties that `template.yaml` gives it.

It reads the template, so that there is no second description of keys, indexes and stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
_AS_THEY_ARE = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")


class _CloudFormation(yaml.SafeLoader):
    """Plain YAML, with every `!Ref` and its like as None: a table's properties need none of them."""


_CloudFormation.add_multi_constructor("!", lambda loader, suffix, node: None)


@cache
def table_properties(logical_id: str = "SagaTable") -> Mapping[str, Any]:
    with TEMPLATE.open() as template:
        # A subclass of SafeLoader: it builds no objects.
        resources = yaml.load(template, _CloudFormation)["Resources"]
    properties: Mapping[str, Any] = resources[logical_id]["Properties"]
    return properties


def create_table(client: DynamoDBClient, name: str) -> str:
    """Create it under `name` and return the ARN of its stream."""
    properties = table_properties()
    request: dict[str, Any] = {key: properties[key] for key in _AS_THEY_ARE}
    request["StreamSpecification"] = {"StreamEnabled": True} | properties["StreamSpecification"]
    made = client.create_table(TableName=name, **request)
    return made["TableDescription"]["LatestStreamArn"]
