"""Who signs people in to the console, as settings. The console itself is in baton/console."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SignIn:
    """Who signs people in to the console."""

    console_issuer: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[^\s?#]+)?$",
            description="Issuer (OpenID Connect) that signs people in to the console at `/console`. Its tokens have the claims that "
            "those of the API have. Empty: there is no console.",
        ),
    ] = ""
    console_client: Annotated[
        str,
        Meta(pattern=r"^[!-~]{0,256}$", description="Client id of the console at its issuer."),
    ] = ""
    console_secrets: Annotated[
        str,
        Meta(
            pattern=r"^(/?([A-Za-z0-9_.-]{1,100}/){1,4})?$",
            description="Where the client secret is: the beginning of its name, to which `client` is added, as with `ModelSecrets`. "
            "A new secret ends all sign-ins. Empty: none, but that of a local run.",
        ),
    ] = ""
