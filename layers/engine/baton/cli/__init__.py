"""The `baton` command: what a person or a program says to a running Baton from a terminal.

It reads arguments, calls the HTTP API and shows answers. Whatever this package can do, the API can.
"""

from baton.cli.commands import main

__all__ = ["main"]
