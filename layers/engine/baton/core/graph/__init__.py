"""Compiled graphs, and facts derived from their shape alone.

Nothing here knows a log. Past events are in core/log/.
"""
