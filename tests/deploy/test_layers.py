"""What the layers are built from: the right platform, the pinned versions, nothing that only runs here."""

from __future__ import annotations

import re
import tomllib

import pytest

from baton.shipping import LAMBDA
from tests.deploy.stack import FUNCTIONS, ROOT, as_written, stack

PINNED = "layers/engine/baton/shipping/requirements.txt"
EXTRA = "layers/engine/baton/shipping/requirements-extras.txt"
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)$")
LAYERS = {"EngineLayer": "layers/engine", "PackagesLayer": "layers/app", "AppLayer": "layers/app"}


def pins(path: str) -> dict[str, str]:
    lines = (ROOT / path).read_text("utf-8").splitlines()
    return {match[1]: match[2] for line in lines if (match := PIN.match(line))}


def _name(requirement: str) -> str:
    return re.split(r"[\[><=~! ]", requirement)[0].lower()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_built_by_its_makefile_for_lambdas_platform(layer: str) -> None:
    resource = as_written()["Resources"][layer]
    assert resource["Properties"]["ContentUri"] == LAYERS[layer]
    assert resource["Metadata"] == {"BuildMethod": "makefile", "BuildArchitecture": "arm64"}
    makefile = (ROOT / LAYERS[layer] / "Makefile").read_text("utf-8")
    assert f"\nbuild-{layer}:\n" in makefile
    assert "python -P -B -m baton.shipping " in makefile


def test_layers_and_functions_are_for_one_and_the_same_python() -> None:
    function = as_written()["Globals"]["Function"]
    assert function["Runtime"] == f"python{LAMBDA.python}"
    assert (function["Architectures"], LAMBDA.platform.split("-")[0]) == (["arm64"], "aarch64")


def test_functions_are_one_file_each_and_need_no_build() -> None:
    for name, logical_id in FUNCTIONS.items():
        assert stack().template.resources[logical_id]["Metadata"] == {"SkipBuild": True}
        assert [file.name for file in (ROOT / "functions" / name).iterdir() if file.is_file()] == ["app.py"]


def test_the_engine_layer_ships_exactly_what_the_tests_ran_with() -> None:
    shipped, extra, tested = pins(PINNED), pins(EXTRA), pins("constraints.txt")
    assert shipped
    assert shipped.items() <= tested.items()
    assert extra.items() <= tested.items()
    assert not shipped.keys() & extra.keys()


def test_the_engine_layer_ships_every_dependency_of_the_engine() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {_name(line) for line in project["dependencies"]}
    assert names - set(pins(PINNED)) == {"click"}, "of the command line"
    extras = {_name(*project["optional-dependencies"][extra]) for extra in ("cel", "models", "python")}
    assert extras == set((ROOT / "layers/app/requirements.txt").read_text("utf-8").splitlines()[1:])
    assert extras <= set(pins(EXTRA))


def test_every_pin_is_exact_and_names_no_index() -> None:
    for path in ("constraints.txt", PINNED, EXTRA):
        lines = [line for line in (ROOT / path).read_text("utf-8").splitlines() if line and line[0] != "#"]
        assert [line for line in lines if not PIN.match(line)] == []


def test_the_template_has_no_layer_without_a_makefile() -> None:
    resources = as_written()["Resources"]
    assert {i for i, r in resources.items() if r["Type"] == "AWS::Serverless::LayerVersion"} == set(LAYERS)
