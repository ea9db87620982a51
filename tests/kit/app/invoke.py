"""One invocation of the worker function, as a program: `python -m tests.kit.app.invoke MILLISECONDS SAGA-KEY`.

Loads the real handler with the environment it was given, says `ready`, runs it, and prints its answer. A test
can stop and continue the process, as Lambda freezes and thaws one.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

APP = Path(__file__).parents[3] / "functions/worker/app.py"


@dataclass
class Context:
    """Lambda's context object, as far as the handler uses it."""

    milliseconds: int
    aws_request_id: str = "frozen"
    _born: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds - round((time.monotonic() - self._born) * 1_000)


def main() -> None:
    spec = importlib.util.spec_from_file_location("worker_app", APP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    event = {"wakes": [{"saga": sys.argv[2], "v": 1}]}
    sys.stdout.write(json.dumps(module.handler(event, Context(int(sys.argv[1])))) + "\n")


if __name__ == "__main__":
    main()
