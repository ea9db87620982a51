"""How this Baton was installed, written as a line of requirements.txt, so that a project gets the same one.

Reads what installers leave behind (PEP 610, direct_url.json). No network.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

DISTRIBUTION = "baton"


def requirement(*extras: str) -> str:
    """The line for the Baton that is running."""
    try:
        found = distribution(DISTRIBUTION)
    except PackageNotFoundError:  # on the path without being installed: a checkout
        return _editable(Path(__file__).parents[4], extras)
    return requirement_of(found, *extras)


def requirement_of(found: Distribution, *extras: str) -> str:
    """The line for an installed distribution.

    A folder, an archive or a repository is named as it was for the installer; without any of these it came from
    an index, by its version.
    """
    name = f"{DISTRIBUTION}[{','.join(extras)}]"
    text = found.read_text("direct_url.json")
    if not text:
        return f"{name}=={found.version}"
    direct: Mapping[str, Any] = json.loads(text)
    url = str(direct["url"])
    if direct.get("dir_info", {}).get("editable"):
        return _editable(Path(unquote(urlsplit(url).path)), extras)
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    if direct.get("subdirectory"):
        url += f"#subdirectory={direct['subdirectory']}"
    return f"{name} @ {url}"


def _editable(folder: Path, extras: tuple[str, ...]) -> str:
    text = f"{folder}[{','.join(extras)}]"
    return "-e " + (shlex.quote(text) if " " in text else text)
