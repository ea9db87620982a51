"""Credentials of models and APIs by name: from the environment, the Parameter Store or Secrets Manager."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from baton.adapters.aws import translated
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Clock, Offload, StepFailure

KEPT_MS: Final = 300_000
_REFUSED_MS: Final = 10_000  # one that was refused, or is not there, is not fetched more often than this


class Secrets(Protocol):
    """A store of credentials."""

    def read(self, name: str) -> str:
        """Return the credential; empty if none exists. Raises `StepFailure`."""
        ...

    def where(self, name: str) -> str:
        """Return the place where a person must store the credential, for a message."""
        ...


class VariableSecrets:
    """`Secrets` in environment variables."""

    def __init__(self, read: Callable[[str], str], name: Callable[[str], str]) -> None:
        """Read secrets from variables: `read` by their names, `name` for messages."""
        self.read, self.name = read, name

    def where(self, name: str) -> str:
        return f"the environment variable {self.name(name)}"


class Credentials:
    """Credentials of a process, of one kind. Each is read at its first use and again after five minutes."""

    def __init__(self, secrets: Secrets, clock: Clock, offload: Offload, of: str) -> None:
        """Create the cache of credentials. `of`: noun for the names in messages."""
        self._what = of
        self._secrets, self._clock, self._offload = secrets, clock, offload
        self._known: dict[str, tuple[str, int]] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self._known)})"

    async def of(self, name: str, *, is_optional: bool = False, is_refused: bool = False) -> str:
        """Return the credential; empty if none exists and it `is_optional`, and then for ten seconds.

        `is_refused`: the server has just refused it; it is read again, unless that was done a moment ago.
        Raises `StepFailure`.
        """
        async with self._lock(name):
            found, read_at = self._known.get(name, ("", -KEPT_MS))
            now = self._clock.now()
            is_old = now - read_at >= (_REFUSED_MS if is_refused or not found else KEPT_MS)
            if is_old or not (found or is_optional):
                found = (await self._offload(self._secrets.read, name)).strip()
                self._known[name] = (found, now)
        if not found and not is_optional:
            where = self._secrets.where(name)
            raise StepFailure(
                "missing_credentials", f"{self._what} `{name}` has no credential; it belongs into {where}"
            )
        if found.startswith("{") or any(not "!" <= character <= "~" for character in found):
            where = self._secrets.where(name)
            raise StepFailure(
                "missing_credentials", f"{where} must hold the credential and nothing else, as plain text"
            )
        return found

    def _lock(self, name: str) -> asyncio.Lock:
        """Return the lock of this event loop: many agents that begin at once read a credential once."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._reading = loop, {}
        return self._reading.setdefault(name, asyncio.Lock())


_MISSING: Final = frozenset({"ParameterNotFound", "ResourceNotFoundException"})


class SSMClient(Protocol):
    """The methods of boto3's client for SSM that the engine calls."""

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> Mapping[str, Any]: ...  # noqa: N803  # boto3's names


class SecretsManagerClient(Protocol):
    """The methods of boto3's client for Secrets Manager that the engine calls."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]: ...  # noqa: N803  # boto3's name


class ParameterSecrets:
    """`Secrets` in the SSM Parameter Store, as a rule of the type SecureString."""

    def __init__(self, client: SSMClient, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def read(self, name: str) -> str:
        return _read(self.where(name), lambda: self._value(self._prefix + name))

    def where(self, name: str) -> str:
        return f"the parameter `{self._prefix}{name}`"

    def _value(self, name: str) -> str:
        return str(self._client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])


class ManagerSecrets:
    """`Secrets` in Secrets Manager, as text."""

    def __init__(self, client: SecretsManagerClient, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def read(self, name: str) -> str:
        return _read(self.where(name), lambda: self._value(self._prefix + name))

    def where(self, name: str) -> str:
        return f"the secret `{self._prefix}{name}`"

    def _value(self, name: str) -> str:
        return str(self._client.get_secret_value(SecretId=name).get("SecretString", ""))


def _read(where: str, read: Callable[[], str]) -> str:
    """Return the credential; empty if none exists. Raises `StepFailure`."""
    try:
        with translated():
            return read()
    except (Throttled, StoreUnavailable) as error:
        raise StepFailure("service_unavailable", f"{where} cannot be read at the moment") from error
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _MISSING:
            return ""
        raise StepFailure("missing_credentials", f"{where} cannot be read: {code}") from error
