"""What is to run: the compiled graph, and what follows from its shape alone.

Nothing here knows a log: what has happened is in core/log/.
"""
