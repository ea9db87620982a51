"""What a record of the table's stream says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from baton.adapters.dynamo.items import saga_of
from baton.errors import PoisonMessage
from baton.ports import SagaRef, Wake


def image_wake(image: Mapping[str, Any]) -> tuple[SagaRef, Wake]:
    """The saga and the wake of a stream record's new image. Raises `PoisonMessage`."""
    try:
        return saga_of(image["pk"]["S"]), msgspec.json.decode(image["wake"]["S"], type=Wake)
    except (KeyError, TypeError, ValueError) as error:
        raise PoisonMessage(f"no wake in a stream image: {error!r}") from error
