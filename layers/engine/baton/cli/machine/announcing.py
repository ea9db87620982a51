"""What `baton up` says once everything runs: where it is, and commands to copy that start a saga of what is there."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton.client.api import Api
from baton.client.connection import LOCAL_FILE, Connection, Owner
from baton.client.program import typed
from baton.core.conditions.examples import example_of
from baton.words.text import plain

FIRST = "dinner"  # the example of this project, whose services are started with it


@dataclass(frozen=True, slots=True)
class Trial:
    """A workflow to start, and the input for it as the only item; None where no input is known to fit."""

    workflow: str
    given: tuple[Any] | None


async def to_try(api: Api, names: Sequence[str]) -> Trial | None:
    """The first workflow for which an input can be given, else the first one; None where there is none."""
    first: Trial | None = None
    for name in sorted(names, key=lambda name: name != FIRST):
        schema = (await api.workflow(name))["input"]
        trial = Trial(name, ({},) if schema is None else example_of(schema))
        if trial.given is not None:
            return trial
        first = first or trial
    return first


@dataclass(frozen=True, slots=True)
class Bus:
    """From which events are taken, and the sources and the tenant that they are taken of and for."""

    sources: Sequence[str]
    tenant: str
    name: str

    @classmethod
    def of(cls, parameters: Mapping[str, str | list[str]]) -> Bus | None:
        """None if none are taken. `parameters` are those of the template."""
        tenant = parameters.get("EventTenant")
        if not tenant:
            return None
        return cls(list(parameters["EventSources"]), str(tenant), str(parameters["EventSourceBus"]))

    def entry(self) -> str:
        """A request of PutEvents, of the first source that everyone may use; those of AWS are refused."""
        source = next((source for source in self.sources if not source.startswith("aws.")), "SOURCE")
        entry = {"Source": source, "DetailType": "TYPE", "Detail": "{}", "EventBusName": self.name}
        return json.dumps({"Entries": [entry]})


@dataclass(frozen=True, slots=True)
class Running:
    """What runs, and where. `outside` are services by name; `owner` runs in this directory, too, and did so before.

    `data` keeps the sagas, if anything does. `page` is that of the example's guest; `scripted`: its model is.
    """

    connection: Connection
    endpoint: str
    logs: Path
    workflows: Sequence[str]
    outside: Mapping[str, str]
    owner: Owner | None
    data: Path | None = None
    page: str = ""
    scripted: bool = False
    bus: Bus | None = None

    def lines(self) -> Iterator[str]:
        """Where everything is."""
        none_yet = f"none yet: put a .yaml file into your app, or `{typed('deploy-workflow FILE')}`"
        where = f"also in {LOCAL_FILE}, where the baton command finds it"
        if self.owner:
            where = f"see below: {LOCAL_FILE} belongs to {self.owner.url}, process {self.owner.pid}, where commands go by themselves"
        yield "Baton is running. Ctrl-C stops it."
        yield f"  API            {self.connection.url}   (AWS endpoint {self.endpoint})"
        yield f"  console        {self.connection.url}/console"
        for name, url in self.outside.items():
            yield f"  {name:<14} {url}/books"
        if self.page:
            yield f"  dinner page    {self.page}   asks for an evening in words, as the user guest"
        if self.scripted:
            yield "  model          scripted, because OPENAI_API_KEY is not set: it plans evenings and nothing else"
        yield f"  workflows      {', '.join(self.workflows) or none_yet}"
        if self.bus:
            bus = self.bus
            yield f"  events         of {', '.join(bus.sources)} on the bus {bus.name} reach workflows of the tenant {bus.tenant}; one that the rule does not take is told here"
        yield f"  token          {where}"
        yield f"  other users    {typed('token NAME --group GROUP')} prints a token of theirs, to show with --token"
        yield f"  logs           {self.logs}"
        if self.data:
            yield f"  data           {self.data}; a saga whose step was cut off by the last stop goes on when its lease is over, in a minute or two"

    def commands(self, trial: Trial | None) -> Iterator[str]:
        """Lines for a shell: each does what it says as it stands, unless a comment says what is missing."""
        url, show = self.connection.url, '-H "Authorization: Bearer $BATON_TOKEN"'
        yield f"export BATON_TOKEN={self.connection.token}"
        if self.owner:
            yield f"export BATON_URL={url}"
        if trial is None:
            yield f"curl -s {url}/workflows {show}"
            yield from self._put_event()
            return
        name, given = trial.workflow, (trial.given or ({},))[0]
        if trial.given is None:
            yield f"# `{name}` needs an input of yours: {typed(f'workflows {shlex.quote(name)}')} says which"
        body = json.dumps({"workflow": name, "input": given})
        yield f"curl -s {url}/sagas {show} -H 'Content-Type: application/json' -d {_quoted(body)}"
        yield f"curl -s {url}/sagas {show}"
        yield from self._put_event()
        yield ""
        option = f" --input {_quoted(json.dumps(given))}" if given != {} or trial.given is None else ""
        yield typed(f"start {shlex.quote(name)} --watch") + option

    def _put_event(self) -> Iterator[str]:
        if self.bus:
            yield "# an event of EventBridge; put in the type and the data that a rule of yours is for"
            headers = "-H 'X-Amz-Target: AWSEvents.PutEvents' -H 'Content-Type: application/x-amz-json-1.1'"
            yield f"curl -s {self.endpoint} {headers} -d {_quoted(self.bus.entry())}"


def farewell(data: Path | None) -> tuple[str, str]:
    """What a stop waits for, and what becomes of the sagas. `data` keeps them, if anything does."""
    if data is None:
        sagas = f"The sagas are forgotten; to keep them the next time: {typed('up --data DIR')}"
    else:
        again = typed(f"up --data {shlex.quote(str(data))}")
        sagas = f"The sagas are kept in {data}, and the open ones go on with: {again}"
    return "Stopping the functions and the AWS; a step that is under way is cut off …", sagas


def _quoted(text: str) -> str:
    return shlex.quote(plain(text))
