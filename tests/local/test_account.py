"""A look at the account before a deployment: each secret that is not there, with the command that creates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from baton.local.account import check_template, missing_secrets
from baton.local.processes import LocalRunError
from baton.project.deployment import TEMPLATE, write_deployment
from tests.kit.sentences import Says


class Store:
    """A store that has one parameter and one secret, and keeps the region that was asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self._error = error

    def __call__(self, service: str, region_name: str | None) -> Store:
        self.asked.append((service, region_name))
        return self

    def get_parameter(self, **given: Any) -> None:
        assert given["WithDecryption"] is False, "no value is read"
        self._look(given["Name"], "ParameterNotFound")

    def describe_secret(self, **given: Any) -> None:
        self._look(given["SecretId"], "ResourceNotFoundException")

    def _look(self, name: str, code: str) -> None:
        if self._error:
            raise self._error
        if not name.endswith("there"):
            raise ClientError({"Error": {"Code": code}}, "Get")


def test_a_secret_that_does_not_exist_is_named_with_the_command_that_creates_it(says: Says) -> None:
    store = Store()
    found = missing_secrets(
        {"A": "/shop/there", "B": "shop/there", "C": "/shop/c", "D": "shop/d"}, "eu-west-1", store
    )
    says(list(found))
    assert set(store.asked) == {("ssm", "eu-west-1"), ("secretsmanager", "eu-west-1")}


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetParameter"),
        NoCredentialsError(),
    ],
    ids=["denied", "no credentials"],
)
def test_an_account_that_does_not_answer_is_no_missing_secret(error: Exception, says: Says) -> None:
    with says.raised(LocalRunError):
        list(missing_secrets({"A": "/shop/a"}, "", Store(error)))


def test_a_rule_of_the_template_is_checked_before_sam_is_asked(tmp_path: Path, says: Says) -> None:
    (tmp_path / "baton.toml").write_text('baton = "0.1.0"\nstack = "shop"\n[parameters]\nAuthMode = "iam"\n')
    write_deployment(tmp_path)
    check_template(tmp_path / TEMPLATE)
    (tmp_path / "baton.toml").write_text('baton = "0.1.0"\nstack = "shop"\n')
    write_deployment(tmp_path)
    with says.raised(LocalRunError):
        check_template(tmp_path / TEMPLATE)
