"""Graphs with limits, for the tests of limits. No assertions here."""

from __future__ import annotations

import msgspec

from baton.core.conditions.model import Compare
from baton.core.decide.program import Program
from baton.core.graph.graph import Cap
from baton.core.nodes.registry import KINDS


def limited(of: Program, **limits: Cap) -> Program:
    """The same with limits of the saga."""
    return Program(msgspec.structs.replace(of.graph, limits=limits), KINDS)


def again() -> Compare:
    """A condition that always holds."""
    return Compare(left=1, operator="==", right=1)
