"""Profiles of a deployment's models: `openai bedrock local=http://127.0.0.1:8099/v1`.

The first one applies if a document names none. The credential of a profile is in adapters/credentials.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

_ADDED = "/chat/completions"
NAME = re.compile("[a-z][a-z0-9_]{0,31}")
BEDROCK = "bedrock"
PROVIDERS: Mapping[str, str] = {
    "anthropic": "anthropic+https://api.anthropic.com/v1",
    BEDROCK: "bedrock+https://bedrock-runtime.{region}.amazonaws.com",
    "deepseek": "https://api.deepseek.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}
"""Addresses of providers that are known by their name."""
_DIALECT = re.compile(r"([a-z]+)\+(https?://.*)")
_DIALECTS = ("anthropic", BEDROCK)
_region_in = re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9]+").search


class Profile(NamedTuple):
    """A provider of models. `url` has no slash at its end; `host` is for messages.

    `dialect` is the API by which it is asked, if that is not chat completions; `region` is that of AWS's
    signature.
    """

    name: str
    url: str
    host: str
    dialect: str = ""
    region: str = ""

    @property
    def needs_no_credential(self) -> bool:
        """True for what may be one's own server, and for AWS, which the role of the function is known to."""
        return self.url.startswith("http://") or self.dialect == BEDROCK

    @property
    def has_path(self) -> bool:
        """True if the URL has a path besides its version."""
        return bool(urlsplit(self.url).path)


class Profiles:
    """Profiles of a deployment."""

    def __init__(self, text: str, plain: Collection[str] = (), region: str = "") -> None:
        """Read the profiles. `plain`: hosts called without TLS, or `*`. `region`: of the deployment.

        Raises `ValueError`.
        """
        read = [_read(entry, plain, region) for entry in text.split()]
        self._named: Mapping[str, Profile] = {profile.name: profile for profile in read}
        if len(self._named) != len(read) or not read:
            raise ValueError("each profile is named once, as in `openai=https://api.openai.com/v1`")
        self._first = read[0]

    def of(self, model: str) -> tuple[Profile, str]:
        """Return the profile of a model's name, and the name as the provider knows it.

        A beginning that names no profile belongs to the model's own name, as in `meta-llama/llama-4`.
        """
        name, slash, rest = model.partition("/")
        if slash and rest and name in self._named:
            return self._named[name], rest
        return self._first, model

    def named(self, name: str) -> Profile:
        """Return the profile of this name. Raises `KeyError`."""
        return self._named[name]

    def names(self) -> list[str]:
        return sorted(self._named)


def _read(entry: str, plain: Collection[str], region: str) -> Profile:
    name, equals, url = entry.partition("=")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"`{entry[:60]}` is no profile: it is a name of lower-case letters, digits and `_`, `=` and an address"
        )
    if not equals and name not in PROVIDERS:
        raise ValueError(
            f"`{name}` is none of the providers with a known address: {', '.join(PROVIDERS)}."
            f" Write `{name}=` and its address"
        )
    url, dialect = (url if equals else PROVIDERS[name].replace("{region}", region)), ""
    if said := _DIALECT.fullmatch(url):
        dialect, url = said.groups()
        if dialect not in _DIALECTS:
            raise ValueError(
                f"the profile `{name}` names the API `{dialect}`; those besides chat completions are {', '.join(_DIALECTS)}"
            )
    if dialect == BEDROCK:
        found = _region_in(url)
        region = found[0] if found else region
        if not region:
            raise ValueError(
                f"the region of the profile `{name}` is not known: write"
                f" `{name}=bedrock+https://bedrock-runtime.REGION.amazonaws.com`"
            )
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or "@" in url:
        # Without the address, which may hold a credential.
        raise ValueError(
            f"the address of the profile `{name}` is not `https://`, a host and a path, without user, query and fragment"
        )
    if parts.path.rstrip("/").endswith(_ADDED):
        raise ValueError(
            f"the address of the profile `{name}` is what stands before `{_ADDED}`, which is added to it"
        )
    if parts.scheme == "http" and not _is_loopback(host) and not {host, "*"} & set(plain):
        raise ValueError(
            f"the profile `{name}` would send its credential to {host} without TLS: use https://, or name the host in `PlainHttpHosts`"
        )
    return Profile(name, url.rstrip("/"), host, dialect, region if dialect == BEDROCK else "")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
