"""How a layer comes to its contents and its bytecode on any machine: the rules of baton.shipping, one at a time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import baton
from baton.shipping import LAMBDA, bytecode, contents
from baton.shipping.__main__ import main
from baton.shipping.bytecode import WAYS, compile_layer, is_compiled
from baton.shipping.contents import (
    EXTRA_PINS,
    PINS,
    BuildFailed,
    ProgramFailed,
    build_app,
    build_packages,
    pins,
    run_program,
)
from baton.shipping.sizes import read_sizes, report
from tests.kit.sentences import Says

SAY = "def say():\n    try:\n        return f'{__name__} from {say.__code__.co_filename}'\n    finally:\n        pass\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three sources, one of which no Python compiles."""
    folder = tmp_path / "layer"
    (folder / "inner").mkdir(parents=True)
    (folder / "said.py").write_text(SAY)
    (folder / "inner" / "__init__.py").write_text("VALUE = (1.5, b'x', {'k': [None, 'é']})\n")
    (folder / "broken.py").write_text("def f(:\n")
    return folder


def way(works: bool, *, writes: bool = True) -> Callable[[Path], str]:
    """A way of compiling that says no, or that writes the head of every .pyc."""

    def compile_(folder: Path) -> str:
        if not works:
            raise ProgramFailed("not today")
        for source in folder.rglob("*.py") if writes else ():
            kept = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
            kept.parent.mkdir(exist_ok=True)
            kept.write_bytes(LAMBDA.magic + b"\x01\0\0\0" + b"hash....")
        return "a test"

    return compile_


# ---- without a Python 3.13


@pytest.mark.soak  # the last way of a machine without a Python 3.13: the shorter ways are tested below
def test_webassembly_compiles_for_lambda_where_there_is_no_such_python(
    tree: Path,
) -> None:
    done = compile_layer(tree, "wasm")
    assert (done.sources, done.broken) == (3, ("broken.py",)), done.tried
    assert "WebAssembly" in done.by
    assert is_compiled(tree / "said.py")
    assert is_compiled(tree / "inner" / "__init__.py")
    assert b"/opt/python/said.py" in (tree / "__pycache__" / "said.cpython-313.pyc").read_bytes()
    _assert_a_real_one_runs_it(tree)


def _assert_a_real_one_runs_it(tree: Path) -> None:
    """Where there is a Python 3.13 after all: it runs that bytecode without its source, and calls it its own."""
    for python in bytecode.candidates():
        try:
            if run_program([python, "-I", "-c", bytecode.WHO], 20).split()[-1] != LAMBDA.magic.hex():
                continue
        except ProgramFailed:
            continue
        (tree / "said.py").write_text("raise SystemExit('the source was read')\n")
        program = f"import sys; sys.path.insert(0, {str(tree)!r}); import said, inner; print(said.say(), inner.VALUE)"
        said = run_program([python, "-I", "-c", program], 20)
        assert said == f"said from {tree}/said.py (1.5, b'x', {{'k': [None, 'é']}})"
        return


def test_an_interpreter_that_is_not_what_its_name_says_is_passed_over(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shims = []
    for name, script in {
        "shim": "echo 'pyenv: python3.13: command not found' >&2; exit 127",
        "old": "echo CPython 3.12.4 cb0d0d0a",
        "other": "echo PyPy 3.13.1 f30d0d0a",
    }.items():
        shim = tmp_path / name / "python3.13"
        shim.parent.mkdir()
        shim.write_text(f"#!/bin/sh\n{script}\n")
        shim.chmod(0o755)
        shims.append(shim)
    monkeypatch.setattr(bytecode, "candidates", lambda: iter(shims))
    with pytest.raises(ProgramFailed) as failed:
        bytecode.compile_here(tree)
    assert "command not found" in str(failed.value)
    assert "it is CPython 3.12.4" in str(failed.value)
    assert "it is PyPy 3.13.1" in str(failed.value)
    assert not list(tree.rglob("*.pyc"))


def test_every_place_on_the_path_is_looked_at_not_only_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:
        place.mkdir()
        (place / "python3.13").write_text("#!/bin/sh\n")
        (place / "python3.13").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, places)))
    found = list(bytecode.candidates())
    assert [python for python in found if python.parent in places] == [p / "python3.13" for p in places]


def test_a_package_that_is_not_the_expected_one_is_not_run(tmp_path: Path, says: Says) -> None:
    archive = tmp_path / "pyodide.tgz"
    with tarfile.open(archive, "w:gz"):
        pass
    with pytest.raises(ProgramFailed) as refused:
        bytecode.unpack(archive, tmp_path / "unpacked", bytecode.SHA512)
    says.within(str(refused.value))
    assert not (tmp_path / "unpacked").exists()


def test_of_the_expected_package_only_what_is_needed_is_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "pyodide.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name in (*bytecode.FILES, "console.html"):
            (tmp_path / name).write_text(name)
            tar.add(tmp_path / name, f"package/{name}")
    bytecode.unpack(archive, tmp_path / "unpacked", hashlib.sha512(archive.read_bytes()).hexdigest())
    assert {file.name for file in (tmp_path / "unpacked").iterdir()} == set(bytecode.FILES)


# ---- which way is taken


def test_what_is_here_comes_before_what_must_be_fetched() -> None:
    assert list(WAYS) == ["native", "wasm-cached", "download", "wasm"]


