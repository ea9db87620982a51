"""The shape of a workflow document: pydantic models (models.py and its parts), and what is wrong with it (read.py).

What a document means, and whether it makes sense, is the compiler's.
"""

from baton.core.documents.models import WorkflowModel
from baton.core.documents.nodes.node_model import KINDS, KINDS_TO_COME, NodeModel
from baton.core.documents.parts.bounds import GuardrailsModel, LimitModel
from baton.core.documents.parts.control import BranchModel, JoinModel, LoopModel, RuleModel
from baton.core.documents.parts.fields import (
    DEFINED,
    MAX_NODES,
)
from baton.core.documents.read import as_written, read_definition

__all__ = [
    "DEFINED",
    "KINDS",
    "KINDS_TO_COME",
    "MAX_NODES",
    "BranchModel",
    "GuardrailsModel",
    "JoinModel",
    "LimitModel",
    "LoopModel",
    "NodeModel",
    "RuleModel",
    "WorkflowModel",
    "as_written",
    "read_definition",
]
