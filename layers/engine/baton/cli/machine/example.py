"""The example that `baton up` starts, with its outside services."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from baton.cli.documents.app import DEFAULT_APP
from baton.client.exits import NO, CommandFailed
from baton.local.functions import parameters_of, variables_of
from baton.settings import local_key_variable

MODULES = {
    "TableStackUrl": "examples.services.table_stack",
    "OpenDeliveryUrl": "examples.services.open_delivery",
}
"""Modules of the services, by the template parameter for their address."""

PAGE, PAGE_MODULE = "dinner-page", "examples.guest"
"""Page of the example's guest, by its own name. No parameter of the template contains its address."""

MODELS, PROFILE = "ModelProfiles", "scripted"
PROVIDER = {MODELS: "examples.services.concierge"}
"""The scripted provider of models, on loopback. Its credential is the name of its profile, never one of the
shell's.
"""

FLAKY = {"OpenDeliveryUrl": ("--busy-every", "9")}
"""Further arguments of a service: it refuses every ninth request with 503."""

START_S = 20
END_S = 4


@dataclass(slots=True)
class _Service:
    parameter: str
    name: str
    url: str
    process: asyncio.subprocess.Process


class Services:
    """The services of one run. Entering starts them, leaving ends them. `parameters`: addresses."""

    def __init__(
        self,
        root: Path,
        modules: Mapping[str, str] = MODULES,
        arguments: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._root = root
        self._modules = modules
        self._arguments = arguments
        self._running: list[_Service] = []

    @staticmethod
    def exist(root: Path) -> bool:
        """Return true if this project has the example's services."""
        return all((root / f"{module.replace('.', '/')}.py").is_file() for module in MODULES.values())

    @property
    def parameters(self) -> dict[str, str]:
        return {service.parameter: service.url for service in self._running if service.parameter != PAGE}

    @property
    def urls(self) -> dict[str, str]:
        """Return the address of each service, by its own name."""
        return {service.name: service.url for service in self._running}

    async def tell(self, name: str, said: Mapping[str, str]) -> None:
        """Send a service a line of JSON on its standard input, which no other program reads."""
        (service,) = (one for one in self._running if one.name == name)
        assert service.process.stdin is not None
        service.process.stdin.write(json.dumps(said).encode() + b"\n")
        with contextlib.suppress(ConnectionError):  # it has ended, and said why
            await service.process.stdin.drain()

    async def __aenter__(self) -> Self:
        try:
            started = await asyncio.gather(*(self._start(*item) for item in self._modules.items()))
        except BaseException:
            await self._end()
            raise
        self._running.sort(key=lambda service: [s.parameter for s in started].index(service.parameter))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def _start(self, parameter: str, module: str) -> _Service:
        # In a process group of its own, so that Ctrl-C reaches only us and the books can still be read; its
        # standard input is its lifeline: closed by whatever way we end, it ends too.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, "--port", "0", "--until-eof", *self._arguments.get(parameter, ()),
            cwd=self._root, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        service = _Service(parameter, module, "", process)
        self._running.append(service)
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), START_S)
            said = json.loads(line)
            service.name, service.url = str(said["service"]), str(said["url"])
        except (TimeoutError, ValueError, KeyError) as error:
            raise CommandFailed(NO, f"{module} did not start (it says above why)") from error
        return service

    async def _end(self) -> None:
        for service in self._running:
            if service.process.stdin is not None:
                service.process.stdin.close()
        for service in self._running:
            try:
                await asyncio.wait_for(service.process.wait(), END_S)
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    service.process.kill()
                await service.process.wait()
        self._running.clear()


INTENTIONS, WORKFLOW = "IntentionWorkflow", "concierge"
GUEST, ROLES = "guest", ("read", "run", "answer")
_KEYS = local_key_variable("MODEL", "")


@dataclass(frozen=True, slots=True)
class ExamplePrograms:
    """Parts of the example. modules: programs by the parameter for their address. scripted: true if a
    scripted model answers, because there is no key.
    """

    modules: Mapping[str, str]
    scripted: bool

    def parameters(self, services: Services) -> dict[str, str]:
        """Return the template's parameters, unless overridden."""
        found = dict(services.parameters)
        if self.scripted:
            found[MODELS] = f"{PROFILE}={found[MODELS]}/v1"
        return found | ({INTENTIONS: WORKFLOW} if PAGE in self.modules else {})

    @property
    def variables(self) -> dict[str, str]:
        """Return the credentials. That of the scripted model is the name of its profile."""
        return {local_key_variable("MODEL", PROFILE): PROFILE} if self.scripted else {}


def example_programs(
    root: Path, app: str, parameters: Mapping[str, str], shell: Mapping[str, str]
) -> ExamplePrograms:
    """Return the parts. The guest's page and its model belong to the example's own application."""
    if app != DEFAULT_APP or not (root / PAGE_MODULE.replace(".", "/") / "__main__.py").is_file():
        return ExamplePrograms(MODULES, scripted=False)
    has_model = MODELS in {**parameters, **parameters_of(shell)} or any(
        name.startswith(_KEYS) for name in variables_of(shell)
    )
    modules = MODULES | {PAGE: PAGE_MODULE} | ({} if has_model else PROVIDER)
    return ExamplePrograms(modules, scripted=not has_model)
