"""The move of a project to another Baton: what it shows, what it writes, and the way back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import yaml

from baton.core.version import VERSION
from baton.project.deployment import FOLDER, TEMPLATE, parse_template, shared_root, without_example
from baton.project.upgrade import (
    KEPT,
    UNVERSIONED,
    CannotUpgradeError,
    apply_upgrade,
    plan_upgrade,
    undo_upgrade,
)
from baton.scaffold.make import make_project, project_files
from tests.kit.sentences import Says

LINE = "baton-sagas[local]==9.9.9"
OWN = project_files({"NAME": "shop", "BATON": LINE, "VERSION": VERSION})


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text("utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file() and KEPT.parts[0] not in path.relative_to(folder).parts
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of an earlier Baton, whose template lacked an alarm and had another default."""
    folder = make_project(tmp_path / "shop").folder
    toml = folder / "baton.toml"
    toml.write_text(toml.read_text().replace(f'"{VERSION}"', '"0.0.9"'))
    template = yaml.safe_load((folder / TEMPLATE).read_text("utf-8"))
    del template["Resources"]["BreakerAlarm"], template["Parameters"]["MaxDeaths"]
    template["Parameters"]["TurnMs"]["Default"] = 9_000
    (folder / TEMPLATE).write_text(yaml.safe_dump(template))
    return folder


def test_what_changes_is_shown_before_it_is_written(project: Path) -> None:
    before = contents(project)
    planned = plan_upgrade(project, LINE, OWN)
    assert contents(project) == before
    assert (planned.before, planned.after) == ("0.0.9", VERSION)
    assert list(planned.parameters) == ["+ MaxDeaths  3", "~ TurnMs  9000 → 10000"]
    assert list(planned.resources) == ["+ BreakerAlarm  AWS::CloudWatch::Alarm"]
    assert "-    Default: 9000" in planned.diff
    assert set(planned.files) == {"baton.toml", "requirements.txt", TEMPLATE}


def test_it_is_moved_and_put_back(project: Path) -> None:
    before = contents(project)
    apply_upgrade(project, plan_upgrade(project, LINE, OWN))
    config = tomllib.loads((project / "baton.toml").read_text("utf-8"))
    assert (config["baton"], config["stack"]) == (VERSION, "shop")
    assert LINE in (project / "requirements.txt").read_text("utf-8").splitlines()
    assert not plan_upgrade(project, LINE, OWN).files, "nothing is left to move"
    assert undo_upgrade(project) == "0.0.9"
    assert contents(project) == before


def test_there_is_no_way_back_twice(project: Path, says: Says) -> None:
    with says.raised(CannotUpgradeError):
        undo_upgrade(project)


def test_what_is_no_project_is_refused(tmp_path: Path, says: Says) -> None:
    with says.raised(CannotUpgradeError):
        plan_upgrade(tmp_path, LINE, OWN)


ADDED = """
  Orders:
    Type: AWS::SQS::Queue
"""


@pytest.fixture
def owner(tmp_path: Path) -> Path:
    """A project that owns its template, as releases without baton.toml made it, with additions of a person."""
    folder = tmp_path / "shop"
    text = without_example((shared_root() / "template.yaml").read_text("utf-8"))
    text = text.replace(
        "          BATON_LEASE_GRACE_MS:",
        "          GREETING: hello\n          ORDERS: !Ref Orders\n          ODD: !Join [a, [b]]\n          BATON_LEASE_GRACE_MS:",
    )
    text = text.replace(
        "              - Sid: TellPeople\n",
        "              - Sid: Send\n                Effect: Allow\n                Action: sqs:SendMessage\n"
        "                Resource: !GetAtt Orders.Arn\n              - Sid: TellPeople\n",
    )
    files = {
        "template.yaml": text.replace("\nOutputs:\n", f"{ADDED}\nOutputs:\n"),
        "samconfig.toml": '[default.global.parameters]\nstack_name = "the-shop"\n[default.deploy.parameters]\n'
        'parameter_overrides = "AuthMode=\\"iam\\" HttpHosts=\\"a.example b.example\\" WorkerTimeout=90"\n',
        "requirements.txt": "# mine\nbaton[local] @ file:///w/baton.whl\npytest\n",
        "env.json": "{}",
        "functions/api/app.py": "",
        "layers/app/requirements.txt": "requests\n",
        "layers/app/sagas/order.yaml": "# yaml-language-server: $schema=../../../docs/workflow.schema.json\nname: order\n",
        "docs/workflow.schema.json": "{}",
        "docs/mine.md": "",
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, "utf-8")
    return folder


def test_a_project_that_owns_its_template_gets_a_configuration_with_what_was_added(
    owner: Path, says: Says
) -> None:
    planned = plan_upgrade(owner, LINE, OWN)
    assert planned.before == UNVERSIONED
    says(list(planned.left))
    apply_upgrade(owner, planned)
    config = tomllib.loads((owner / "baton.toml").read_text("utf-8"))
    assert config["stack"] == "the-shop"
    assert config["environment"] == {"GREETING": "hello", "ORDERS": "${Orders}"}
    assert config["parameters"] == {"AuthMode": "iam", "HttpHosts": "a.example b.example"}
    assert config["functions"]["worker"] == {"timeout": 90}
    assert config["permissions"] == [
        {"actions": ["sqs:SendMessage"], "resources": ["${Orders.Arn}"], "effect": "Allow"}
    ]
    assert parse_template((owner / "resources.yaml").read_text("utf-8")) == {
        "Resources": {"Orders": {"Type": "AWS::SQS::Queue"}}
    }
    worker = parse_template((owner / TEMPLATE).read_text("utf-8"))["Resources"]["WorkerFunction"][
        "Properties"
    ]
    assert worker["Environment"]["Variables"]["GREETING"] == "hello"
    assert (owner / "requirements.txt").read_text().splitlines() == ["# mine", LINE, "pytest"]
    assert "openai" in (owner / "layers/app/requirements.txt").read_text().splitlines()
    assert f"../{FOLDER}/workflow.schema.json" in (owner / "layers/app/sagas/order.yaml").read_text()
    there = contents(owner)
    assert (
        not {"template.yaml", "env.json", "functions/api/app.py", "docs/workflow.schema.json"} & there.keys()
    )
    assert "docs/mine.md" in there
    assert not (owner / "functions").exists()


def test_it_goes_back_to_its_own_template(owner: Path) -> None:
    before = contents(owner)
    apply_upgrade(owner, plan_upgrade(owner, LINE, OWN))
    assert undo_upgrade(owner) == UNVERSIONED
    assert contents(owner) == before
