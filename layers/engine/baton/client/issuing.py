"""Tokens of a local run for other users than the one whose token is at hand: its issuer signs them.

A deployment's tokens are its own issuer's business. So a token is shown to an issuer on this machine only.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Sequence

from baton.client.connection import Connection
from baton.client.exits import DENIED, Failed
from baton.client.transport import Transport

_HERE = re.compile(r"http://127\.0\.0\.1:[0-9]{1,5}")


async def token_for(connection: Connection, user: str, groups: Sequence[str], roles: Sequence[str]) -> str:
    """A token for another user of the same tenant. Raises `Failed`."""
    transport = Transport(Connection(_issuer_of(connection), connection.token), connections=1)
    try:
        body = {"user": user, "groups": list(groups), "roles": list(roles)}
        answer = await transport.ask("POST", "/token", body=body)
    finally:
        await transport.close()
    return str((answer.document or {}).get("token", ""))


def _issuer_of(connection: Connection) -> str:
    """The address of the local run that has signed the token at hand. Raises `Failed`."""
    try:
        body = connection.token.split(".")[1]
        issuer = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))["iss"]
    except (IndexError, KeyError, TypeError, ValueError):
        issuer = None
    if connection.aws or not isinstance(issuer, str) or not _HERE.fullmatch(issuer):
        raise Failed(
            DENIED,
            f"only `baton up` signs tokens, and the one at hand for {connection.url} is not one of its own",
            "Without BATON_URL and BATON_TOKEN the commands use that of the run in this directory. A token for any other API",
            "is signed by the issuer of that API; show it with --token or BATON_TOKEN.",
        )
    return issuer
