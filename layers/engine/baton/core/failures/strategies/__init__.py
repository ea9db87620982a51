"""What can be done about a failure: one file a strategy. base.py says
what one is, registry.py lists them, ladder.py walks.

Only the registry imports the strategies. A step that does not fail loads base.py alone.
"""
