"""The store on DynamoDB: every port on one table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.definitions import DynamoDefinitions, DynamoRates
from baton.adapters.dynamo.effects import DynamoCheckpoints, DynamoEffects, DynamoEntities
from baton.adapters.dynamo.log import DynamoInbox, DynamoLive, DynamoLog
from baton.adapters.dynamo.people import DynamoNoticeRecord, DynamoQuestions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.definitions import DynamoSubscriptions
    from baton.adapters.dynamo.letters import DynamoLetters
    from baton.adapters.dynamo.operators import DynamoBreakers, DynamoSchedules
    from baton.ports.outside import Facts


class DynamoStore:
    """`Store` on one table; `shards` are those of its log. `vectors`: client and ARN of an index of
    facts in Amazon S3 Vectors.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        table: str,
        shards: int = 1,
        cell: int = 0,
        status_shards: int | None = None,
        vectors: tuple[Any, str] | None = None,
    ) -> None:
        self.cell, self._client, self._table, self._vectors = cell, client, table, vectors
        self.log = DynamoLog(client, table, shards, cell=cell, status_shards=status_shards)
        self.limits = self.log.limits
        self.inbox = DynamoInbox(client, table)
        self.definitions = DynamoDefinitions(client, table)
        self.effects = DynamoEffects(client, table)
        self.budgets = DynamoBudgets(client, table)
        self.rates = DynamoRates(client, table)
        self.notice_record = DynamoNoticeRecord(client, table)
        self.questions = DynamoQuestions(client, table, self.log.table_of)
        self.entities = DynamoEntities(client, table)
        self.checkpoints = DynamoCheckpoints(client, table)
        self.live = DynamoLive(client, table, self.log.table_of)

    @cached_property
    def facts(self) -> Facts:
        """Loaded with the first fact of a user."""
        from baton.adapters.facts import IndexedFacts, StoredFacts

        return (
            StoredFacts(self.checkpoints)
            if self._vectors is None
            else IndexedFacts(self.checkpoints, *self._vectors)
        )

    @cached_property
    def letters(self) -> DynamoLetters:
        """Imported when there are any: no worker needs them."""
        from baton.adapters.dynamo.letters import DynamoLetters

        return DynamoLetters(self._client, self._table)

    @cached_property
    def breakers(self) -> DynamoBreakers:
        """Loaded with the first call that has a breaker."""
        from baton.adapters.dynamo.operators import DynamoBreakers

        return DynamoBreakers(self._client, self._table)

    @cached_property
    def schedules(self) -> DynamoSchedules:
        """Loaded with the first wake that names a schedule, and by who registers or shows one."""
        from baton.adapters.dynamo.operators import DynamoSchedules

        return DynamoSchedules(self._client, self._table, self.limits.due_shards)

    @cached_property
    def subscriptions(self) -> DynamoSubscriptions:
        """Loaded with the first event from outside, and by who registers a document with rules for them."""
        from baton.adapters.dynamo.definitions import DynamoSubscriptions

        return DynamoSubscriptions(self._client, self._table)
