"""A web page in the developer's browser calls no server of the local run, wherever the page is from."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from baton.local.functions import FILE, is_signed_by, local_key
from baton.local.processes import is_simple, request_refusal
from tests.kit.sentences import Says

HERE = "127.0.0.1:4567"


def why(method: str = "POST", *, programs_only: bool = True, host: str = HERE, **headers: Any) -> str:
    pairs = [("Host", host), *((name.replace("_", "-"), value) for name, value in headers.items())]
    encoded = [(name.encode(), value.encode()) for name, value in pairs]
    return request_refusal(method, encoded, 4567, programs_only=programs_only)


@pytest.mark.parametrize(
    "host", [HERE, "localhost:4567", "[::1]:4567", "bucket.localhost:4567", "host.docker.internal:9"]
)
@pytest.mark.parametrize("programs_only", [True, False])
def test_programs_of_this_machine_are_served(host: str, programs_only: bool) -> None:
    assert why(host=host, programs_only=programs_only) == ""


@pytest.mark.parametrize(
    "host", ["", "evil.example:4567", "127.0.0.1", "127.0.0.1:80", "127.0.0.1.evil.example:4567", "localhost.evil.example:4567", "[", "a:b"]
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("programs_only", [True, False])
def test_a_name_that_leads_here_by_a_pages_own_dns_is_refused(
    host: str, method: str, programs_only: bool
) -> None:
    assert "Host" in why(method, host=host, programs_only=programs_only)


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PUT"])
@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:3000"}, {"sec_fetch_site": "cross-site"},
     {"sec_fetch_site": "same-site"}],
)  # fmt: skip
def test_no_page_calls_what_is_for_programs(method: str, headers: dict[str, Any]) -> None:
    assert why(method, **headers) != ""


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec_fetch_site": "cross-site"},
     {"origin": "http://127.0.0.1.evil.example"}, {"origin": "http://127.0.0.1", "sec_fetch_site": "cross-site"}],
)  # fmt: skip
def test_no_page_of_another_site_changes_anything_by_the_api(headers: dict[str, Any], says: Says) -> None:
    says(why("POST", programs_only=False, **headers))
    assert why("GET", programs_only=False, **headers) == ""


def test_pages_of_this_machine_use_the_api_and_links_lead_to_the_console() -> None:
    assert why("POST", programs_only=False, origin="http://localhost:3000", sec_fetch_site="same-site") == ""
    assert why("POST", programs_only=False, origin="null", sec_fetch_site="same-origin") == ""
    assert why("GET", programs_only=False, sec_fetch_site="cross-site") == ""


def test_a_type_that_any_page_may_send_is_known() -> None:
    assert all(map(is_simple, ("text/plain", "Text/Plain;charset=UTF-8", "multipart/form-data; boundary=x")))
    assert not any(map(is_simple, ("", "application/json", "application/octet-stream")))


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    key = local_key(tmp_path / "new")
    assert local_key(tmp_path / "new") == key
    assert stat.S_IMODE((tmp_path / "new" / FILE).stat().st_mode) == 0o600
    assert local_key(tmp_path) != key
    signed = f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/lambda/aws4_request, SignedHeaders=host"
    assert is_signed_by(signed, key)
    assert not any(
        is_signed_by(one, key)
        for one in ("", signed.replace(key, "local"), f"Bearer {key}", f"{signed[:40]}")
    )


def test_a_key_that_was_never_written_is_written(tmp_path: Path) -> None:
    (tmp_path / FILE).touch(0o600)
    assert local_key(tmp_path) == local_key(tmp_path) != ""
