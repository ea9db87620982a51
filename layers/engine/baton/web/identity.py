"""Who is calling: from what API Gateway's authorizer verified, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from baton.errors import Unauthenticated
from baton.runtime.service import Caller

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TENANT = re.compile(r"[A-Za-z0-9_.:@/+=|-]{1,128}")
_USER = re.compile(r"[A-Za-z0-9_.:@/+=|,-]{1,640}")  # as long as the ARN of a user with the longest path


def caller_of(event: Mapping[str, Any], tenant_claim: str) -> Caller:
    """The caller of a payload 2.0 event. Raises `Unauthenticated` when user or tenant is not known.

    With a JWT the tenant is its claim `tenant_claim` and the user its `sub`; with IAM they are the
    account and the principal's ARN.
    """
    context = event.get("requestContext") or {}
    authorizer = context.get("authorizer") or {}
    jwt, iam = authorizer.get("jwt"), authorizer.get("iam")
    if jwt:
        claims = jwt.get("claims") or {}
        tenant, user = claims.get(tenant_claim), claims.get("sub")
        missing = f"the token needs the claims `sub` and `{tenant_claim}`, both without spaces"
    elif iam:
        tenant, user = iam.get("accountId"), iam.get("userArn")
        missing = "the signature names no account and principal"
    else:
        raise Unauthenticated("send a token: `Authorization: Bearer ...`")
    # Neither empty nor able to be mistaken for another part of a key.
    if not _is(_TENANT, tenant) or not _is(_USER, user):
        raise Unauthenticated(missing)
    headers = event.get("headers") or {}
    given = str(headers.get("traceparent", ""))
    return Caller(
        tenant=str(tenant),
        user=str(user),
        request=str(context.get("requestId", "")),
        traceparent=given if _TRACEPARENT.fullmatch(given) else "",
    )


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value))
