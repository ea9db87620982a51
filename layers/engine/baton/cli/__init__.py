"""The `baton` command: what a person or a program says to a running Baton from a terminal.

Belongs here: reading arguments, calling the HTTP API, showing answers. Does not belong here: any
behaviour of a saga; whatever this package can do, the API can.
"""

from baton.cli.commands import main

__all__ = ["main"]
