"""Where `std.http` may go: hosts that the deployment names, public addresses, and headers that are arguments."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from baton.adapters import httpx_exchange
from baton.adapters.http_client import AllowedHosts, LazyHttpClient
from baton.adapters.httpx_exchange import AddressRefused, check_address
from tests.tools.outside import Outside, failure, perform, services

HTTP = services()

# Entries of the list, a host with its port, and whether that may be asked for.
NAMES = [
    ("", "api.example.com:443", False),
    ("api.example.com", "api.example.com:443", True),
    ("api.example.com", "API.Example.Com.:8443", True),
    ("api.example.com:443", "api.example.com:443", True),
    ("api.example.com:443", "api.example.com:80", False),
    ("api.example.com", "evil-api.example.com:443", False),
    ("api.example.com", "api.example.com.evil.org:443", False),
    ("api.example.com", "example.com:443", False),
    ("*.example.com", "api.example.com:443", True),
    ("*.example.com", "a.b.example.com:443", True),
    ("*.example.com", "example.com:443", False),
    ("*.example.com", "evilexample.com:443", False),
    ("*.example.com:8443", "a.example.com:8443", True),
    ("*.example.com:8443", "a.example.com:443", False),
    ("a.example b.example", "b.example:1", True),
    ("*", "anything.example:1", True),
    ("*", "10.0.0.1:1", True),
    ("127.0.0.1:8080", "127.0.0.1:8080", True),
    ("127.0.0.1:8080", "127.0.0.1:8081", False),
    ("127.0.0.1:8080", "localhost:8080", False),
    ("127.0.0.1", "127.0.0.2:80", False),
    ("10.0.0.0/8", "10.9.8.7:80", True),
    ("10.0.0.0/8", "11.0.0.1:80", False),
    ("[::1]:80", "[::1]:80", True),
    ("[::1]:80", "[::1]:81", False),
    ("fd00::/8", "[fd12::1]:443", True),
    ("fd00::/8", "[fe12::1]:443", False),
    ("999.0.0.0/99", "10.0.0.1:80", False),
    ("127.0.0.1", "2130706433:80", False),
    ("127.0.0.1", "0x7f000001:80", False),
    ("127.0.0.1", "127.1:80", False),
]


@pytest.mark.parametrize(("entries", "place", "may"), NAMES)
def test_a_host_is_called_if_the_list_names_it(entries: str, place: str, may: bool) -> None:
    host, _, port = place.rpartition(":")
    assert AllowedHosts(entries.split()).name(host, int(port)) is may


PUBLIC = ["93.184.216.34", "2606:2800::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
PRIVATE = [
    "127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.2.1", "198.18.0.1",
    "240.0.0.1", "255.255.255.255", "fd12::1", "fc00::1", "::ffff:10.1.2.3", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
    "2002:0a01:0203::1", "64:ff9b:1::1", "2001:db8::1", "fec0::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_called(address: str) -> None:
    check_address(ip_address(address), 443, AllowedHosts(["*"]))


@pytest.mark.parametrize("address", PRIVATE)
def test_other_addresses_are_called_only_if_the_list_names_them(address: str) -> None:
    for entries in ([], ["*"], ["a.example"], ["11.0.0.0/8"]):
        with pytest.raises(AddressRefused):
            check_address(ip_address(address), 443, AllowedHosts(entries))
    check_address(ip_address(address), 443, AllowedHosts(["0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize("url", ["https://api.example/x", "https://127.0.0.1/", "http://localhost:1/"])
def test_without_a_list_nothing_is_called(url: str) -> None:
    error = failure("std.http", services(http=LazyHttpClient(plain=["*"])), url=url)
    assert (error.code, "`HttpHosts`" in error.message) == ("permission_denied", True)


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"])
def test_any_host_is_any_public_host(host: str, server: Outside) -> None:
    of = services(http=LazyHttpClient(["*"], plain=["*"]))
    url = server.page("/").replace("127.0.0.1", host)
    before = len(server.seen)
    error = failure("std.http", of, url=url)
    assert error.code == "permission_denied"
    assert len(server.seen) == before


def test_a_name_on_the_list_that_leads_inside_is_not_called(
    server: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def resolve(host: str, port: int) -> list[Any]:
        asked.append(host)
        return [
            ip_address("93.184.216.34") if len(asked) % 2 else ip_address("127.0.0.1"),
            ip_address("127.0.0.1"),
        ]

    monkeypatch.setattr(httpx_exchange, "_resolve", resolve)
    url = server.page("/").replace("127.0.0.1", "rebinds.example")
    before = len(server.seen)
    for number in (1, 2):
        of = services(http=LazyHttpClient(["rebinds.example"], plain=["*"]))
        assert failure("std.http", of, url=url).code == "permission_denied"
        assert len(asked) == number, "the name is resolved once, and every address of it is looked at"
    assert len(server.seen) == before


def test_a_name_that_leads_to_an_address_on_the_list_is_called(
    server: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> list[Any]:
        return [ip_address("127.0.0.1")]

    monkeypatch.setattr(httpx_exchange, "_resolve", resolve)
    place = server.url.removeprefix("http://")
    of = services(http=LazyHttpClient(["inside.example", place], plain=["inside.example"]))
    url = server.page("/").replace("127.0.0.1", "inside.example")
    assert perform("std.http", of, url=url)["status"] == 200
    assert failure("std.http", of, url=url.replace("inside", "other")).code == "permission_denied"


def test_a_redirect_leads_no_further_than_the_list(server: Outside) -> None:
    of = services(http=LazyHttpClient([server.url.removeprefix("http://")]))
    there = server.page("/there")
    assert perform("std.http", of, url=server.page("/here", 302, location=there))["status"] == 200
    for location in (there.replace("127.0.0.1", "localhost"), "http://127.0.0.1:1/", "https://api.example/"):
        before = len(server.seen)
        error = failure("std.http", of, url=server.page("/here", 302, location=location))
        assert (error.code, len(server.seen)) == ("permission_denied", before + 1)


@pytest.mark.parametrize(
    "name",
    [
        "Host", "host", "HOST", "Content-Length", "content_length", "Transfer-Encoding", "Connection", "Upgrade", "TE",
        "Trailer", "Expect", "Keep-Alive", "Proxy-Authorization", " Host", "Host ", "Baton-Tenant", "baton-signature",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_headers_that_say_what_a_request_is_are_no_arguments(server: Outside, name: str, method: str) -> None:
    before = len(server.seen)
    error = failure("std.http", HTTP, url=server.page("/"), method=method, headers={name: "hush"})
    assert error.code == "input_invalid"
    assert "hush" not in error.message
    assert len(server.seen) == before
