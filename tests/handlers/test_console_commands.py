"""Every page names the `baton` and the `curl` command that does the same, as the command line and the API take them."""

from __future__ import annotations

import re
import shlex
from html import unescape
from urllib.parse import parse_qs, urlsplit

import click
import pytest

from baton.cli.commands import main
from baton.console.site import PAGES
from baton.web.routes import ROUTES
from tests.handlers.browsing import PARAMETERS as _PARAMETERS
from tests.handlers.browsing import SECRET, VARIABLE, Browser
from tests.handlers.http import Http
from tests.handlers.sagas import ADA, GRACE, asking
from tests.handlers.test_console_operations import troubled

__all__ = ["troubled"]
PARAMETERS = _PARAMETERS
NAMES = {
    "{saga}": GRACE.id,
    "{version}": "1",
    "{node}": "say",
    "{ask}": "0.say.3",
    "{letter}": ADA.id,
    "{breaker}": "payments",
    "{tool}": "trial.echo",
    "{kind}": "wait",
    "schedules/{name}": "schedules/report",
    "{name}": "echo",
}
NOT_HERE = {"sagas/{saga}/log.json", "sagas/{saga}/values/{digest}"}
"""A download, and a page of a value beside a log: see test_console.py."""


@pytest.fixture
def browser(http: Http, monkeypatch: pytest.MonkeyPatch) -> Browser:
    monkeypatch.setenv(VARIABLE, SECRET)
    return Browser(http)


def addresses(incident: str) -> list[str]:
    found = []
    for page in PAGES:
        if page.method == "GET" and page.path not in NOT_HERE:
            path = page.path.replace("{incident}", incident)
            for name, value in NAMES.items():
                path = path.replace(name, value)
            found.append(f"/console/{path}".rstrip("/"))
    return found


def test_every_page_names_commands_that_exist(http: Http, troubled: Browser) -> None:
    asking(http.engine, GRACE)
    incident, *_ = http.get("/incidents").body["incidents"]
    for path in [*addresses(incident["id"]), "/console/sagas?status=open&label=a%3Db&workflow=echo"]:
        seen = troubled.get(path)
        assert seen.status == 200, (path, seen.text)
        lines = [line for line in shell(seen.html) if not line.startswith("for ")]
        tools = {line.split()[0] for line in lines}
        assert tools == {"baton", "curl"} or path.startswith("/console/bulk/"), path
        for line in lines:
            check(line)


def shell(html: str) -> list[str]:
    blocks = re.findall(r'<pre class="shell" tabindex="0"><code>(.*?)</code>', html, re.DOTALL)
    return [line for block in blocks for line in unescape(block).splitlines()]


def check(line: str) -> None:
    """Raises what the command line says, or that the API has no such route."""
    program, *words = shlex.split(line)
    if program == "baton":
        command: click.Command = main
        context = click.Context(main)
        while isinstance(command, click.Group) and (words or not command.invoke_without_command):
            name, found, words = command.resolve_command(context, words)
            assert found is not None
            command, context = found, click.Context(found, info_name=name, parent=context)
        command.make_context(context.info_name, words, parent=context.parent)
        return
    method = words[words.index("-X") + 1] if "-X" in words else "GET"
    (address,) = [word for word in words if word.startswith("https://api.test/")]
    place = urlsplit(address)
    fits = [
        route
        for route in ROUTES
        if route.method == method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), place.path)
    ]
    assert fits, line
    assert set(parse_qs(place.query)) <= {one.name for route in fits for one in route.query}, line
