"""A project of one's own: its environment, and its tests and workflows tried out in a process of its own.

No assertions about what is tried out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docs.pages import ROOT

# The environment of a project of one's own: it has pytest and what Baton adds to it, and nothing is written beside its sources.
OF_ITS_OWN = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "baton.testing.pytest_plugin",
}
# In one process, because to import Baton takes longer than either. Arguments of pytest may follow.
TESTED_AND_CHECKED = (
    "-c",
    "import sys, pytest; failed = pytest.main(sys.argv[1:]); from baton.cli import main; sys.exit(failed or main(['check']))",
    *("-q", "-p", "no:cacheprovider"),
)


def tried_out(folder: Path, files: Mapping[str, str]) -> str:
    """Return what the tests of these files print, and `baton check`."""
    for path, text in {**files, "layers/app/sagas/__init__.py": ""}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    path = os.pathsep.join(map(str, (ROOT / "layers/engine", folder / "layers/app")))
    done = subprocess.run(
        [sys.executable, *TESTED_AND_CHECKED, "--rootdir", ".", "tests"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, **OF_ITS_OWN},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
