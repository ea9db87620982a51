"""What `sam build` makes, without docker, without credentials and whatever Python this machine has.

Looked at from outside, because nothing of it can be run here: it is made for another processor and, mostly,
for another Python.
"""

from __future__ import annotations

import _imp
import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from baton.adapters import monty_sandbox
from baton.adapters.clock import SystemClock
from baton.adapters.models.prices import FILE, Prices, read_prices
from baton.adapters.models.profiles import Profiles
from baton.shipping import LAMBDA, NOT_SHIPPED
from baton.shipping.sizes import read_sizes
from tests.deploy.built import LAYERS, Build, imports, resolves
from tests.deploy.stack import FUNCTIONS, ROOT
from tests.deploy.test_layers import PINNED, pins

ENGINE_MB, LIMIT_MB = (
    90,
    160,
)  # without extras, and with all; Lambda's own limit is 250 for all layers together
ENGINE = ROOT / "layers/engine/baton"
AARCH64 = 183  # e_machine of the ELF header: EM_AARCH64
MARKERS = {  # of Lambda's Python, for the conditions in packages' metadata
    "python_version": LAMBDA.python,
    "python_full_version": f"{LAMBDA.python}.0",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_machine": "aarch64",
    "platform_system": "Linux",
    "sys_platform": "linux",
    "os_name": "posix",
    "extra": "",
}


# ---- the layers


def test_every_shared_object_is_for_lambdas_processor_and_python(built: Build) -> None:
    found = built.files("*.so*")
    packages = {file.relative_to(built.folder).parts[2] for file in found}
    assert packages >= {
        "cel_expr_python",
        "jsonschema_rs",
        "msgspec",
        "pydantic_core",
        "pydantic_monty",
        "yaml",
    }
    for file in found:
        assert_for_lambdas_processor(file)
        assert f"cpython-{LAMBDA.python.replace('.', '')}-" in file.name or ".abi3." in file.name, file


def assert_for_lambdas_processor(file: Path) -> None:
    head = file.read_bytes()[:20]
    assert head[:6] == b"\x7fELF\x02\x01", f"{file}: not a 64-bit little-endian ELF"
    assert int.from_bytes(head[18:20], "little") == AARCH64, file


def test_the_program_that_runs_python_conditions_is_where_the_engine_looks_and_can_be_started(
    built: Build,
) -> None:
    package = built.python("PackagesLayer") / "pydantic_monty/__init__.py"
    program = monty_sandbox._program(str(package))
    assert program is not None
    assert_for_lambdas_processor(program)
    assert program.stat().st_mode & 0o555 == 0o555, "not everybody may run it"


def test_every_source_has_bytecode_that_lambda_takes_without_a_look_at_its_time(built: Build) -> None:
    sources = built.files("*.py")
    assert len(sources) > 500
    for source in sources:
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
        head = compiled.read_bytes()[:16]
        assert head[:4] == LAMBDA.magic, f"{compiled}: of another Python"
        assert head[4:8] == b"\x01\0\0\0", f"{compiled}: not an unchecked hash"
        # The hash in it is keyed with the number of the Python that wrote it (importlib.util.source_hash).
        wanted = _imp.source_hash(int.from_bytes(LAMBDA.magic, "little"), source.read_bytes())
        assert head[8:] == wanted, f"{compiled}: not of this source"
    assert len(built.files("*.pyc")) == len(sources)


