"""An installed Baton has all that a project is made of: the wheel carries what a checkout has beside it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import click
import pytest

from baton.project.deployment import SHARED
from baton.scaffold.make import Project
from tests.kit.patience import PATIENCE_S
from tests.scaffold.conftest import ROOT, Run

MAKE = (
    "from pathlib import Path; from baton.scaffold.make import make_project; make_project(Path('my-sagas'))"
)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, unpacked as an installer would."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = folder.glob("baton_sagas-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_carries_the_deployment_as_it_is_here(unpacked: Path) -> None:
    project = unpacked / "baton/project/shared"
    carried = {path.relative_to(project).as_posix() for path in project.rglob("*") if path.is_file()}
    assert carried == set(SHARED)
    assert all((project / path).read_bytes() == (ROOT / path).read_bytes() for path in SHARED)


def test_the_wheel_has_every_file_of_the_engine_and_nothing_else(unpacked: Path) -> None:
    engine = ROOT / "layers/engine/baton"
    here = {
        path.relative_to(engine).as_posix()
        for path in engine.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    there = {
        path.relative_to(unpacked / "baton").as_posix()
        for path in (unpacked / "baton").rglob("*")
        if path.is_file()
    }
    assert {path for path in there if not path.startswith("project/shared/")} == here
    assert {path.name.partition("-")[0] for path in unpacked.iterdir()} == {"baton", "baton_sagas"}


def test_the_wheel_brings_its_plugin_to_pytest(unpacked: Path) -> None:
    (baton,) = distributions(name="baton-sagas", path=[str(unpacked)])
    (plugin,) = [point for point in baton.entry_points if point.group == "pytest11"]
    assert (unpacked / plugin.module.replace(".", "/")).with_suffix(".py").is_file()


def test_a_project_made_from_the_wheel_is_the_one_made_here(
    unpacked: Path, made: Project, run: Run, tmp_path: Path
) -> None:
    done = run("-c", MAKE, folder=tmp_path, PYTHONPATH=str(unpacked))
    assert done.returncode == 0, done.stderr
    files = {
        path.relative_to(tmp_path / "my-sagas").as_posix()
        for path in (tmp_path / "my-sagas").rglob("*")
        if path.is_file()
    }
    assert files == set(made.files)
    own = {"requirements.txt"}  # how this Baton was installed
    for path in files - own:
        assert (tmp_path / "my-sagas" / path).read_bytes() == (made.folder / path).read_bytes(), path


@pytest.mark.soak  # two builds, and an environment of its own
def test_the_sources_build_the_same_wheel_and_it_runs_in_an_environment_of_its_own(
    unpacked: Path, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    subprocess.run([*build, "sdist"], cwd=ROOT, check=True, capture_output=True, timeout=PATIENCE_S)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    sources = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*build, "wheel"], cwd=sources, check=True, capture_output=True, timeout=PATIENCE_S)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as built:
        files = {name for name in built.namelist() if ".dist-info/" not in name}
    here = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert files == {path for path in here if ".dist-info/" not in path}

    # Nothing is fetched: what Baton requires comes from this environment, Baton itself from the wheel alone.
    uv = str(Path(sys.executable).with_name("uv"))
    venv = tmp_path / "venv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, venv], check=True, timeout=PATIENCE_S)
    install = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        str(venv / "bin/python"),
    ]
    install.append(str(wheel))
    subprocess.run(install, check=True, timeout=PATIENCE_S)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(f"{Path(click.__file__).parents[1]}\n", "utf-8")  # behind its own
    done = subprocess.run(
        [venv / "bin/baton-sagas", "new", "my-sagas"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    requirements = (tmp_path / "my-sagas/requirements.txt").read_text("utf-8")
    assert f"baton-sagas[local] @ {wheel.as_uri()}" in requirements


def test_an_editable_installation_only_points_here(tmp_path: Path) -> None:
    build = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    (wheel,) = tmp_path.glob("baton_sagas-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        points = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [name.rpartition(".")[2] for name in points] == ["pth"]
        assert Path(archive.read(points[0]).decode().strip()) == ROOT / "layers/engine"
