"""The kinds of node that there are, by name. The only file that imports them."""

from __future__ import annotations

from types import MappingProxyType

from baton.core.nodes.base import Kind, Kinds
from baton.core.nodes.pass_value import PassKind
from baton.core.nodes.task import TaskKind
from baton.core.nodes.wait import WaitKind
from baton.core.nodes.workflow import WorkflowKind

_ALL: tuple[Kind, ...] = (TaskKind(), PassKind(), WaitKind(), WorkflowKind())
KINDS: Kinds = MappingProxyType({kind.name: kind for kind in _ALL})
