"""What the engine reaches outside, as settings: what the standard tools may call, and the providers of models."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as declared
from typing import Annotated

from msgspec import Meta

_PORT = "(:[0-9]{1,5})?"
# An entry of the list of hosts: `*`, an address or a name, an address of version 6, a network.
_ENTRY = (
    rf"(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?{_PORT}|\[[0-9A-Fa-f:.]{{2,45}}\]{_PORT}"
    r"|[0-9A-Fa-f:.]{2,45}/[0-9]{1,3})"
)
_PROFILE = r"[a-z][a-z0-9_]{0,31}=https?://[^\s@?#]{1,300}"
_API = r"[a-z][a-z0-9_]{0,31}=https?://[^\s@#]{1,300}#sha256:[0-9a-f]{64}(@https?://[^\s@?#]{1,300})?"
_SECRETS = r"^(/?([A-Za-z0-9_.-]{1,100}/){1,4})?$"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Outside:
    """What the standard tools reach."""

    mail_from: Annotated[
        str,
        Meta(
            pattern=r"^([^@\s<>,;:\"]+@[^@\s<>,;:\"]+)?$",
            description="Address that `std.notify` and mail to those of `MailTo` come from, verified in SES. Empty: no mail.",
        ),
    ] = ""
    payments_url: Annotated[
        str,
        Meta(
            pattern=r"^(https?://\S+)?$",
            description="Payment service of `std.pay` for steps that name none. Empty: they have to.",
        ),
    ] = ""
    signing_key: Annotated[
        str,
        Meta(
            pattern=r"^(\S{32,256})?$",
            description="Secret by which `std.pay` and `std.notify` sign for which tenant they ask. Empty: they do not.",
        ),
    ] = declared(default="", repr=False)
    http_hosts: Annotated[
        str,
        Meta(
            pattern=f"^({_ENTRY}( {_ENTRY})*)?$",
            description="Hosts that `std.http`, `std.openapi`, `std.pay` and the webhook may call, separated by spaces: names, `*.` and a domain, `*` for "
            "any, each with a port or any. Addresses that are not public are called only if they, or their networks, are named.",
        ),
    ] = ""
    open_apis: Annotated[
        str,
        Meta(
            pattern=f"^({_API}( {_API})*)?$",
            description="APIs of `std.openapi`, separated by spaces: a name, `=`, the address of the OpenAPI description, and its hash: "
            "`weather=https://api.example.com/openapi.json#sha256:…`. Behind `@` the address of the server, where that is elsewhere than "
            "the description. `HttpHosts` must name the hosts.",
        ),
    ] = ""
    api_secrets: Annotated[
        str,
        Meta(
            pattern=_SECRETS,
            description="Where the credentials of these APIs are: the beginning of names, to which the API's name is added, as with "
            "`ModelSecrets`. Empty: none, but those of a local run.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Models:
    """Where language models are."""

    plain_http_hosts: Annotated[
        str,
        Meta(
            pattern="^[^/@,]*$",
            description="Hosts that the standard tools and models may be called at without TLS, besides loopback, separated by spaces; "
            "`*` is any.",
        ),
    ] = ""
    model_profiles: Annotated[
        str,
        Meta(
            pattern=f"^{_PROFILE}( {_PROFILE})*$",
            description="Providers of models, separated by spaces, each a name, `=` and the address of its chat completions API without "
            "`/chat/completions`: `openai=https://api.openai.com/v1 own=https://llm.example.com/v1`. The first one is meant where a "
            "document names none.",
        ),
    ] = "openai=https://api.openai.com/v1"
    model_secrets: Annotated[
        str,
        Meta(
            pattern=_SECRETS,
            description="Where the credentials of these providers are: the beginning of names, to which the provider's name is added. "
            "`/baton/models/` is of parameters of the SSM Parameter Store; `baton/models/`, without the first slash, of secrets of "
            "Secrets Manager. Empty: none, but those of a local run.",
        ),
    ] = ""
