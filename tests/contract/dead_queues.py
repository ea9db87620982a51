"""The dead-letter queue of a backend as the reconciler sees it."""

from __future__ import annotations

from typing import Any

from baton.adapters.memory.queues import MemoryDeadLetters
from baton.adapters.sqs_dead_queue import SqsDeadQueue
from baton.ports.operators import DeadQueue
from tests.contract.stores import Stores


def dead_queue(stores: Stores) -> DeadQueue:
    """It has what is sent to the backend's dead letters."""
    sent: Any = stores.dead_letters
    return sent if isinstance(sent, MemoryDeadLetters) else SqsDeadQueue(sent._client, sent._url)
