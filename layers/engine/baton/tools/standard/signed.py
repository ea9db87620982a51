"""Who asks, said so that the receiver can tell: tenant, saga and time, signed with the key of the deployment.

What the receiver does with it is in docs/tools.md. Nothing that a document says gets into these headers, but the saga's id.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from baton.ports import StepContext, StepFailure
from baton.tools.standard.kit import Services

NAMES: Final = ("Baton-Tenant", "Baton-Saga", "Baton-Time", "Baton-Signature")


def signed(services: Services, context: StepContext, *parts: str, content: bytes) -> dict[str, str]:
    """The headers for a request that these parts and this content make. Raises `StepFailure` without a key."""
    if not services.signing_key:
        what = "nothing to sign it with: set `SigningKey` of the deployment, and give the receiver the same"
        raise StepFailure("input_invalid", what)
    said = [context.tenant, context.saga, str(services.clock.now() // 1_000)]
    whole = "\n".join(("v1", *said, *parts, hashlib.sha256(content).hexdigest()))
    proof = hmac.new(services.signing_key.encode(), whole.encode(), hashlib.sha256).hexdigest()
    return dict(zip(NAMES, (*said, f"v1={proof}"), strict=True))
