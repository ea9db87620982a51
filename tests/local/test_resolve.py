"""Parameters, conditions and intrinsic functions of a template, and what is said about their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from baton.local.processes import LocalRunError, TemplateProblem
from baton.local.template import NO_VALUE, Resolver, Template, check_rules, effective, load
from tests.kit.sentences import Says

DOCUMENT: dict[str, Any] = {
    "Parameters": {
        "Seconds": {"Type": "Number", "Default": 60, "MinValue": 3, "MaxValue": 900},
        "Mode": {"Type": "String", "Default": "jwt", "AllowedValues": ["jwt", "iam"]},
        "Url": {
            "Type": "String",
            "Default": "",
            "AllowedPattern": "^(https://.+)?$",
            "ConstraintDescription": "an https:// URL",
        },
        "Names": {"Type": "CommaDelimitedList", "Default": "a, b"},
        "Needed": {"Type": "String"},
    },
    "Mappings": {"Last": {1: {"Number": "0"}, "4": {"Number": "3"}}},
    "Conditions": {
        "UseJwt": {"Fn::Equals": [{"Ref": "Mode"}, "jwt"]},
        "Both": {"Fn::And": [{"Condition": "UseJwt"}, {"Fn::Not": [{"Fn::Equals": [{"Ref": "Url"}, "x"]}]}]},
    },
    "Rules": {
        "UrlIsNeeded": {
            "RuleCondition": {"Fn::Equals": [{"Ref": "Mode"}, "jwt"]},
            "Assertions": [
                {
                    "Assert": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Url"}, ""]}]},
                    "AssertDescription": "say Url",
                },
                {"Assert": {"Fn::Contains": [{"Ref": "Names"}, "b"]}, "AssertDescription": "b is needed"},
            ],
        }
    },
    "Resources": {
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "Properties": {"TableName": {"Fn::Sub": "${AWS::StackName}-t"}},
        },
        "Queue": {"Type": "AWS::SQS::Queue"},
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Function": {"Type": "AWS::Lambda::Function"},
        "Machine": {"Type": "AWS::StepFunctions::StateMachine", "Properties": {"StateMachineName": "m"}},
        "OnlyIam": {"Type": "AWS::SQS::Queue", "Condition": "NotJwt"},
        "Alarm": {"Type": "AWS::CloudWatch::Alarm"},
    },
}
DOCUMENT["Conditions"]["NotJwt"] = {"Fn::Not": [{"Condition": "UseJwt"}]}
TEMPLATE = Template(Path("template.yaml"), DOCUMENT)
ACCOUNT = "us-east-1:000000000000"


def resolver(**given: str) -> Resolver:
    return Resolver(TEMPLATE, effective(TEMPLATE, {"Needed": "n", **given}, {}))


@pytest.mark.parametrize(
    ("node", "value"),
    [
        ({"Ref": "Seconds"}, "60"),
        ({"Ref": "Names"}, ["a", "b"]),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Table"}, "baton-t"),
        ({"Ref": "Bucket"}, "baton-bucket"),
        ({"Ref": "Machine"}, f"arn:aws:states:{ACCOUNT}:stateMachine:m"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, f"arn:aws:dynamodb:{ACCOUNT}:table/baton-t"),
        ({"Fn::GetAtt": "Queue.Arn"}, f"arn:aws:sqs:{ACCOUNT}:baton-Queue"),
        ({"Fn::GetAtt": ["Queue", "QueueName"]}, "baton-Queue"),
        ({"Fn::Sub": "${Function.Arn}:*"}, f"arn:aws:lambda:{ACCOUNT}:function:baton-Function:*"),
        ({"Fn::Sub": ["${x}/${Mode}/${!Mode}", {"x": {"Ref": "Seconds"}}]}, "60/jwt/${Mode}"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Mode"}]]}, "a-jwt"),
        ({"Fn::Select": [1, {"Ref": "Names"}]}, "b"),
        ({"Fn::Split": ["/", "a/b"]}, ["a", "b"]),
        ({"Fn::FindInMap": ["Last", "1", "Number"]}, "0"),
        ({"Fn::FindInMap": ["Last", {"Ref": "Seconds"}, "Number", {"DefaultValue": "9"}]}, "9"),
        ({"Fn::If": ["UseJwt", "yes", "no"]}, "yes"),
        ({"Fn::Base64": "a"}, "YQ=="),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "AWS::NoValue"}, 1]}, {"b": [1]}),
        ({"Condition": {"Bool": {"x": "y"}}}, {"Condition": {"Bool": {"x": "y"}}}),
    ],
)
def test_a_function_is_evaluated(node: Any, value: Any) -> None:
    assert resolver().value(node, "here") == value


def test_a_condition_decides_whether_a_resource_exists() -> None:
    assert resolver().condition("Both", "here")
    assert not resolver().exists("OnlyIam")
    assert resolver(Mode="iam").exists("OnlyIam")


def test_what_is_only_known_after_creation_has_to_be_learned(says: Says) -> None:
    known = resolver()
    with says.raised(TemplateProblem):
        known.ref("Queue", "here")
    known.learn("Queue", "Ref", "http://queue")
    known.learn("Table", "StreamArn", "arn:stream")
    assert known.value({"Fn::Sub": "${Queue} ${Table.StreamArn}"}, "here") == "http://queue arn:stream"
    assert known.references()["Queue"] == "http://queue"
    assert "OnlyIam" not in known.references()


def test_no_value_as_a_whole_is_kept_apart_from_null() -> None:
    assert resolver().value({"Ref": "AWS::NoValue"}, "here") is NO_VALUE


@pytest.mark.parametrize(
    "node",
    [
        {"Ref": "Tabel"},
        {"Ref": "OnlyIam"},
        {"Fn::GetAtt": ["Table", "Colour"]},
        {"Fn::GetAtt": ["Alarm", "Arn"]},
        {"Fn::FindInMap": ["Last", "5", "Number"]},
        {"Fn::Cidr": ["x"]},
        {"Fn::If": ["UseJvt", 1, 2]},
        {"Fn::Select": ["9", {"Ref": "Names"}]},
        {"Fn::And": ["maybe"]},
    ],
)
def test_a_mistake_is_named_with_its_place(node: Any, says: Says) -> None:
    with says.raised(TemplateProblem):
        resolver().value(node, "here")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"Secnds": "5"}, r"parameter Secnds: .*nearest: Seconds"),
        ({"Seconds": "2"}, "'2' is less than 3"),
        ({"Seconds": "901"}, "'901' is more than 900"),
        ({"Seconds": "soon"}, "'soon' is not a number"),
        ({"Mode": "basic"}, "'basic' is not one of jwt, iam"),
        ({"Url": "http://x"}, r"does not match .* \(an https:// URL\)"),
    ],
)
def test_an_override_that_the_template_does_not_allow_is_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(LocalRunError, match=told):
        effective(TEMPLATE, {"Needed": "n", **given}, {})


def test_a_parameter_without_default_needs_a_value(says: Says) -> None:
    with says.raised(LocalRunError):
        effective(TEMPLATE, {}, {})


def test_values_of_the_run_itself_are_not_held_against_constraints() -> None:
    values = effective(TEMPLATE, {"Needed": "n"}, {"Url": "http://127.0.0.1:1"})
    assert values["Url"] == "http://127.0.0.1:1"


def test_a_rule_whose_assertion_fails_stops_the_run_with_its_words(says: Says) -> None:
    with says.raised(TemplateProblem):
        check_rules(TEMPLATE, resolver())
    check_rules(TEMPLATE, resolver(Url="https://x"))
    check_rules(TEMPLATE, resolver(Mode="iam"))


@pytest.mark.parametrize(
    "source",
    [
        "a: [",
        "Resources: 5",
        "Resources: {F: {Type: 'AWS::Serverless::Function', Properties: {Runtime: python3.13}}}",
    ],
)
def test_a_file_that_is_no_template_is_refused(tmp_path: Path, source: str, says: Says) -> None:
    (tmp_path / "template.yaml").write_text(source + "\n")
    with says.raised(LocalRunError):
        load(tmp_path / "template.yaml", {})


def test_a_missing_file_is_named(tmp_path: Path, says: Says) -> None:
    with says.raised(LocalRunError):
        load(tmp_path / "nothing.yaml", {})
