"""Profiles of a deployment's models: `openai=https://api.openai.com/v1 local=http://127.0.0.1:8099/v1`.

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


class Profile(NamedTuple):
    """A provider of models. `url` has no slash at its end; `host` is for messages."""

    name: str
    url: str
    host: str

    @property
    def is_private(self) -> bool:
        """True if it may be one's own server, which needs no credential."""
        return self.url.startswith("http://")

    @property
    def has_path(self) -> bool:
        """True if the URL has a path besides its version."""
        return bool(urlsplit(self.url).path)


class Profiles:
    """Profiles of a deployment."""

    def __init__(self, text: str, plain: Collection[str] = ()) -> None:
        """Read the profiles. `plain`: hosts called without TLS, or `*`. Raises `ValueError`."""
        self._named: Mapping[str, Profile] = {
            profile.name: profile for profile in (_read(entry, plain) for entry in reversed(text.split()))
        }
        if len(self._named) != len(text.split()) or not self._named:
            raise ValueError("each profile is named once, as in `openai=https://api.openai.com/v1`")
        self._first = self._named[text.partition("=")[0].strip()]

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


def _read(entry: str, plain: Collection[str]) -> Profile:
    name, _, url = entry.partition("=")
    if not NAME.fullmatch(name):
        raise ValueError(
            f"`{entry[:60]}` is no profile: it is a name of lower-case letters, digits and `_`, `=` and an address"
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
    return Profile(name, url.rstrip("/"), host)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
