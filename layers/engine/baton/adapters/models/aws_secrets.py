"""`Secrets` on AWS: parameters of the SSM Parameter Store, or secrets of Secrets Manager."""

from __future__ import annotations

from typing import Any, Final

from botocore.exceptions import ClientError

from baton.adapters.aws import translated
from baton.errors import StoreUnavailable, Throttled
from baton.ports import StepFailure

_MISSING: Final = frozenset({"ParameterNotFound", "ResourceNotFoundException"})


class AwsSecrets:
    """By the beginning of their names: one that begins with a slash is of a parameter, any other of a secret."""

    def __init__(self, prefix: str, ssm_client: Any, secrets_client: Any) -> None:
        self._prefix, self._ssm_client, self._secrets_client = prefix, ssm_client, secrets_client

    def read(self, profile: str) -> str:
        try:
            with translated():
                return self._read(self._prefix + profile)
        except (Throttled, StoreUnavailable) as error:
            what = f"the credential of the model profile `{profile}` cannot be read at the moment"
            raise StepFailure("service_unavailable", what) from error
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code in _MISSING:
                return ""
            raise StepFailure(
                "missing_credentials", f"{self.where(profile)} cannot be read: {code}"
            ) from error

    def where(self, profile: str) -> str:
        kind = "parameter" if self._is_parameter else "secret"
        return f"the {kind} `{self._prefix}{profile}`"

    @property
    def _is_parameter(self) -> bool:
        return self._prefix.startswith("/")

    def _read(self, name: str) -> str:
        if self._is_parameter:
            return str(self._ssm_client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])
        return str(self._secrets_client.get_secret_value(SecretId=name).get("SecretString", ""))
