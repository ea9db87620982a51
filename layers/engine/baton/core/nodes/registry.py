"""The kinds of node that there are, by name. The only file that imports them."""

from __future__ import annotations

from types import MappingProxyType

from baton.core.nodes.base import Kind, Kinds
from baton.core.nodes.child import ChildKind
from baton.core.nodes.task import TaskKind
from baton.core.nodes.value import ValueKind
from baton.core.nodes.wait import WaitKind

_ALL: tuple[Kind, ...] = (TaskKind(), ValueKind(), WaitKind(), ChildKind())
KINDS: Kinds = MappingProxyType({kind.name: kind for kind in _ALL})
