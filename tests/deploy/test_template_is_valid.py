"""The template is one that SAM and CloudFormation accept, checked without credentials and without network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from baton.runtime.reconcile import RUNS
from tests.deploy.stack import ROOT, stack

SECTIONS = ["Metadata", "Parameters", "Rules", "Mappings", "Conditions", "Globals", "Resources", "Outputs"]


@pytest.mark.soak  # SAM and its linter take longer than all other tests of the template together
def test_sam_validates_and_lints_it_offline(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "SAM_CLI_TELEMETRY": "0",
        # No server listens there: whatever wants to go out fails at once.
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }
    sam = Path(sys.executable).with_name("sam")
    command = [sys.executable, str(sam), "validate", "--lint", "--template", str(ROOT / "template.yaml")]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


def test_its_sections_are_in_the_order_its_first_lines_promise() -> None:
    text = (ROOT / "template.yaml").read_text("utf-8")
    found = [name for name in re.findall(r"^([A-Z]\w+):", text, re.MULTILINE) if name in SECTIONS]
    assert found == SECTIONS
    numbers = [int(n) for n in re.findall(r"^  # ---- (\d+) ", text, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    named = text[: text.index("AWSTemplateFormatVersion")]
    assert [int(n) for n in re.findall(r"(?<= )(\d+) [a-zH]", named)] == numbers


def test_it_uses_nothing_of_yaml_that_cloudformation_does_not_read() -> None:
    lines = (ROOT / "template.yaml").read_text("utf-8").splitlines()
    assert [line for line in lines if re.search(r":\s+[&*][a-z_]+\s*$|<<:", line)] == []


def test_no_resource_needs_itself_to_exist_first() -> None:
    resources = stack().template.resources
    needs = {name: set(_references(resource)) & set(resources) for name, resource in resources.items()}
    done: set[str] = set()
    while ready := {name for name, wanted in needs.items() if name not in done and wanted <= done}:
        done |= ready
    assert set(needs) - done == set()


def test_every_parameter_says_what_it_is_and_is_used() -> None:
    template = stack().template
    used = {
        str(name)
        for part in ("Resources", "Conditions", "Rules")
        for name in _references(template.document[part])
    }
    for name, spec in template.parameters.items():
        assert spec.get("Description"), name
        assert "Default" in spec, f"{name}: a first deployment should need no more than it must"
        limited = {"AllowedValues", "AllowedPattern", "MinValue"} & set(spec)
        assert limited or name in {"JwtAudience", "TableStackUrl", "OpenDeliveryUrl"}, f"{name} has no limits"
        assert name in used, f"{name} changes nothing"


def test_every_parameter_is_in_one_group() -> None:
    groups = stack().template.document["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    grouped = [name for group in groups for name in group["Parameters"]]
    assert sorted(grouped) == sorted(stack().template.parameters)


def test_every_allowed_value_has_its_row_in_the_mappings() -> None:
    document = stack().template.document
    for parameter, mapping in (("Shards", "LastShard"), ("ReconcileMinutes", "ReconcilePeriod")):
        allowed = document["Parameters"][parameter]["AllowedValues"]
        assert {str(key) for key in document["Mappings"][mapping]} == {str(value) for value in allowed}
    assert all(
        int(row["Number"]) == min(int(n), RUNS) - 1 for n, row in document["Mappings"]["LastShard"].items()
    )
    assert all(
        int(row["Seconds"]) == int(n) * 60 for n, row in document["Mappings"]["ReconcilePeriod"].items()
    )


def test_a_deployment_tells_where_everything_is() -> None:
    assert set(stack().template.document["Outputs"]) == {
        "ApiUrl",
        "TableName",
        "BucketName",
        "WakeQueueUrl",
        "NoticesTopicArn",
        "WakeDeadLetterQueueUrl",
        "RelayFailureQueueUrl",
    }


def _references(node: Any) -> set[str]:
    """Logical ids and parameters that a part of the template mentions."""
    found: set[str] = set()
    if isinstance(node, list):
        found.update(*map(_references, node))
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref":
                found.add(str(value))
            elif key == "Fn::GetAtt":
                found.add(value.split(".")[0] if isinstance(value, str) else value[0])
            elif key == "Fn::Sub":
                text = value if isinstance(value, str) else value[0]
                found.update(name.split(".")[0] for name in re.findall(r"\$\{([^!}]+)\}", text))
            if key == "DependsOn":
                found.update([value] if isinstance(value, str) else value)
            found |= _references(value)
    return found
