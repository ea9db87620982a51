"""Connection of the commands to a deployment: its address and credentials.

They come from options, from the environment, or from the file that `baton up` leaves. A saga is named by its
id or by the beginning of its id. This module uses neither HTTP nor AWS.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from baton.client.exits import DENIED, USAGE, CommandFailed
from baton.words.text import plain

NAME = "baton"


def program() -> str:
    """Return `baton` if the shell would find it, else its path, relative if below this directory."""
    own = _own()
    if own is None:
        return NAME
    found = shutil.which(NAME)
    if found and _same(Path(found), own):
        return NAME
    try:
        return shlex.quote(str(own.relative_to(Path.cwd())))
    except ValueError:
        return shlex.quote(str(own))


def command_line(arguments: str) -> str:
    """Return a command line for the user: the program, followed by `arguments`."""
    return f"{program()} {arguments}"


def _own() -> Path | None:
    """Return the running script, or the one installed beside this interpreter."""
    called = Path(sys.argv[0])
    if called.name == NAME and called.is_file():
        return Path(os.path.abspath(called))  # noqa: PTH100  # a link must stay a link: it is what can be typed
    beside = Path(sys.executable).with_name(NAME)
    return beside if beside.is_file() else None


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


LOCAL_FILE = Path(".baton/local.json")
TEMPLATE = "template.yaml"
CONFIG = "baton.toml"
WAYS = ("token", "aws")
# The default address of an API of API Gateway; the region is part of it.
_EXECUTE_API = re.compile(r"\.execute-api\.([a-z0-9-]+)\.(?:vpce\.)?amazonaws\.com(?:\.cn)?$")


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an API, and the token to show there (kept out of any printed form).

    `aws`: no token is shown, requests are signed with the user's AWS credentials, for `region` or, where
    that is empty, for the region of the environment.
    """

    url: str
    token: str = field(default="", repr=False)
    aws: bool = False
    region: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """A running `baton up` whose address is in this directory."""

    pid: int
    url: str

    @property
    def port(self) -> int | None:
        return urlsplit(self.url).port


def find_connection(url: str | None, token: str | None, auth: str | None = None) -> Connection:
    """Return the connection by `auth`: `token`, `aws`, or None, whichever fits. Raises `CommandFailed`."""
    if auth and auth not in WAYS:
        raise CommandFailed(USAGE, f"BATON_AUTH is {auth!r}; it can be {' or '.join(WAYS)}")
    local = {} if url and (token or auth == "aws") else _local()
    url = url and url.rstrip("/")
    if not url:
        # A token belongs to its address: that of the local run is not shown to another one.
        url, token = local.get("url"), token or local.get("token")
    elif not token and local.get("url") == url:
        token = local.get("token")
    if not url:
        raise CommandFailed(
            DENIED,
            "no address of an API is known",
            f"Start one here with `{command_line('up')}`, or set BATON_URL and BATON_TOKEN.",
        )
    _check_address(url)
    region = region_of(url)
    if auth == "aws" or (not token and not auth and region):
        # AWS_DEFAULT_REGION and the profile's region are botocore's to find; AWS_REGION it does not know.
        return Connection(url, aws=True, region=region or os.environ.get("AWS_REGION", ""))
    if not token:
        raise CommandFailed(
            DENIED,
            f"no token for {url} is known",
            "Set BATON_TOKEN, or sign requests with your AWS credentials: --aws.",
        )
    if not (token.isascii() and token.isprintable()) or " " in token:
        # Never shown: a person who sends the message on would quote it.
        raise CommandFailed(
            USAGE, "the token has characters that no token has, such as a space or the end of a line"
        )
    return Connection(url, token)