def test_a_traceback_will_show_lambdas_paths_and_not_this_machines(built: Build) -> None:
    for layer in LAYERS:
        python = built.python(layer)
        for source in python.rglob("*.py"):
            code = (source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc").read_bytes()
            assert f"/opt/python/{source.relative_to(python).as_posix()}".encode() in code, source
            assert str(built.folder).encode() not in code, source


def test_all_layers_together_are_small_and_the_engines_is_without_what_only_some_need(built: Build) -> None:
    sizes = {size.layer: size.total for size in read_sizes(built.folder)}
    assert 40 < sizes["engine"] < ENGINE_MB
    assert sum(sizes.values()) < LIMIT_MB


def test_the_packages_layer_has_the_extras_and_nothing_that_the_engine_layer_has(built: Build) -> None:
    engine, packages = (
        {path.name for path in built.python(layer).iterdir()} - {"__pycache__"}
        for layer in ("EngineLayer", "PackagesLayer")
    )
    assert {"cel_expr_python", "openai", "pydantic_monty", "httpx2"} <= packages
    assert not engine & packages


ADAPTED = {"agents", "langchain_core", "langgraph", "pydantic_ai"}
"""Libraries that the adapters of baton.compat are for: the dinner uses none of them, so no layer has them."""


def test_whatever_is_shipped_finds_what_it_imports(built: Build) -> None:
    engine, packages, app = map(built.python, LAYERS)
    own = [*(engine / "baton").rglob("*.py"), *app.rglob("*.py"), *ROOT.glob("functions/*/*.py")]
    assert len(own) > 50
    lost = {
        f"{file.name}: {module}"
        for file in own
        for module in imports(file)
        if not resolves(module, [engine, packages, app])
        and not (file.is_relative_to(engine / "baton/compat") and module.partition(".")[0] in ADAPTED)
    }
    assert lost == set()


def test_the_engine_layer_has_the_prices_of_models_and_not_the_library_that_knows_them(built: Build) -> None:
    engine = built.python("EngineLayer")
    here = engine / "baton/adapters/models"
    prices = Prices(read_prices((here / FILE).read_bytes()))
    found, name = Profiles("openai=https://api.openai.com/v1").of("gpt-5-mini")
    assert prices.of(found, name, SystemClock().now()) == Prices.packaged().of(
        found, name, SystemClock().now()
    )
    assert [(here / "price_source.py").exists(), (engine / "genai_prices").exists()] == [False, False]


def test_an_import_that_leads_nowhere_would_be_seen(built: Build, tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import json, baton.cli\nfrom moto import mock_aws\nif TYPE_CHECKING:\n    import mypy\n"
    )
    places = [built.python("EngineLayer")]
    assert [m for m in imports(planted) if not resolves(m, places)] == ["baton.cli", "moto"]


def test_every_package_finds_the_packages_that_it_requires(built: Build) -> None:
    engine = built.python("EngineLayer")
    there = set(pins(PINNED))
    lines = [
        line.removeprefix("Requires-Dist: ")
        for metadata in engine.glob("*.dist-info/METADATA")
        for line in metadata.read_text("utf-8").splitlines()
        if line.startswith("Requires-Dist: ")
    ]
    wanted = [Requirement(line) for line in lines]
    needed = {_plain(r.name) for r in wanted if r.marker is None or r.marker.evaluate(MARKERS)}
    assert {"botocore", "pydantic-core", "httpcore"} <= needed
    assert needed - there == set()


def test_the_engine_layer_holds_the_pinned_packages_the_engine_and_nothing_else(built: Build) -> None:
    engine = built.python("EngineLayer")
    packages = dict(
        folder.name.removesuffix(".dist-info").rsplit("-", 1) for folder in engine.glob("*.dist-info")
    )
    assert {_plain(name): version for name, version in packages.items()} == pins(PINNED)
    recorded = {
        line.split(",")[0].split("/")[0]
        for record in engine.glob("*.dist-info/RECORD")
        for line in record.read_text("utf-8").splitlines()
    }
    assert {path.name for path in engine.iterdir()} <= recorded | {"baton", "__pycache__"}
    beside = built.python("PackagesLayer")
    assert [file.name for file in (beside / "bin").iterdir()] == ["monty"]
    assert not (beside / "cel_expr_python/ext").exists(), "37 MB that nothing imports"


def test_nothing_of_tests_or_of_this_machine_is_inside(built: Build) -> None:
    names = Counter(path.name for path in built.files("*"))
    for name in (
        "tests",
        "conftest.py",
        "Makefile",
        "requirements.txt",
        ".lock",
        "moto",
        "ministack",
        "awscrt",
    ):
        assert names[name] == 0, name
    assert [path for path in built.files("*") if path.is_symlink()] == []
    rooms = {path.name for path in built.python("EngineLayer").joinpath("baton").iterdir()}
    here = {path.name for path in ENGINE.iterdir()}
    assert rooms | {"__pycache__"} == (here - NOT_SHIPPED) | {"__pycache__"}


def test_the_engine_layer_has_all_that_pages_of_the_console_are_made_of(built: Build) -> None:
    engine = built.python("EngineLayer")
    here, there = ENGINE / "console", engine / "baton/console"
    shown = {path.relative_to(here) for path in here.rglob("*") if path.suffix in (".html", ".css", ".js")}
    assert {
        path.relative_to(there) for path in there.rglob("*") if path.suffix in (".html", ".css", ".js")
    } == (shown | {Path("static/htmx.min.js")})
    assert "htmx" in (there / "static/htmx.min.js").read_text("utf-8")[:200]
    assert (engine / "jinja2/__init__.py").is_file()
    assert (engine / "baton/words/event_words.py").is_file()
    assert not list(engine.glob("*django*")), "of the package that carries htmx, one file is taken"


def test_the_app_layer_holds_the_sagas_with_their_documents(built: Build) -> None:
    files = {
        p.relative_to(built.python("AppLayer")).as_posix() for p in built.files("*") if "AppLayer" in p.parts
    }
    assert {"sagas/__init__.py", "sagas/dinner.py", "sagas/dinner.yaml"} <= files


@pytest.mark.soak  # a whole layer once more
def test_the_same_sources_give_the_same_bytes(built: Build, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-B", "-m", "baton.shipping", "engine", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    first, second = _digests(built.folder / "EngineLayer"), _digests(tmp_path)
    differing = {name for name, _ in first.items() ^ second.items()}
    # A developer may edit the engine meanwhile: then the sources are not the same.
    edited = {
        Path(name).stem for name in differing if name.startswith("python/baton/") and name.endswith(".py")
    }
    assert {name for name in differing if Path(name).name.split(".")[0] not in edited} == set()


# ---- the template


def test_the_built_template_leads_to_what_was_built(built: Build) -> None:
    layers = built.of_type("AWS::Serverless::LayerVersion")
    assert set(layers) == set(LAYERS)
    for name, layer in layers.items():
        assert built.path(layer["Properties"]["ContentUri"]) == built.folder / name
        assert [path.name for path in (built.folder / name).iterdir()] == ["python"]
        assert layer["Properties"]["CompatibleRuntimes"] == [f"python{LAMBDA.python}"]
        assert layer["Properties"]["CompatibleArchitectures"] == ["arm64"]
    for machine in built.of_type("AWS::Serverless::StateMachine").values():
        assert (
            built.path(machine["Properties"]["DefinitionUri"]).resolve()
            == ROOT / "statemachine/reconcile.asl.json"
        )


def test_every_handler_of_the_built_template_is_a_function_in_a_file(built: Build) -> None:
    globals_ = built.template["Globals"]["Function"]
    assert (globals_["Runtime"], globals_["Architectures"]) == (f"python{LAMBDA.python}", ["arm64"])
    functions = built.of_type("AWS::Serverless::Function")
    assert set(functions) == set(FUNCTIONS.values())
    for function in functions.values():
        assert not {"Runtime", "Architectures", "Handler"} & set(function["Properties"])
        module, _, name = globals_["Handler"].partition(".")
        file = built.path(function["Properties"]["CodeUri"]) / f"{module}.py"
        assert f"\ndef {name}(" in file.read_text("utf-8")


def test_the_build_says_how_it_came_to_its_bytecode(built: Build) -> None:
    told = [line for line in built.said.splitlines() if " layer: " in line]
    assert sorted(line.split()[0] for line in told) == ["app", "engine", "packages"]
    assert all("bytecode of " in line and "CPython 3.13" in line for line in told)
    assert "warning" not in built.said


def _plain(name: str) -> str:
    """The name of a package as pins write it."""
    return name.lower().replace("_", "-").replace(".", "-")


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
