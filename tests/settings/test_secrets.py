"""Variables of tools that are secrets: a function reads them by their names before it imports a tool."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from baton import settings, wiring
from tests.kit.sentences import Says

KEPT = {"/shop/key": "a parameter", "shop/key": "a secret"}


def refused(code: str) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 400}}
    return ClientError(answer, "Get")


class Parameters:
    """The two stores of AWS, as far as they are asked."""

    def get_parameter(self, *, Name: str, WithDecryption: bool) -> dict[str, Any]:  # noqa: N803  # boto3's names
        assert WithDecryption
        if Name not in KEPT:
            raise refused("ParameterNotFound")
        return {"Parameter": {"Value": KEPT[Name]}}

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:  # noqa: N803  # boto3's name
        if SecretId == "shop/closed":
            raise refused("AccessDeniedException")
        return {"SecretString": KEPT[SecretId]}


def read(secrets: str) -> None:
    aws: Any = SimpleNamespace(ssm=Parameters(), secretsmanager=Parameters())
    config: Any = SimpleNamespace(secrets=secrets)
    wiring._set_secrets(aws, config)


def test_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SHOP_A", "SHOP_B"):
        monkeypatch.setenv(name, "")
    read("SHOP_A=/shop/key SHOP_B=shop/key")
    assert (os.environ["SHOP_A"], os.environ["SHOP_B"]) == ("a parameter", "a secret")


@pytest.mark.parametrize("name", ["/shop/none", "shop/closed"], ids=["missing", "not allowed"])
def test_one_that_cannot_be_read_stops_the_function_with_its_name(name: str, says: Says) -> None:
    with says.raised(settings.SettingsError):
        read(f"SHOP_A={name}")
    assert "SHOP_A" not in os.environ


def test_without_any_no_store_is_asked() -> None:
    wiring._set_secrets(None, SimpleNamespace(secrets=""))  # type: ignore[arg-type]  # neither is looked at
