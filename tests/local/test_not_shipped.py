"""What a function's process, and that of the embedded AWS, do not find, although the environment of the local run has it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from baton.local import lifeline
from baton.local.not_shipped import NotShipped
from tests.kit.sentences import Says


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `awscrt` in place of any that is here."""
    (tmp_path / "awscrt").mkdir()
    (tmp_path / "awscrt/__init__.py").touch()
    (tmp_path / "awscrt/auth.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "awscrt"]:
        monkeypatch.delitem(sys.modules, name)


def import_it(by: str, monkeypatch: pytest.MonkeyPatch, *layers: Path) -> None:
    monkeypatch.setattr(sys, "meta_path", [NotShipped([str(layer) for layer in layers]), *sys.meta_path])
    try:
        exec("import awscrt.auth", {"__name__": by})
    finally:
        for name in ("awscrt", "awscrt.auth"):
            sys.modules.pop(name, None)


def test_botocore_does_not_find_it_and_a_tool_does(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    with says.raised(ModuleNotFoundError):
        import_it("botocore.compat", monkeypatch)
    import_it("sagas.tools", monkeypatch)


@pytest.mark.parametrize("line", ["awscrt", "boto3[CRT]>=1.43"])
def test_botocore_finds_it_where_the_layer_of_the_application_ships_it(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements.txt").write_text(f"stripe\n{line}\n")
    import_it("botocore.compat", monkeypatch, tmp_path / "none", tmp_path)


def test_a_function_starts_alone_where_a_layer_of_its_own_has_what_is_imported_for_all(
    tmp_path: Path,
) -> None:
    (tmp_path / "of_mine").mkdir()
    (tmp_path / "requirements.txt").write_text("stripe\n")
    assert not lifeline.needs_its_own_start([str(tmp_path)], NotShipped([]))
    (tmp_path / "requirements.txt").write_text("awscrt\n")
    assert lifeline.needs_its_own_start([str(tmp_path)], NotShipped([]))
    (tmp_path / "requirements.txt").unlink()
    (tmp_path / "json.py").touch()
    assert lifeline.needs_its_own_start([str(tmp_path)], NotShipped([]))


def test_the_embedded_aws_does_without_docker_and_botocore(
    monkeypatch: pytest.MonkeyPatch, says: Says
) -> None:
    monkeypatch.setattr(sys, "meta_path", [NotShipped(sys.path, "ministack"), *sys.meta_path])
    for name in [name for name in sys.modules if name.partition(".")[0] in {"botocore", "docker"}]:
        monkeypatch.delitem(sys.modules, name)
    with says.raised(ModuleNotFoundError):
        importlib.import_module("docker")
    with says.raised(ModuleNotFoundError):
        exec("import botocore.session", {"__name__": "ministack.core.responses"})
