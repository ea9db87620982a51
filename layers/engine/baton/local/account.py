"""Checks before a deployment: rules of the template, and secrets in the AWS account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from baton.local.processes import LocalRunError
from baton.local.template import Resolver, Template, check_rules, effective, parse

_MISSING = frozenset({"ParameterNotFound", "ResourceNotFoundException"})


def check_template(path: Path) -> None:
    """Check the template's rules with its defaults. Raises `LocalRunError`."""
    template = Template(path, parse(path.read_text("utf-8")))
    check_rules(template, Resolver(template, effective(template, {}, {})))


def missing_secrets(
    secrets: Mapping[str, str], region: str, clients: Callable[..., Any] | None = None
) -> Iterator[str]:
    """Yield a sentence with its remedy for each secret that is not in the account. No value is read.

    Raises `LocalRunError` if the account cannot be asked. `clients`: in place of botocore's.
    """
    made: Callable[..., Any] = clients or Session().create_client
    for variable, name in secrets.items():
        is_parameter = name.startswith("/")
        try:
            client = made("ssm" if is_parameter else "secretsmanager", region_name=region or None)
            if is_parameter:
                client.get_parameter(Name=name, WithDecryption=False)
            else:
                client.describe_secret(SecretId=name)
        except ClientError as error:
            if error.response["Error"]["Code"] not in _MISSING:
                raise LocalRunError(
                    f"baton.toml: secrets.{variable}: {name} cannot be looked up: {error}"
                ) from error
            create = (
                f"aws ssm put-parameter --type SecureString --name {name} --value …"
                if is_parameter
                else f"aws secretsmanager create-secret --name {name} --secret-string …"
            )
            kind = "parameter of the SSM Parameter Store" if is_parameter else "secret of Secrets Manager"
            place = f" in {region}" if region else ""
            yield f"baton.toml: secrets.{variable}: there is no {kind} {name}{place}; create it with `{create}`"
        except BotoCoreError as error:
            raise LocalRunError(f"the account cannot be asked for {name}: {error}") from error
