"""Every command of the core is performed: the runner knows a performer for each."""

from __future__ import annotations

import inspect

from baton.core.decide.commands import Command
from baton.runtime.worker import runner


def test_every_command_has_its_performer() -> None:
    commands = {command.__name__ for command in Command.__subclasses__()}
    named = {name for name in commands if f"{name}:" in inspect.getsource(runner.Runner.__init__)}
    # They are performed by name, because they come before the append.
    before = {command.__name__ for command in Command.__subclasses__() if command.when == "before"}
    assert named | before == commands
    assert all(f"of({name})" in inspect.getsource(runner.Runner) for name in before)
