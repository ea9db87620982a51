"""Requests signed with the user's AWS credentials: verified by a server, and shown to no other server."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from baton.client.connection import Connection, find_connection, region_of
from baton.client.exits import CommandFailed
from tests.cli.conftest import Baton, FakeApi
from tests.cli.sigv4 import is_signed, scope_of, signed_headers
from tests.kit.sentences import Says

KEY, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a-session/token=="
EXECUTE = "https://abc123.execute-api.eu-central-1.amazonaws.com"


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials in the environment, and no other of this machine's."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    given = {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_SESSION_TOKEN": SESSION,
        "AWS_REGION": "eu-west-3",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)


def test_a_read_is_signed_for_execute_api_with_the_session(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "running"}))
    assert baton("--aws", "show", "s1").exit_code == 0
    (asked,) = api.asked
    assert scope_of(asked) == (KEY, "eu-west-3", "execute-api")
    assert asked.headers["x-amz-security-token"] == SESSION
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(signed_headers(asked))
    assert is_signed(asked, SECRET)
    assert not is_signed(asked, SECRET + "x"), "the check checks"


def test_path_query_and_body_are_part_of_the_signature(api: FakeApi, baton: Baton) -> None:
    api.on("GET /sagas", (200, {"sagas": [], "next": None}))
    api.on("POST /sagas/a%2Fb/signals/table%20freed", (202, {"id": "a/b", "status": "running"}))
    baton("--aws", "list", "--workflow", "ü & =+ b", "--since", "2026-11-22T00:00:00+01:00")
    baton("--aws", "signal", "a/b", "table freed", "--payload", '{"table": "é"}', "--key", "k 1")
    listed, signalled = api.asked[0], api.asked[-1]
    assert (is_signed(listed, SECRET), is_signed(signalled, SECRET)) == (True, True)
    assert {"content-type", "idempotency-key"} <= set(signed_headers(signalled))
    signalled.text = signalled.text.replace("é", "e")
    assert not is_signed(signalled, SECRET)


def test_a_document_is_signed_as_it_is_sent(api: FakeApi, baton: Baton, tmp_path: Path) -> None:
    api.on("POST /workflows", (201, {"name": "small", "version": 1}))
    (tmp_path / "small.yaml").write_text("name: süß\n")
    assert baton("--aws", "deploy-workflow", "--no-check", str(tmp_path / "small.yaml")).exit_code == 0
    assert is_signed(api.asked[0], SECRET)


def test_each_repetition_is_signed(api: FakeApi, baton: Baton) -> None:
    api.on("GET /tools", (503, {"title": "Busy"}), (200, {"tools": []}))
    assert baton("tools", env={"BATON_AUTH": "aws"}).exit_code == 0
    assert [is_signed(asked, SECRET) for asked in api.asked] == [True, True]


def test_no_secret_is_shown_whatever_happens(api: FakeApi, baton: Baton, says: Says) -> None:
    expired = (403, {"message": "The security token included in the request is expired"})
    api.on("GET /sagas/s1", expired)
    result = baton("--aws", "show", "s1")
    assert result.exit_code == 4
    says(result.stderr)
    for secret in (KEY, SECRET, SESSION, "secret-token"):
        assert secret not in result.output + result.stderr


def test_the_token_is_not_sent_along(api: FakeApi, baton: Baton) -> None:
    api.on("GET /tools", (200, {"tools": []}))
    baton("--aws", "tools")
    assert "secret-token" not in str(api.asked[0].headers)


def test_without_credentials_the_ways_to_them_are_named(
    api: FakeApi, baton: Baton, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = baton("--aws", "tools")
    assert (result.exit_code, api.asked) == (4, [])
    says(result.stderr)
    assert "aws sso login" in result.stderr


def test_a_profile_that_is_not_there_is_named(baton: Baton) -> None:
    result = baton("--aws", "tools", env={"AWS_PROFILE": "missing-one"})
    assert (result.exit_code, "missing-one" in result.stderr) == (4, True)


def test_half_of_the_credentials_are_none(baton: Baton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = baton("--aws", "tools")
    assert (result.exit_code, "AWS_SECRET_ACCESS_KEY" in result.stderr) == (4, True)


def test_credentials_that_are_renewed_and_expired_still_are_explained(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    given = {
        "Version": 1,
        "AccessKeyId": KEY,
        "SecretAccessKey": SECRET,
        "Expiration": "2020-01-01T00:00:00Z",
    }
    (tmp_path / "given.json").write_text(json.dumps(given))
    show = f"{sys.executable} -c \"print(open('{tmp_path / 'given.json'}').read())\""
    (tmp_path / "config").write_text(f"[default]\ncredential_process = {show}\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    result = baton("--aws", "tools", env={"AWS_CONFIG_FILE": str(tmp_path / "config")})
    assert result.exit_code == 4
    says.within(result.stderr)
    assert "expired" in result.stderr
    assert SECRET not in result.stderr


def test_without_a_region_it_is_asked_for(baton: Baton, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    result = baton("--aws", "tools")
    assert (result.exit_code, "AWS_REGION" in result.stderr) == (4, True)


@pytest.mark.parametrize(
    ("url", "region"),
    [
        (EXECUTE, "eu-central-1"),
        (EXECUTE + "/stage/", "eu-central-1"),
        ("https://abc-vpce-1.execute-api.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("https://abc.execute-api.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("https://abc.execute-api.eu-central-1.amazonaws.com.evil.example", ""),
        ("https://execute-api.example", ""),
        ("http://127.0.0.1:8080", ""),
    ],
)
def test_the_region_is_part_of_an_address_of_api_gateway(url: str, region: str) -> None:
    assert region_of(url) == region


def test_an_address_of_api_gateway_without_a_token_is_signed_for() -> None:
    assert find_connection(EXECUTE, None) == Connection(EXECUTE, aws=True, region="eu-central-1")
    assert find_connection(EXECUTE, "mine") == Connection(EXECUTE, "mine")
    assert find_connection(EXECUTE, "mine", "aws").aws


def test_no_other_address_is_signed_for_unasked() -> None:
    with pytest.raises(CommandFailed, match="no token") as failure:
        find_connection("https://api.example", None)
    assert "--aws" in failure.value.more[0]
    assert find_connection("https://api.example", None, "aws") == Connection(
        "https://api.example", aws=True, region="eu-west-3"
    )


def test_a_token_can_be_insisted_on() -> None:
    with pytest.raises(CommandFailed, match="no token"):
        find_connection(EXECUTE, None, "token")


def test_a_way_that_is_none_is_refused(baton: Baton) -> None:
    result = baton("tools", env={"BATON_AUTH": "kerberos"})
    assert (result.exit_code, "token or aws" in result.stderr) == (2, True)


@pytest.mark.parametrize("url", ["api.example", "ftp://api.example", "http://"])
def test_an_address_that_is_none_is_refused(baton: Baton, url: str) -> None:
    result = baton("tools", env={"BATON_URL": url})
    assert (result.exit_code, "https://HOST" in result.stderr) == (2, True)
