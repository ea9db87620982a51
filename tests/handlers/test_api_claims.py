"""What each claim of a token grants: roles and tenants are exact values, as the issuer wrote them."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from baton.errors import Unauthenticated
from baton.local.gateway import claims_as_text
from baton.settings import ROLES
from baton.web.identity import Identity, identity_of
from tests.handlers.deployment import payload
from tests.handlers.test_api_roles import config


def part(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def identity(
    claims: dict[str, Any], *, scheme: str = "Bearer ", token: Any = None, **changes: Any
) -> Identity:
    """Of a token with these claims, as it comes through API Gateway. token: another one in the header."""
    event = payload("api", "show")
    known = event["requestContext"]["authorizer"]["jwt"]["claims"] | {"roles": None} | claims
    known = {name: value for name, value in known.items() if name != "roles" or name in claims}
    event["requestContext"]["authorizer"]["jwt"]["claims"] = claims_as_text(known)
    event["headers"]["authorization"] = f"{scheme}{part({})}.{part(token or known)}.c2ln"
    return identity_of(event, config(**changes))


BOTH, NONE = {"read", "run"}, set[str]()
# The claim as the issuer wrote it, and what it grants where a token without it would grant everything.
CLAIMS: list[tuple[Any, set[str]]] = [
    (["read", "run"], BOTH),
    (["read", "run", "read"], BOTH),
    (["read", "admin", "run", "READ", "superuser"], BOTH),
    (["read", 7, "run"], BOTH),
    ("read run", BOTH),
    ("  read   run ", BOTH),
    ("openid read email run", BOTH),
    (["operate"], {"operate"}),
    ("operate", {"operate"}),
    (["cannot operate"], NONE),
    (["read operate"], NONE),
    (["read run answer operate"], NONE),
    (["not", "operate "], NONE),
    (["operate]", "[operate"], NONE),
    ([["operate"]], NONE),
    ([{"operate": True}], NONE),
    (["operate,read"], NONE),
    (["Operate", "OPERATE", "operates", "operate\u200b", "\uff4fperate"], NONE),
    ("read,run", NONE),
    ("read;run", NONE),
    ("[operate]", NONE),
    ("[read operate]", NONE),
    ('["operate"]', NONE),
    ('"operate"', NONE),
    ("operate.all", NONE),
    ("no-operate", NONE),
    ("admin", NONE),
    ("readonly", NONE),
    ("*", NONE),
    ("", NONE),
    ([], NONE),
    ([""], NONE),
    ([None], NONE),
    ([True], NONE),
    (None, NONE),
    (True, NONE),
    (False, NONE),
    (7, NONE),
    (1.5, NONE),
    ({"operate": True}, NONE),
    ({"roles": ["operate"]}, NONE),
    ({"denied": "read operate"}, NONE),
]


@pytest.mark.parametrize(("claim", "granted"), CLAIMS, ids=[repr(claim) for claim, _ in CLAIMS])
def test_a_claim_grants_the_roles_that_it_names_exactly(claim: Any, granted: set[str]) -> None:
    for scheme in ("Bearer ", "bearer ", "BEARER  ", ""):
        found = identity({"roles": claim}, scheme=scheme, default_roles=" ".join(ROLES))
        assert found.roles == granted


@pytest.mark.parametrize(
    ("shown", "granted"),
    [
        ("[read run]", BOTH),
        ("[operate]", {"operate"}),
        ("[cannot operate]", NONE),
        ("[read admin]", NONE),
        ("[read run", NONE),
        ("[]", NONE),
        ("map[denied:[read operate]]", NONE),
        (["read", "run"], BOTH),
    ],
)
@pytest.mark.parametrize("header", ["", "Bearer opaque", "Bearer a.b.c", "Bearer e30.e30.c2ln,e30.e30.c2ln"])
def test_without_the_token_a_list_that_can_be_read_in_two_ways_grants_nothing(
    shown: Any, granted: set[str], header: str
) -> None:
    event = payload("api", "show")
    event["requestContext"]["authorizer"]["jwt"]["claims"]["roles"] = shown
    event["headers"]["authorization"] = header
    assert identity_of(event, config()).roles == granted


def test_a_token_in_the_header_that_is_not_the_one_that_was_verified_grants_nothing() -> None:
    for other in (["read", "operate", "x"], ["cannot", "operate"], "operate"):
        assert identity({"roles": ["cannot operate x"]}, token={"roles": other}).roles == NONE


TENANTS: list[tuple[Any, bool]] = [
    ("acme", True),
    ("acme.eu:prod@1|x=y+z-_", True),
    ("auth0|6f", True),
    ("7", True),
    ("nullable", True),
    ("a" * 128, True),
    (None, False),
    (True, False),
    (False, False),
    ("null", False),
    ("Null", False),
    ("true", False),
    ("undefined", False),
    ("acme/objects", False),
    ("/", False),
    ("..", False),
    (".", False),
    ("acme eu", False),
    (["acme"], False),
    (["acme", "evil"], False),
    ({"id": "acme"}, False),
    ("", False),
    ("a#b", False),
    ("acme\n", False),
    ("\uff41cme", False),
    ("a" * 129, False),
]


@pytest.mark.parametrize(("claim", "is_one"), TENANTS, ids=repr)
def test_a_tenant_is_a_text_that_can_be_no_part_of_another_name(claim: Any, is_one: bool) -> None:
    if is_one:
        assert identity({"tenant": claim}).caller.tenant == claim
        return
    with pytest.raises(Unauthenticated, match="`tenant`"):
        identity({"tenant": claim})


ROLE = "arn:aws:sts::123456789012:assumed-role/Dinner"
# The principal that signed, who pays, and who is in the log.
PRINCIPALS = [
    (f"{ROLE}/ada", ROLE, f"{ROLE}/ada"),
    (f"{ROLE}/i-0abc", ROLE, f"{ROLE}/i-0abc"),
    (f"{ROLE}/a=b,c@d.example", ROLE, f"{ROLE}/a=b,c@d.example"),
    ("arn:aws-cn:sts::1:assumed-role/R/s", "arn:aws-cn:sts::1:assumed-role/R", "arn:aws-cn:sts::1:assumed-role/R/s"),
    ("arn:aws:sts::1:federated-user/ann", "arn:aws:sts::1:federated-user", "arn:aws:sts::1:federated-user/ann"),
    ("arn:aws:iam::1:user/team/ada", "arn:aws:iam::1:user/team/ada", "arn:aws:iam::1:user/team/ada"),
    ("arn:aws:iam::1:root", "arn:aws:iam::1:root", "arn:aws:iam::1:root"),
]  # fmt: skip


@pytest.mark.parametrize(("arn", "user", "by"), PRINCIPALS)
def test_who_pays_is_the_role_and_not_the_name_that_a_session_gives_itself(
    arn: str, user: str, by: str
) -> None:
    event = payload("api", "start-signed-with-iam")
    event["requestContext"]["authorizer"]["iam"]["userArn"] = arn
    caller = identity_of(event, config()).caller
    assert (caller.user, caller.by) == (user, by)
