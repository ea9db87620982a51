"""Workflows written in Python: they become the documents that YAML would have been.

Belongs here: making a document, and (found.py) finding the workflows of an application. Does not belong here: what a
document means and whether it is right, which is the compiler's for all documents alike.
"""

from baton.builder.references import Node, Reference
from baton.builder.workflow import Workflow

__all__ = ["Node", "Reference", "Workflow"]
