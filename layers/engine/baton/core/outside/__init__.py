"""Events from outside: what one is. What a workflow does with them is in core/graph/outside.py."""
