"""boto3 clients for the local run itself: one set per run, called from threads, never retried.

Functions make their own clients from their environment; none of these is handed to them.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from botocore.config import Config
from botocore.loaders import Loader
from botocore.session import Session

from baton.local.aws.ministack import CREDENTIALS, REGION

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

P = ParamSpec("P")
T = TypeVar("T")


class _Descriptions(Loader):
    """Does not look through those of all services to find out that there is one of these."""

    def list_available_services(self, type_name: str) -> list[str]:
        return ["dynamodb", "dynamodbstreams", "events", "s3", "sesv2", "sns", "sqs"]


@functools.cache
def _session() -> Session:
    """One for all runs of a program: it keeps the service descriptions, which take long to read."""
    session = Session()
    session.register_component("data_loader", _Descriptions())
    session.set_credentials(CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    return session


class Aws:
    """The clients, and `call`, which runs one of their methods without holding up the event loop."""

    dynamodb: DynamoDBClient
    streams: DynamoDBStreamsClient
    sqs: SQSClient
    s3: S3Client
    sns: SNSClient

    def __init__(self, endpoint: str) -> None:
        config = Config(
            retries={"total_max_attempts": 1},
            connect_timeout=10,
            read_timeout=60,  # a busy machine takes its time for the first table
            max_pool_connections=64,
            proxies={},  # a proxy of the surrounding shell must not be asked about loopback
            user_agent="baton-local",  # fixed: botocore would put its own together twice for every request
        )
        client: Any = functools.partial(
            _session().create_client, region_name=REGION, endpoint_url=endpoint, config=config
        )
        self._client = client
        self.dynamodb = client("dynamodb")
        self.streams = client("dynamodbstreams")
        self.sqs = client("sqs")
        self.s3 = client("s3")
        self.sns = client("sns")
        # Not asyncio.to_thread's pool: that has cpu + 4 threads, and each long poll holds one for a while.
        self._threads = ThreadPoolExecutor(max_workers=64, thread_name_prefix="baton-local")

    @functools.cached_property
    def sesv2(self) -> SESV2Client:
        """Made when it is needed, which it seldom is: its description takes a while to read."""
        return cast("SESV2Client", self._client("sesv2"))

    @functools.cached_property
    def events(self) -> Any:
        """Made when it is needed, as is `sesv2`."""
        return self._client("events")

    async def call(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        work = functools.partial(method, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
