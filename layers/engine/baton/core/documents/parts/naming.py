"""The patterns of names. All functions use them, so nothing here loads pydantic."""

NODE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
WORKFLOW_NAME = r"^[a-z][a-z0-9-]{0,63}$"
ANY_WORKFLOW_NAME = WORKFLOW_NAME[:-1] + r"(\.[A-Za-z_][A-Za-z0-9_]{0,63})?$"
"""Of a workflow, or of a graph in its document: `NAME.GRAPH`."""
WORKFLOW_REFERENCE = r"^[a-z][a-z0-9-]{0,63}(@[0-9]{1,9})?$"
