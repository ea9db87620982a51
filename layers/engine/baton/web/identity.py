"""Who is calling, and as what: from what API Gateway's authorizer verified, and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.errors import Forbidden, Unauthenticated
from baton.runtime.request import Caller
from baton.settings import ROLES, ApiSettings

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TENANT = re.compile(r"[A-Za-z0-9_.:@/+=|-]{1,128}")
_USER = re.compile(r"[A-Za-z0-9_.:@/+=|,-]{1,640}")  # as long as the ARN of a user with the longest path
_OBJECT = ("map[", "{")  # how a claim begins that is an object: what it says of a role is not known
_WORDS = re.compile(r"[^\s,\"\[\]]+")


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller and its roles; `source` says where the roles were read, for whoever lacks one."""

    caller: Caller
    roles: frozenset[str]
    source: str

    def need(self, any_of: Sequence[str]) -> None:
        """Raises `Forbidden`, naming the role that is needed, unless the caller has one of these."""
        if self.roles.isdisjoint(any_of):
            wanted = " or ".join(f"`{role}`" for role in any_of)
            have = ", ".join(f"`{role}`" for role in ROLES if role in self.roles) or "none"
            raise Forbidden(f"this needs the role {wanted}; the caller has {have}, from {self.source}")


def identity_of(event: Mapping[str, Any], config: ApiSettings) -> Identity:
    """The caller of a payload 2.0 event. Raises `Unauthenticated` when user or tenant is not known.

    With a JWT the tenant is its claim `tenant_claim`, the user its `sub`, and the roles are in its claim
    `roles_claim`, or `default_roles` if it has none. With IAM tenant and user are the account and the
    principal's ARN, and every role is given: what a principal may call is the business of IAM policies.
    """
    context = event.get("requestContext") or {}
    authorizer = context.get("authorizer") or {}
    jwt, iam = authorizer.get("jwt"), authorizer.get("iam")
    if jwt:
        claims = jwt.get("claims") or {}
        tenant, user = claims.get(config.tenant_claim), claims.get("sub")
        missing = f"the token needs the claims `sub` and `{config.tenant_claim}`, both without spaces"
        roles, source = _roles(claims, config)
    elif iam:
        tenant, user = iam.get("accountId"), iam.get("userArn")
        missing = "the signature names no account and principal"
        roles, source = frozenset(ROLES), "the signature"
    else:
        raise Unauthenticated("send a token: `Authorization: Bearer ...`")
    # Neither empty nor able to be mistaken for another part of a key.
    if not _is(_TENANT, tenant) or not _is(_USER, user):
        raise Unauthenticated(missing)
    headers = event.get("headers") or {}
    given = str(headers.get("traceparent", ""))
    caller = Caller(
        tenant=str(tenant),
        user=str(user),
        request=str(context.get("requestId", "")),
        traceparent=given if _TRACEPARENT.fullmatch(given) else "",
        roles=roles,
    )
    return Identity(caller, roles, source)


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value))


def _roles(claims: Mapping[str, Any], config: ApiSettings) -> tuple[frozenset[str], str]:
    """The roles of a token, and where they are from. What is no role of ours is another program's business.

    API Gateway hands a claim that is a list on as the text `[a b]`; issuers also write lists with spaces
    or commas.
    """
    given = claims.get(config.roles_claim)
    source = f"the token's claim `{config.roles_claim}`"
    if given is None:
        given, source = (
            config.default_roles,
            f"the default for tokens without the claim `{config.roles_claim}`",
        )
    if isinstance(given, str):
        given = () if given.startswith(_OBJECT) else _WORDS.findall(given)
    words = given if isinstance(given, list | tuple) else ()
    return frozenset(word for word in words if word in ROLES), source
