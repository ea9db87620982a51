"""Reading the body of a message on the queue of wakes."""

from __future__ import annotations

import msgspec

from baton.errors import PoisonMessage
from baton.ports import Message, SagaRef


def read_message(body: str) -> Message:
    """Raises `PoisonMessage` for a message that no delivery will make readable."""
    try:
        message = msgspec.json.decode(body, type=Message)
        SagaRef.parse(message.saga)
    except (msgspec.DecodeError, ValueError) as error:
        raise PoisonMessage(f"not a wake: {error}") from error
    if message.v < 0:
        raise PoisonMessage(f"not a wake: version {message.v}")
    return message
