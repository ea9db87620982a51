"""Program of a forker's interpreter, apart from forker.py, which the worker has no need to load."""

from __future__ import annotations

from typing import Final

# The worker's own way of finding modules is in no variable: on Lambda its bootstrap makes it.
PROGRAM: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1])['path']; "
    "from baton.tools.processes.forker import main; main(sys.argv[1])"
)
