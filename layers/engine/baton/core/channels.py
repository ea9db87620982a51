"""By what people are told besides the topic, as settings. The channels themselves are in adapters/channels."""

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
    """By what people are told, besides the topic."""

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
