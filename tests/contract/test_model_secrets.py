"""The contract of `Secrets` of models on AWS: parameters of the SSM Parameter Store and secrets of Secrets Manager."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from baton.adapters.aws import Aws
from baton.adapters.models.aws_secrets import AwsSecrets
from baton.ports import StepFailure


@pytest.fixture
def aws(moto_aws: Aws) -> Aws:
    moto_aws.ssm.put_parameter(Name="/baton/models/openai", Value="sk-of-ssm", Type="SecureString")
    moto_aws.secretsmanager.create_secret(Name="baton/models/openai", SecretString="sk-of-the-manager")
    moto_aws.secretsmanager.create_secret(Name="baton/models/binary", SecretBinary=b"x")
    return moto_aws


def on(aws: Aws, prefix: str) -> AwsSecrets:
    return AwsSecrets(prefix, aws.ssm, aws.secretsmanager)


@pytest.mark.parametrize(
    ("prefix", "secret", "where"),
    [
        ("/baton/models/", "sk-of-ssm", "the parameter `/baton/models/openai`"),
        ("baton/models/", "sk-of-the-manager", "the secret `baton/models/openai`"),
    ],
)
def test_a_prefix_with_a_slash_is_of_parameters_any_other_of_secrets(
    prefix: str, secret: str, where: str, aws: Aws
) -> None:
    secrets = on(aws, prefix)
    assert (secrets.read("openai"), secrets.where("openai")) == (secret, where)
    assert [secrets.read(name) for name in ("other", "binary")] == ["", ""]


@pytest.mark.parametrize(("prefix", "kind"), [("/no//name/", "parameter"), ("baton/models/", "secret")])
def test_what_aws_refuses_is_a_credential_that_is_missing(prefix: str, kind: str, aws: Aws) -> None:
    class Refusing:
        def get_parameter(self, **_: object) -> None:
            raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetParameter")

        get_secret_value = get_parameter

    found = AwsSecrets(prefix, Refusing(), Refusing())
    with pytest.raises(
        StepFailure, match=f"the {kind} `{prefix}openai` cannot be read: AccessDenied"
    ) as caught:
        found.read("openai")
    assert caught.value.code == "missing_credentials"


def test_what_aws_cannot_do_at_the_moment_is_tried_again_later() -> None:
    found = AwsSecrets("/a/", Aws("http://127.0.0.1:1").ssm, None)
    with pytest.raises(StepFailure) as caught:
        found.read("openai")
    assert caught.value.code == "service_unavailable"
