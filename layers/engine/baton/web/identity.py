"""The caller and its roles, from verified claims; unsigned requests are limited by address."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.core.outside import USER_PATTERN
from baton.errors import Forbidden, TooManyRequests, Unauthenticated
from baton.ports import Clock
from baton.runtime.engine.request import Caller
from baton.runtime.requests.rates import WINDOW_MS
from baton.settings import ROLES, ApiSettings

_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# No `/`, which parts the names of objects; no word that stands for a value that is none; nor `.` and `..`.
_USER = re.compile(USER_PATTERN)
_TENANT = re.compile(r"(?!(?i:null|nil|none|undefined|true|false|\.{1,2})$)[A-Za-z0-9_.:@+=|-]{1,128}")
_BEARER = re.compile(r"(?:(?i:bearer)\s+)?[\w-]+\.([\w-]+)\.[\w-]+", re.ASCII)
# Whom STS has lent credentials: the name behind it is the caller's own choice, for as long as they are valid.
_SESSION = re.compile(r"(arn:[\w-]+:sts::[0-9]+:(?:assumed-role/[^/]+|federated-user))/(.+)")


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller and its roles. `source` names where the roles come from, for a refusal."""

    caller: Caller
    roles: frozenset[str]
    source: str

    def need(self, any_of: Sequence[str]) -> None:
        """Raise `Forbidden` with the required role, unless the caller has one of these."""
        if self.roles.isdisjoint(any_of):
            wanted = " or ".join(f"`{role}`" for role in any_of)
            have = ", ".join(f"`{role}`" for role in ROLES if role in self.roles) or "none"
            raise Forbidden(f"this needs the role {wanted}; the caller has {have}, from {self.source}")


def identity_of(event: Mapping[str, Any], config: ApiSettings) -> Identity:
    """Return the caller of a payload 2.0 event. Raises `Unauthenticated` if user or tenant is unknown.

    With a JWT, the tenant is its claim `tenant_claim`, the user its `sub`, and the roles are in its claim
    `roles_claim`, or `default_roles` without that claim. Groups are in the claim `groups_claim`. With IAM,
    tenant and user are the account and the principal's ARN. The session name of a role is omitted, because
    the caller chooses it; only the log keeps it. An IAM principal has all roles, because IAM policies govern
    its calls, and no groups.
    """
    session, groups = "", frozenset[str]()
    context = event.get("requestContext") or {}
    authorizer = context.get("authorizer") or {}
    jwt, iam = authorizer.get("jwt"), authorizer.get("iam")
    headers = event.get("headers") or {}
    if jwt:
        claims = jwt.get("claims") or {}
        tenant, user = claims.get(config.tenant_claim), claims.get("sub")
        missing = f"the token needs the claims `sub` and `{config.tenant_claim}`: texts without spaces, the tenant without `/`"
        authorization = str(headers.get("authorization", ""))
        roles, source = _roles(claims, config, authorization)
        groups = frozenset(_words(claims.get(config.groups_claim), config.groups_claim, authorization))
    elif iam:
        tenant, user = iam.get("accountId"), iam.get("userArn")
        if isinstance(user, str) and (lent := _SESSION.fullmatch(user)):
            user, session = lent.groups()
        missing = "the signature names no account and principal"
        roles, source = frozenset(ROLES), "the signature"
    else:
        raise Unauthenticated("send a token: `Authorization: Bearer ...`")
    # Neither empty nor able to be mistaken for another part of a key.
    if not _is(_TENANT, tenant) or not _is(_USER, f"{user}/{session}" if session else user):
        raise Unauthenticated(missing)
    caller = Caller(
        tenant=str(tenant),
        user=str(user),
        session=session,
        request=str(context.get("requestId", "")),
        traceparent=traceparent_of(event),
        roles=roles,
        groups=groups,
    )
    return Identity(caller, roles, source)


def traceparent_of(event: Mapping[str, Any]) -> str:
    """Return the caller's trace context (W3C), empty without one."""
    given = str((event.get("headers") or {}).get("traceparent", ""))
    return given if _TRACEPARENT.fullmatch(given) else ""


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value))


def _roles(claims: Mapping[str, Any], config: ApiSettings, authorization: str) -> tuple[frozenset[str], str]:
    """Return the roles of a token and their origin. Role names of other programs are ignored."""
    given = claims.get(config.roles_claim)
    source = f"the token's claim `{config.roles_claim}`"
    if given is None:
        source = f"the default for tokens without the claim `{config.roles_claim}`"
        given = config.default_roles.replace(",", " ")
    return frozenset(
        word for word in _words(given, config.roles_claim, authorization) if word in ROLES
    ), source


def _words(given: object, claim: str, authorization: str) -> Iterator[str]:
    """Yield the words of a claim: a text separated by spaces, as OAuth scopes, or a list."""
    if isinstance(given, str):
        given = _listed(given, claim, authorization) if given.startswith("[") else given.split()
    for word in given if isinstance(given, list | tuple) else ():
        if isinstance(word, str):
            yield word


def _listed(shown: str, claim: str, authorization: str) -> Sequence[object]:
    """Return the values of a list that API Gateway shows as `[a b]`, where spaces inside values are
    ambiguous.

    The values are read from the verified token. If the token is not available, an ambiguous list with a word
    that is no role yields nothing.
    """
    try:
        token = _BEARER.fullmatch(authorization.strip())
        body = json.loads(urlsafe_b64decode(token[1] + "=" * (-len(token[1]) % 4))) if token else {}
        values = body.get(claim)
    except (ValueError, AttributeError, RecursionError):
        values = None
    if isinstance(values, str):
        return values.split() if values == shown else ()
    if isinstance(values, list):
        return values if f"[{' '.join(map(str, values))}]" == shown else ()
    words = shown.removeprefix("[").removesuffix("]").split(" ")
    return words if shown.endswith("]") and all(word in ROLES for word in words) else ()


MOST_REFUSED = 10
"""Refused requests of an address in ten seconds after which its further requests are not processed."""
MOST_ADDRESSES = 1_000
"""Maximum number of addresses counted separately. Further addresses count as one."""
_OTHERS = ""


class UnsignedRequestLimiter:
    """Counts of refusals by address. By profile, a caller without a secret could block a provider."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = 0
        self._refused: dict[str, int] = {}

    def check(self, address: str) -> None:
        """Raise `TooManyRequests` for an address that was refused too often."""
        now = self._clock.now()
        if (window := now - now % WINDOW_MS) != self._window:
            self._window, self._refused = window, {}
        if self._refused.get(self._known(address), 0) >= MOST_REFUSED:
            seconds = -(-(window + WINDOW_MS - now) // 1_000)
            raise TooManyRequests(
                f"too many requests of this address were not signed; try again in {seconds} s", seconds
            )

    def refused(self, address: str) -> None:
        """Count a refused request of an address."""
        known = self._known(address)
        self._refused[known] = self._refused.get(known, 0) + 1

    def _known(self, address: str) -> str:
        return address if address in self._refused or len(self._refused) < MOST_ADDRESSES else _OTHERS
