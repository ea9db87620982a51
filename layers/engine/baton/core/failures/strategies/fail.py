"""fail: the end after the last strategy of a ladder. The step has failed."""

from __future__ import annotations

from baton.core.failures.policy import FAIL
from baton.core.failures.strategies.base import Strategy


class Fail(Strategy):
    name = FAIL
    says = "The step has failed."
    ends = True
