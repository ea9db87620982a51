"""Which Baton the commands speak to: the environment, or the file that `baton up` leaves.

Belongs here: finding, writing and removing an address with its token. No HTTP.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from baton.cli.exits import DENIED, USAGE, Failed

LOCAL_FILE = Path(".baton/local.json")
TEMPLATE = "template.yaml"


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an API, and the token to show there (kept out of any printed form)."""

    url: str
    token: str = field(repr=False)


def find_connection(url: str | None, token: str | None) -> Connection:
    """What the command line or the environment says; where it is silent, what `baton up` left."""
    local = {} if url and token else _local()
    # A token belongs to its address: that of the local run is not shown to another one.
    if not url:
        url, token = local.get("url"), token or local.get("token")
    elif not token and local.get("url") == url:
        token = local.get("token")
    if not url or not token:
        missing = "address" if not url else "token"
        raise Failed(
            DENIED,
            f"no {missing} of an API is known",
            "Start one here with `baton up`, or set BATON_URL and BATON_TOKEN.",
        )
    return Connection(url.rstrip("/"), token)


def write_local(root: Path, connection: Connection) -> Path:
    """Leave an address for the commands of this directory; only its owner can read it."""
    path = root / LOCAL_FILE
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    text = json.dumps({"url": connection.url, "token": connection.token, "pid": os.getpid()}, indent=2)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path


def remove_local(root: Path) -> None:
    """Take the address back, unless another run has left its own there since."""
    path = root / LOCAL_FILE
    try:
        if json.loads(path.read_text()).get("pid") == os.getpid():
            path.unlink()
    except (OSError, ValueError):
        return


def project_root() -> Path:
    """The directory of the template: this one or the nearest above it. Raises Failed."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        if (directory / TEMPLATE).is_file():
            return directory
    raise Failed(USAGE, f"there is no {TEMPLATE} in {here} or above it", "Run this inside a Baton project.")


def _local() -> dict[str, str]:
    here = Path.cwd()
    for directory in (here, *here.parents):
        path = directory / LOCAL_FILE
        if path.is_file():
            try:
                found = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                raise Failed(DENIED, f"{path} cannot be read: {error}") from error
            return found if isinstance(found, dict) else {}
    return {}
