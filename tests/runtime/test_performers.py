"""Every command of the core is performed: the runner knows a performer for each."""

from __future__ import annotations

import inspect

from baton.core.decide.commands import Command
from baton.runtime.performers import cancel_children
from baton.runtime.worker import runner


def test_every_command_has_its_performer() -> None:
    commands = {command.__name__ for command in Command.__subclasses__()}
    named = {name for name in commands if f"{name}:" in inspect.getsource(runner.Runner.__init__)}
    # They are performed by name, because they come before the append.
    before = {command.__name__ for command in Command.__subclasses__() if command.when == "before"}
    assert named | before == commands
    by_name = inspect.getsource(runner.Runner) + inspect.getsource(cancel_children)
    assert all(f"of({name})" in by_name for name in before)
