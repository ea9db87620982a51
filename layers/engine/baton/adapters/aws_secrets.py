"""`Secrets` on AWS: parameters of the SSM Parameter Store, or secrets of Secrets Manager, each by the beginning of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

from baton.adapters.aws import translated
from baton.errors import StoreUnavailable, Throttled
from baton.ports import StepFailure

_MISSING: Final = frozenset({"ParameterNotFound", "ResourceNotFoundException"})


class SSMClient(Protocol):
    """What is used of the client."""

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> Mapping[str, Any]: ...  # noqa: N803  # boto3's names


class SecretsManagerClient(Protocol):
    """What is used of the client."""

    def get_secret_value(self, *, SecretId: str) -> Mapping[str, Any]: ...  # noqa: N803  # boto3's name


class ParameterSecrets:
    """Parameters, as a rule of the type SecureString."""

    def __init__(self, client: SSMClient, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def read(self, name: str) -> str:
        return _read(self.where(name), lambda: self._value(self._prefix + name))

    def where(self, name: str) -> str:
        return f"the parameter `{self._prefix}{name}`"

    def _value(self, name: str) -> str:
        return str(self._client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])


class ManagerSecrets:
    """Secrets that are text."""

    def __init__(self, client: SecretsManagerClient, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def read(self, name: str) -> str:
        return _read(self.where(name), lambda: self._value(self._prefix + name))

    def where(self, name: str) -> str:
        return f"the secret `{self._prefix}{name}`"

    def _value(self, name: str) -> str:
        return str(self._client.get_secret_value(SecretId=name).get("SecretString", ""))


def _read(where: str, read: Callable[[], str]) -> str:
    """Empty where there is none. Raises `StepFailure`."""
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
