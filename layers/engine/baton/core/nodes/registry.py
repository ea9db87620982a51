"""The kinds of node, by name. The only file that imports them."""

from __future__ import annotations

from baton.core.nodes.agent import AgentKind
from baton.core.nodes.base import Kind
from baton.core.nodes.child import ChildKind, StartKind
from baton.core.nodes.end import EndKind
from baton.core.nodes.fail import FailKind
from baton.core.nodes.function import FunctionKind
from baton.core.nodes.human import HumanKind
from baton.core.nodes.map import MapKind
from baton.core.nodes.model import ModelKind
from baton.core.nodes.subgraph import GraphKind
from baton.core.nodes.task import CallbackKind, TaskKind
from baton.core.nodes.value import ValueKind
from baton.core.nodes.wait import WaitKind

_ALL = (
    TaskKind(),
    ValueKind(),
    WaitKind(),
    HumanKind(),
    ChildKind(),
    GraphKind(),
    FailKind(),
    EndKind(),
    ModelKind(),
    AgentKind(),
    MapKind(),
    FunctionKind(),
    CallbackKind(),
    StartKind(),
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _ALL}
