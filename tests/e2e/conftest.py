"""What the modules of this folder share: one deployment with everything switched on, and one embedded AWS.

Starting and stopping only.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.deployment import GRACE_MS, TENANT, VISIBILITY_S, WORKER_TIMEOUT_S, Deployment
from tests.e2e.store import Store
from tests.kit import ministack


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Stream, queue and schedule on; the schedule is slow, so that hand-overs are the stream's and the queue's."""
    parameters = {
        "WorkerTimeout": str(WORKER_TIMEOUT_S),
        "WakeVisibility": str(VISIBILITY_S),
        "LeaseGraceMs": str(GRACE_MS),
        "Shards": "2",  # each is a process of the reconciler
        "ClockSkewMs": "200",  # one machine, one clock
        "MailFrom": "desk@lantern.example",
        "GroupMailTo": "{name}@lists.example",
        "EventBusName": "default",
        "EventTenant": TENANT,
        "EventSources": "shop",
        "StandardTools": "std.notify",
        "OperatorTenant": TENANT,
        "SigningKey": "the-key-of-every-test-and-of-nothing-else",
        # No request is refused for being quick: what is counted is for tests/handlers to say.
        "TenantRateLimit": "0",
        "ApiRateLimit": "10000",
        "ApiBurstLimit": "5000",
    }
    with Deployment(tmp_path_factory.mktemp("everything"), parameters, schedule_period_s=20) as deployment:
        yield deployment


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Table, bucket and queues on MiniStack, without any function."""
    folder = tmp_path_factory.mktemp("store")
    with ministack.running(folder) as address, Store(address, folder) as store:
        yield store
