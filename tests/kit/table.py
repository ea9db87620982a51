"""The saga table for tests, with the properties that `template.yaml` gives it.

It reads the template, so that there is no second description of keys, indexes and stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.kit.ministack import patient

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CreateBucketConfigurationTypeDef

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
_AS_THEY_ARE = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "BillingMode")


class _CloudFormation(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's, if PyYAML has it
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
    indexes = request["GlobalSecondaryIndexes"]
    said = [{key: value for key, value in index.items() if value is not None} for index in indexes]
    request["GlobalSecondaryIndexes"] = said
    request["StreamSpecification"] = {"StreamEnabled": True} | properties["StreamSpecification"]
    client = patient(client)
    try:
        made = client.create_table(TableName=name, **request)["TableDescription"]
    except client.exceptions.ResourceInUseException:  # it has asked again, after an answer that did not come
        made = client.describe_table(TableName=name)["Table"]
    return made["LatestStreamArn"]


def create_bucket(client: S3Client, name: str) -> None:
    where: CreateBucketConfigurationTypeDef = {"LocationConstraint": "eu-central-1"}
    client = patient(client)
    with suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=name, CreateBucketConfiguration=where)
