"""The script by which pages of the console renew themselves: fetched from the package that carries it, one file of it.

It is not in the repository, and the package is not installed: it needs Django, of which the console uses nothing.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from baton.shipping.programs import BuildFailed, Failed, run, uv

PACKAGE: Final = "django-htmx==1.29.0"
_FILE: Final = "django_htmx/static/django_htmx/htmx-2.min.js"
PLACE: Final = "console/static/htmx.min.js"  # in the package `baton`; git ignores it
_LIMIT_S: Final = 120.0


def put(package: Path) -> None:
    """Write the file into the package `baton` at that place, unless it is there. Raises BuildFailed."""
    place = package / PLACE
    if place.exists():
        return
    with TemporaryDirectory() as folder:
        try:
            command: list[str | Path] = [
                uv(),
                "pip",
                "install",
                "--quiet",
                "--python",
                sys.executable,
                "--no-deps",
            ]
            run([*command, "--only-binary", ":all:", "--target", folder, PACKAGE], _LIMIT_S)
            shutil.copyfile(Path(folder) / _FILE, place)
        except (Failed, OSError) as error:
            raise BuildFailed(f"{PACKAGE}, which carries htmx, cannot be fetched: {error}") from error