def _check_address(url: str) -> None:
    """Check the address of a deployment. Raises `CommandFailed`."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # of the port, or of the brackets around IPv6
        is_address = False
    else:
        if "@" in parts.netloc:
            raise CommandFailed(
                USAGE, "an address has no user and no password", "Who asks is said by a token: BATON_TOKEN."
            )
        is_address = is_address and not parts.query and not parts.fragment and not re.search(r"\s", url)
    if not is_address:
        raise CommandFailed(USAGE, f"{url!r} is not an address; write for example https://HOST")


def is_here(url: str) -> bool:
    """Return true for an address of this machine."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def region_of(url: str) -> str:
    """Return the region in an address of API Gateway, empty for other addresses."""
    found = _EXECUTE_API.search(urlsplit(url).hostname or "")
    return found[1] if found else ""


def local_logs(connection: Connection) -> Path | None:
    """Return the folder with the logs of the local run, if that is what the connection is to."""
    found = _local()
    return Path(found["logs"]) if found.get("logs") and found.get("url") == connection.url else None


def write_local(root: Path, connection: Connection, logs: Path | None = None) -> Path:
    """Write an address, and the folder of the logs, for the commands of this directory. Only its owner can
    read the file.
    """
    path = root / LOCAL_FILE
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    found = {"url": connection.url, "token": connection.token, "pid": os.getpid()}
    text = json.dumps(found if logs is None else found | {"logs": str(logs)}, indent=2)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")
    return path


def remove_local(root: Path) -> None:
    """Remove the address, unless another run has written its own since."""
    path = root / LOCAL_FILE
    try:
        if json.loads(path.read_text()).get("pid") == os.getpid():
            path.unlink()
    except (OSError, ValueError):
        return


def other_run(root: Path) -> Owner | None:
    """Return the other run that owns this directory's file, if both its process and its port answer."""
    try:
        found = json.loads((root / LOCAL_FILE).read_text())
        owner = Owner(int(found["pid"]), str(found["url"]))
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None
    return owner if owner.pid != os.getpid() and _alive(owner.pid) and _listens(owner) else None


def project_root() -> Path:
    """Return the directory of the project: this one or the nearest above it. Raises `CommandFailed`."""
    here = Path.cwd()
    for directory in (here, *here.parents):
        # The folder of the deployment has a template and is no project.
        if (directory / CONFIG).is_file() or (
            (directory / TEMPLATE).is_file() and not (directory.parent / CONFIG).is_file()
        ):
            return directory
    raise CommandFailed(
        USAGE, f"there is no {CONFIG} in {here} or above it", "Run this inside a Baton project."
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _listens(owner: Owner) -> bool:
    try:
        socket.create_connection((urlsplit(owner.url).hostname or "", owner.port or 80), timeout=1).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _local() -> dict[str, str]:
    here = Path.cwd()
    for directory in (here, *here.parents):
        path = directory / LOCAL_FILE
        if path.is_file():
            try:
                found = json.loads(path.read_text())
            except (OSError, ValueError) as error:
                raise CommandFailed(DENIED, f"{path} cannot be read: {error}") from error
            return found if isinstance(found, dict) else {}
    return {}


SHORTEST = 4
RECENT = 1_000  # sagas, the latest change first, among which a beginning is looked up
_NAMED = 10


def full_saga_id(given: str, sagas: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the only id that `given` can mean, or None if no id begins with it.
    Raises `CommandFailed` with several matches.

    `ke86` means a saga and not its children, whose ids continue with a dot; `ke86.0.send` is a child of it.
    """
    root, dot, rest = given.partition(".")
    found: dict[str, str] = {}
    for saga in sagas:
        own, _, below = str(saga["id"]).partition(".")
        if own.startswith(root) and (not dot or below.startswith(rest)):
            name = f"{own}.{below}" if dot else own
            told = (
                f"{saga['workflow']}, {saga['status']}" if name == saga["id"] else "its children are listed"
            )
            found[name] = told if name == saga["id"] else found.get(name, told)
    exact = [name for name in found if dot and name.partition(".")[2] == rest]
    if len(exact) == 1 or len(found) == 1:
        return (exact or list(found))[0]
    if not found:
        return None
    lines = [plain(f"{name}  {told}") for name, told in list(found.items())[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    raise CommandFailed(
        USAGE, f"`{given}` is the beginning of {len(found)} ids: write more of the one you mean", *lines
    )
