"""Every command of the core is performed: the runner knows a performer for each."""

from __future__ import annotations

from baton.core.decide.decision import Command
from baton.runtime.worker.runner import PERFORMERS


def test_every_command_has_its_performer() -> None:
    assert set(PERFORMERS) == set(Command.__subclasses__())
