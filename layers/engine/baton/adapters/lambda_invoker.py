"""Starts worker invocations directly, by Lambda's asynchronous invoke.

Which sagas, and how many to an invocation, is the runtime's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import translated
from baton.ports import Message

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaInvoker:
    """`Invoker` for one function."""

    def __init__(self, client: LambdaClient, function: str) -> None:
        self._client = client
        self._function = function

    def invoke(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        with translated():
            self._client.invoke(
                FunctionName=self._function,
                InvocationType="Event",
                Payload=msgspec.json.encode({"wakes": list(messages)}),
            )
