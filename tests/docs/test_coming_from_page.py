"""The page for those who come from another system: its ported workflows run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import OF_ITS_OWN, ROOT, Page

PAGE = Page(ROOT / "docs/coming-from.md")


def test_what_it_ports_runs(tmp_path: Path) -> None:
    for path, text in (PAGE.files() | {"layers/app/sagas/__init__.py": ""}).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    path = os.pathsep.join(map(str, (ROOT / "layers/engine", tmp_path / "layers/app")))
    environment = {**os.environ, "PYTHONPATH": path, **OF_ITS_OWN}
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "tests")
    check = ("-c", "from baton.cli import main; main()", "check", "-q")
    for command, said in ((pytest, "7 passed"), (check, "ok, settle-claim")):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert said in done.stdout
