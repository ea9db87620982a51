"""Every command of the core is performed: the runner knows a performer for each."""

from __future__ import annotations

from baton.core.decide.commands import CancelChildren, Command, StartHandler
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.worker.runner import Runner
from tests.kit.toolbox import Books, make_registry
from tests.kit.world import World

CALLED_BY_NAME = {CancelChildren, StartHandler}
"""Those that come before the append. Each has its own place in the runner, and tests of what it does."""


def test_every_command_has_its_performer() -> None:
    world = World(make_registry(Books()))
    runner = Runner(InvocationScope(world.engine(world.process("w")), Invocation("w", 0, 60_000)))
    assert set(runner._performers) | CALLED_BY_NAME == set(Command.__subclasses__())
    assert all(
        (command.when == "before") == (command in CALLED_BY_NAME) for command in Command.__subclasses__()
    )
