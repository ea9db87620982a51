"""Contents of a layer: code, packages for Lambda's platform, and the script of the console."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import baton
from baton.errors import BatonError
from baton.shipping import LAMBDA, NOT_SHIPPED

_TOLD: Final = 2_000  # characters of a program's last words


class BuildFailed(BatonError):
    """Error for a layer that cannot be built. The message names what is missing or wrong."""


class ProgramFailed(BatonError):
    """Error of a program that is missing, too slow or unsuccessful, with the end of its output."""


def run_program(command: Sequence[str | Path], seconds: float, folder: Path | None = None) -> str:
    """Return the standard output of a program, stripped. Raises `ProgramFailed`."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            list(map(str, command)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{name} did not end within {seconds:.0f} s") from error
    except OSError as error:
        raise ProgramFailed(f"{name} cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-_TOLD:]
        raise ProgramFailed(f"{name} ended with status {done.returncode}: {said}")
    return done.stdout.strip()


def uv() -> Path:
    """Return the uv of this environment, else one on the PATH. Raises `ProgramFailed`."""
    own = Path(sys.executable).with_name("uv")
    if own.is_file():
        return own
    found = shutil.which("uv")
    if found is None:
        raise ProgramFailed("uv is not installed: `pip install uv`")
    return Path(found)


def cache() -> Path:
    """Return the folder for fetched tools, in this virtual environment, so that they are removed with it."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "share" / "baton-shipping"
    return Path.home() / ".cache" / "baton-shipping"


PACKAGE: Final = "django-htmx==1.29.0"
_FILE: Final = "django_htmx/static/django_htmx/htmx-2.min.js"
PLACE: Final = "console/static/htmx.min.js"  # in the package `baton`; git ignores it
_LIMIT_S: Final = 120.0


def put(package: Path) -> None:
    """Write the file into the package `baton`, unless it is present. Raises `BuildFailed`."""
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
            run_program([*command, "--only-binary", ":all:", "--target", folder, PACKAGE], _LIMIT_S)
            shutil.copyfile(Path(folder) / _FILE, place)
        except (ProgramFailed, OSError) as error:
            raise BuildFailed(f"{PACKAGE}, which carries htmx, cannot be fetched: {error}") from error


# The exact versions that the engine was tested with: those of its layer, and those of the extras.
PINS: Final = Path(__file__).with_name("requirements.txt")
EXTRA_PINS: Final = Path(__file__).with_name("requirements-extras.txt")
REQUIREMENTS: Final = "requirements.txt"
_INSTALL_LIMIT_S: Final = 600.0
_PIN: Final = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
# What installing leaves behind, and what packages bring along for their own developers.
_REFUSE: Final = ("__pycache__", "tests")
# Parts of packages that the engine does not use: libcel's extensions, each with half of libcel in it, and its sources.
_UNUSED: Final = ("cel_expr_python/ext", "bazel-project")
# Programs for Lambda's own processor, which the engine starts: monty runs Python conditions.
_PRICE_SOURCE: Final = "price_source.py"  # in its place there is the file that it makes
_PROGRAMS: Final = frozenset({"monty"})


def build_engine(target: Path) -> None:
    """Copy the engine without its local packages, and its dependencies. Raises `BuildFailed`."""
    target.mkdir(parents=True, exist_ok=True)
    _install(target, PINS, "--no-deps")
    package = Path(baton.__file__).parent
    _copy(
        package,
        target / "baton",
        skip=lambda path: path.name == _PRICE_SOURCE or (path.parent == package and path.name in NOT_SHIPPED),
    )
    put(target / "baton")
    write_prices(target / "baton")
    _remove_refuse(target)


def write_prices(package: Path) -> None:
    """Write the prices of models to a file: their library is not shipped. Raises `BuildFailed`."""
    from baton.adapters.models.prices import FILE, write

    try:
        from baton.adapters.models.price_source import price_table
    except ImportError as error:
        raise BuildFailed("genai-prices is not installed: `pip install 'baton-sagas[build]'`") from error
    (package / "adapters" / "models" / FILE).write_bytes(write(price_table()))


def build_app(source: Path, target: Path) -> None:
    """Copy the modules and packages of a folder. Raises `BuildFailed`."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.name.startswith(".") or path.name.endswith(".egg-info") or path.name in _REFUSE:
            continue
        if path.is_dir():
            _copy(path, target / path.name)
        elif path.suffix == ".py":
            shutil.copy(path, target / path.name)
    _remove_refuse(target)


def build_packages(source: Path, target: Path) -> None:
    """Install the requirements of a folder, without what the engine layer has. Raises `BuildFailed`."""
    target.mkdir(parents=True, exist_ok=True)
    wanted = source / REQUIREMENTS
    if not wanted.is_file():
        return
    with TemporaryDirectory() as name:
        versions, found = Path(name, "versions.txt"), Path(name, REQUIREMENTS)
        # On Lambda a later layer's file replaces an earlier one's: other versions would break the engine.
        shipped = pins(PINS) | pins(EXTRA_PINS)
        versions.write_text("".join(f"{k}=={v}\n" for k, v in (installed() | shipped).items()), "utf-8")
        _uv(
            wanted,
            "compile",
            "--no-header",
            "--no-annotate",
            "--constraint",
            versions,
            "--output-file",
            found,
        )
        lines = found.read_text("utf-8").splitlines(keepends=True)
        found.write_text("".join(line for line in lines if not _is_in(line, pins(PINS))), "utf-8")
        _install(target, found, "--no-deps")
    _remove_refuse(target)


def pins(file: Path) -> dict[str, str]:
    """Return the versions in a file of pins, by package."""
    return dict(_PIN.findall(file.read_text("utf-8")))


def installed() -> dict[str, str]:
    """Return the versions of the packages in this environment, which an application was tried with."""
    found = {_plain(d.metadata["Name"]): d.version for d in distributions() if d.metadata["Name"]}
    return {name: version for name, version in found.items() if not name.startswith("baton")}


def _is_in(line: str, versions: Mapping[str, str]) -> bool:
    name = _PIN.match(line)
    return name is not None and _plain(name[1]) in versions


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _install(target: Path, requirements: Path, *options: str) -> None:
    _uv(requirements, "install", "--target", target, *options)


def _uv(requirements: Path, verb: str, *options: str | Path) -> None:
    """Run `uv pip` on a file of requirements, for Lambda's platform. Raises `BuildFailed`."""
    command: list[str | Path] = [uv(), "pip", verb, "--quiet", "--python", sys.executable]
    command += ["--python-version", LAMBDA.python, "--python-platform", LAMBDA.platform]
    command += ["--only-binary", ":all:", *options]
    command += [requirements] if verb == "compile" else ["--requirement", requirements]
    try:
        run_program(command, _INSTALL_LIMIT_S)
    except ProgramFailed as error:
        raise BuildFailed(
            f"The packages of {requirements} cannot be installed for Lambda: {error}"
        ) from error


def _copy(source: Path, to: Path, skip: Callable[[Path], bool] = lambda _: False) -> None:
    def skipped(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in _REFUSE or skip(Path(folder) / name)}

    shutil.copytree(source, to, ignore=skipped, dirs_exist_ok=True)


def _remove_refuse(target: Path) -> None:
    unused = [target / name for name in _UNUSED]
    for folder in [*unused, *(folder for name in _REFUSE for folder in sorted(target.rglob(name)))]:
        if folder.is_dir():
            shutil.rmtree(folder)
    # All others in bin are scripts with the path of this machine's interpreter in their first line.
    for file in sorted((target / "bin").glob("*")):
        if file.name not in _PROGRAMS:
            file.unlink()
    if (target / "bin").is_dir() and not any((target / "bin").iterdir()):
        (target / "bin").rmdir()
    (target / ".lock").unlink(missing_ok=True)
    # A package's list of its files: without those that are gone, whose hashes are of this machine's paths.
    for record in sorted(target.glob("*.dist-info/RECORD")):
        lines = record.read_text("utf-8").splitlines(keepends=True)
        record.write_text("".join(line for line in lines if (target / line.split(",")[0]).exists()), "utf-8")
