"""`Rates` on DynamoDB: one item for each tenant and window, counted up by one update without a condition.

The items expire by the table's TTL. What may be let through is decided in runtime/rates.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from baton.adapters.aws import translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_KEPT_S = 3_600
_SPEND = "SET #ttl = :ttl ADD #spent :count"


class DynamoRates:
    """`Rates` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def spend(self, tenant: str, window: int, count: int) -> int:
        with translated():
            answer = self._client.update_item(
                TableName=self._table,
                Key=items.key(items.rate_pk(tenant), items.rate_sk(window)),
                UpdateExpression=_SPEND,
                ExpressionAttributeNames=names_in(_SPEND),
                ExpressionAttributeValues={
                    ":count": number(count),
                    ":ttl": number(window // 1_000 + _KEPT_S),
                },
                ReturnValues="UPDATED_OLD",
            )
        before = answer.get("Attributes", {})
        return int(before["spent"]["N"]) if "spent" in before else 0
