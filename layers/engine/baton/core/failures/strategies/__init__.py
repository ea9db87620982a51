"""Reactions to a failure, one file a strategy. base.py has their class, registry.py lists them, ladder.py
walks them.

Only the registry imports the strategies. A step that does not fail loads base.py alone.
"""
