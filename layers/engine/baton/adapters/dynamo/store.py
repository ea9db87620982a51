"""The store on DynamoDB: every port on one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.definitions import DynamoDefinitions
from baton.adapters.dynamo.effects import DynamoEffects
from baton.adapters.dynamo.entities import DynamoEntities
from baton.adapters.dynamo.log import DynamoLog
from baton.adapters.dynamo.notices import DynamoNotices
from baton.adapters.dynamo.rates import DynamoRates

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoStore:
    """`Store` on one table; each of its indexes is spread over `shards` partitions."""

    def __init__(self, client: DynamoDBClient, table: str, shards: int = 1) -> None:
        self.log = DynamoLog(client, table, shards)
        self.limits = self.log.limits
        self.definitions = DynamoDefinitions(client, table)
        self.effects = DynamoEffects(client, table)
        self.budgets = DynamoBudgets(client, table)
        self.rates = DynamoRates(client, table)
        self.incidents = DynamoNotices(client, table)
        self.entities = DynamoEntities(client, table)
