"""The parts of a deployment's settings that are small languages: channels, reach, sign-in."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as declared
from typing import Annotated

from msgspec import Meta

# Addresses of mail with a name to be put in; a secret of Standard Webhooks, of 24 to 64 bytes.
_ADDRESSES = r"^(\{name\}|[A-Za-z0-9._%+-]*\{name\}[A-Za-z0-9._%+-]*@[A-Za-z0-9.-]+)?$"
_SIGNS = "whsec_([A-Za-z0-9+/]{4}){8,21}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Channels:
    """Channels, besides the topic, that notify people."""

    confirm_url: Annotated[
        str,
        Meta(
            pattern=r"^(https?://[^\s#]+)?$",
            description="Page that shows a question and sends `POST /confirm`. With it, mail and the webhook have a link by which a "
            "question is answered without signing in, for a quarter of an hour. Empty: no links.",
        ),
    ] = ""
    mail_to: Annotated[
        str,
        Meta(
            pattern=_ADDRESSES,
            description="Mail address of a user, with `{name}` in it: `{name}@example.com`, which takes names that are addresses "
            "of that domain too, or `{name}` for any name that is an address. Mail comes from `MailFrom`. Empty: users get none.",
        ),
    ] = ""
    group_mail_to: Annotated[
        str, Meta(pattern=_ADDRESSES, description="The same of a group. Empty: groups get none.")
    ] = ""
    webhook_url: Annotated[
        str,
        Meta(
            pattern=r"^(https://[^\s#]+)?$",
            description="Address that is told of every notice by a signed request; its host must be among `HttpHosts`. Empty: none.",
        ),
    ] = ""
    webhook_secret: Annotated[
        str,
        Meta(
            pattern=f"^({_SIGNS}( {_SIGNS})*)?$",
            description="Secrets that sign these requests, separated by spaces: `whsec_` and the base64 of 24 to 64 random "
            "bytes. Two sign while one takes the place of the other.",
        ),
    ] = declared(default="", repr=False)
    event_bus_name: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._/-]{0,256}$",
            description="Bus of EventBridge that gets every notice as a CloudEvent. Empty: none.",
        ),
    ] = ""


_PORT = "(:[0-9]{1,5})?"
# An entry of the list of hosts: `*`, an address or a name, an address of version 6, a network.
_ENTRY = (
    rf"(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?{_PORT}|\[[0-9A-Fa-f:.]{{2,45}}\]{_PORT}"
    r"|[0-9A-Fa-f:.]{2,45}/[0-9]{1,3})"
)
_PROFILE = r"[a-z][a-z0-9_]{0,31}(=([a-z]+\+)?https?://[^\s@?#]{1,300})?"
_API = r"[a-z][a-z0-9_]{0,31}=https?://[^\s@#]{1,300}#sha256:[0-9a-f]{64}(@https?://[^\s@?#]{1,300})?"
_SECRETS = r"^(/?([A-Za-z0-9_.-]{1,100}/){1,4})?$"


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Outside:
    """Services that the standard tools reach."""

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
            description="Beginning of the names of these APIs' credentials, to which the API's name is added, as "
            "with `ModelSecrets`. Empty: none, but those of a local run.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ModelEndpoints:
    """Providers of language models."""

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
            description="Providers of models, separated by spaces: the name of a known provider, such as `bedrock`, or a name, `=` and the "
            "address of an API: `openai bedrock own=https://llm.example.com/v1`. The first one is meant where a document names none.",
        ),
    ] = "openai"
    model_secrets: Annotated[
        str,
        Meta(
            pattern=_SECRETS,
            description="Beginning of the names of these providers' credentials, to which the provider's name is "
            "added. `/baton/models/` is of parameters of the SSM Parameter Store; `baton/models/`, "
            "without the first slash, of secrets of Secrets Manager. Empty: none, but those of a local "
            "run.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SignIn:
    """Identity provider that signs people in to the console."""

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
            description="Beginning of the client secret's name, to which `client` is added, as with "
            "`ModelSecrets`. A new secret ends all sign-ins. Empty: none, but that of a local run.",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Remembering:
    """Model and index of the facts of users."""

    facts: Annotated[
        str,
        Meta(
            pattern=r"^(\S{1,200}( arn:[a-z0-9-]+:s3vectors:\S{1,200})?)?$",
            description="Model that embeds the facts of `std.remember` and `std.recall`, such as `text-embedding-3-small`, by a provider of "
            "`ModelProfiles` with the API of OpenAI; and, behind a space, the ARN of an index of Amazon S3 Vectors that has their "
            "vectors. Without an index the table has them. Empty: these tools do not run.",
        ),
    ] = ""
