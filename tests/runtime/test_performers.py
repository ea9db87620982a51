"""Every command of the core is performed: the runner knows a performer for each."""

from __future__ import annotations

from baton.core.decide.commands import Command
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.worker.runner import Runner
from tests.kit.toolbox import Books, make_registry
from tests.kit.world import World


def test_every_command_has_its_performer() -> None:
    world = World(make_registry(Books()))
    runner = Runner(InvocationScope(world.engine(world.process("w")), Invocation("w", 0, 60_000)))
    assert set(runner._performers) == set(Command.__subclasses__())
