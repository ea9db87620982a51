"""What `baton up` starts of the example: the guest's page with its own application, a scripted model where no key is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton.cli.machine.example import MODELS, MODULES, PAGE, example_programs

ROOT = Path(__file__).parents[2]


def test_without_a_key_the_scripted_model_answers_with_a_credential_of_its_own() -> None:
    parts = example_programs(ROOT, "sagas", {}, {"PATH": "/bin"})
    assert set(parts.modules) == {*MODULES, PAGE, MODELS}
    assert parts.variables == {"BATON_MODEL_KEY_SCRIPTED": "scripted"}


@pytest.mark.parametrize(
    ("parameters", "shell"),
    [
        ({}, {"OPENAI_API_KEY": "k"}),
        ({}, {"OPENAI_BASE_URL": "http://127.0.0.1:1"}),
        ({}, {"BATON_MODEL_KEY_MINE": "k"}),
        ({MODELS: "mine=http://127.0.0.1:1"}, {}),
    ],
)
def test_a_model_that_is_known_is_not_replaced(parameters: dict[str, str], shell: dict[str, str]) -> None:
    parts = example_programs(ROOT, "sagas", parameters, shell)
    assert (set(parts.modules), parts.variables, parts.scripted) == ({*MODULES, PAGE}, {}, False)


def test_another_application_or_project_has_neither(tmp_path: Path) -> None:
    for root, app in ((ROOT, "mine"), (tmp_path, "sagas")):
        parts = example_programs(root, app, {}, {})
        assert (parts.modules, parts.scripted) == (MODULES, False)
