"""The contract of `Secrets` of models on AWS: parameters of the SSM Parameter Store, and secrets of Secrets Manager."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError

from baton.adapters.aws import Aws
from baton.adapters.credentials import ManagerSecrets, ParameterSecrets, Secrets
from baton.ports import StepFailure
from tests.kit.sentences import Says


def parameters(aws: Aws) -> Secrets:
    aws.ssm.put_parameter(Name="/baton/models/openai", Value="sk-1", Type="SecureString")
    return ParameterSecrets(aws.ssm, "/baton/models/")


def secrets(aws: Aws) -> Secrets:
    aws.secretsmanager.create_secret(Name="baton/models/openai", SecretString="sk-1")
    aws.secretsmanager.create_secret(Name="baton/models/binary", SecretBinary=b"x")
    return ManagerSecrets(aws.secretsmanager, "baton/models/")


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (parameters, "the parameter `/baton/models/openai`"),
        (secrets, "the secret `baton/models/openai`"),
    ],
)
def test_a_credential_is_found_by_the_prefix_and_the_profiles_name(
    make: Any, where: str, moto_aws: Aws
) -> None:
    kept: Secrets = make(moto_aws)
    assert (kept.read("openai"), kept.where("openai")) == ("sk-1", where)
    assert [kept.read(name) for name in ("other", "binary")] == ["", ""]


class Refusing:
    """Both services, for a role that may read neither."""

    def get_parameter(self, **_: object) -> NoReturn:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetParameter")

    def get_secret_value(self, **_: object) -> Mapping[str, Any]:
        return self.get_parameter()


@pytest.mark.parametrize("kept", [ParameterSecrets(Refusing(), "/a/"), ManagerSecrets(Refusing(), "/a/")])
def test_what_aws_refuses_is_a_credential_that_is_missing(kept: Secrets, says: Says) -> None:
    with says.raised(StepFailure) as caught:
        kept.read("openai")
    assert caught.value.code == "missing_credentials"


def test_what_aws_cannot_do_at_the_moment_is_tried_again_later(says: Says) -> None:
    nowhere = Aws("http://127.0.0.1:1")
    for kept in (ParameterSecrets(nowhere.ssm, "/a/"), ManagerSecrets(nowhere.secretsmanager, "a/")):
        with says.raised(StepFailure) as caught:
            kept.read("openai")
        assert caught.value.code == "service_unavailable"