def test_the_first_way_that_works_is_taken(tree: Path, monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    def never(_: Path) -> str:
        pytest.fail("it was not needed any more")

    ways = {"no": way(False), "empty": way(True, writes=False), "yes": way(True), "later": never}
    monkeypatch.setattr(bytecode, "WAYS", ways)
    done = compile_layer(tree)
    assert (done.by, done.broken) == ("a test", ())
    says(done.tried)


def test_without_any_way_the_layer_is_built_and_says_what_that_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    monkeypatch.setattr(bytecode, "WAYS", {"no": way(False)})
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "mine.py").write_text("x = 1\n")
    assert main(["app", str(tmp_path / "out"), "--source", str(tmp_path / "app")]) == 0
    said = capsys.readouterr().out
    says(said)
    assert "  no: not today" in said
    assert "install one of" in said
    assert (tmp_path / "out/python/mine.py").is_file()


def test_bytecode_of_another_python_or_with_times_does_not_count(tmp_path: Path) -> None:
    source = tmp_path / "a.py"
    source.write_text("")
    compiled = tmp_path / "__pycache__" / "a.cpython-313.pyc"
    compiled.parent.mkdir()
    for head in (b"", b"\xcb\r\r\n\x01\0\0\0", LAMBDA.magic + bytes(4), LAMBDA.magic + b"\x03\0\0\0"):
        compiled.write_bytes(head + bytes(8))
        assert not is_compiled(source), head
    compiled.write_bytes(LAMBDA.magic + b"\x01\0\0\0" + bytes(8))
    assert is_compiled(source)


# ---- what goes into an app's layer


def test_an_app_brings_its_modules_packages_and_documents_and_nothing_else(tmp_path: Path) -> None:
    app = tmp_path / "app"
    for name in (
        "sagas/__init__.py",
        "sagas/dinner.yaml",
        "sagas/deep/tool.py",
        "sagas/tests/test_tool.py",
        "sagas/__pycache__/old.pyc",
        "tests/test_all.py",
        "forker.py",
        "Makefile",
        "notes.md",
        ".venv/lib/x.py",
        "my.egg-info/PKG-INFO",
    ):
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text("")
    (app / "requirements.txt").write_text("\n")
    build_app(app, tmp_path / "out")
    assert {
        f.relative_to(tmp_path / "out").as_posix() for f in (tmp_path / "out").rglob("*") if f.is_file()
    } == {
        "sagas/__init__.py",
        "sagas/dinner.yaml",
        "sagas/deep/tool.py",
        "forker.py",
    }


def test_an_app_cannot_bring_another_version_of_what_the_engine_needs(tmp_path: Path, says: Says) -> None:
    (tmp_path / "requirements.txt").write_text("six==1.16.0\n")
    with pytest.raises(BuildFailed) as refused:
        build_packages(tmp_path, tmp_path / "out")
    says.within(str(refused.value))
    assert "six==1.17" in str(refused.value)


def test_what_the_engine_has_is_left_out_and_the_rest_has_the_pinned_versions(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("cel-expr-python\nboto3\nhttpx\n")
    build_packages(tmp_path, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert not {"openai", "httpx2"} & pins(PINS).keys(), "who asks no model ships none"
    assert names == {"cel_expr_python", f"cel_expr_python-{pins(EXTRA_PINS)['cel-expr-python']}.dist-info"}


def test_layers_that_lambda_would_refuse_are_refused_with_what_is_large(tmp_path: Path, says: Says) -> None:
    for name, megabytes in {"EngineLayer/python/botocore": 2, "PackagesLayer/python/pandas": 3}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "data").write_bytes(bytes(megabytes * 1_000_000))
    sizes = read_sizes(tmp_path)
    says(list(report(sizes, limit_mb=5.0)))
    with pytest.raises(BuildFailed) as refused:
        list(report(sizes, limit_mb=4.9))
    says(str(refused.value))


def test_a_build_that_fails_ends_with_status_one_and_its_reason(tmp_path: Path, says: Says) -> None:
    (tmp_path / "requirements.txt").write_text("./not-there\n")
    command = [sys.executable, "-P", "-B", "-m", "baton.shipping", "packages", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    says.within(done.stderr)
    assert "not-there" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_consoles_script_goes_into_the_baton_that_runs_and_a_layer_only_where_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    places: list[Path] = []
    monkeypatch.setattr(contents, "put", places.append)
    assert main(["htmx"]) == 0
    assert places == [Path(baton.__file__).parent]
    with pytest.raises(SystemExit):
        main(["engine"])
    says(capsys.readouterr().err)


def test_an_image_has_all_layers_made_anew_where_there_is_a_dockerfile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[tuple[object, ...]]()
    monkeypatch.setattr("baton.shipping.__main__._build", lambda *given: built.append(given))
    stale = tmp_path / "image/python/gone.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    assert main(["image", str(tmp_path)]) == 0
    assert (built, stale.exists()) == ([], True)
    (tmp_path / "Dockerfile").touch()
    assert main(["image", str(tmp_path), "--source", "/project"]) == 0
    ((layers, source, target, _),) = built
    assert (layers, source, target) == (
        ["engine", "packages", "app"],
        Path("/project/layers/app"),
        stale.parent,
    )
    assert not stale.exists()
