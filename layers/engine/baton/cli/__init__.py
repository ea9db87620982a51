"""The `baton` command: a client of a running Baton for people and programs at a terminal.

It parses arguments, calls the HTTP API and shows answers. The API supports every operation of this package.
"""

from baton.cli.commands import main

__all__ = ["main"]
