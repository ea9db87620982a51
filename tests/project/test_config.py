"""baton.toml: each mistake is named with its line, and with what would be right."""

from __future__ import annotations

import pytest

from baton.core.version import VERSION
from baton.project.config import Config, ConfigError, McpTool, check_version, parse_config
from baton.project.deployment import allowed_parameters
from tests.kit.sentences import Says

HEAD = f'baton = "{VERSION}"\nstack = "my-sagas"\n'


def config(text: str) -> Config:
    return parse_config(HEAD + text, allowed_parameters({}))


def test_a_whole_file_is_read() -> None:
    read = config(
        'region = "eu-central-1"\n'
        '[environment]\nURL = "https://a"\nRETRIES = 3\nIS_ON = true\n'
        '[secrets]\nKEY = "/my-sagas/key"\n'
        "[parameters]\nMaxDeaths = 5\n"
        '[functions]\npackage = "image"\nworker = {memory = 2048, timeout = 300}\napi = {memory = 512}\n'
        '[vpc]\nsubnets = ["subnet-0a"]\nsecurity_groups = ["sg-0b"]\n'
        '[[permissions]]\nactions = ["s3:GetObject"]\nresources = ["arn:aws:s3:::b/*"]\n'
        '[models]\nsecrets = "/models/"\nprofiles = {openai = "https://a/v1", own = "https://b/v1"}\n'
        '[mcp.crm]\nurl = "https://a/mcp"\ncredential = "X-Key"\ntrust_hints = true\n'
        '[mcp.crm.tools]\nlook = {effect = "pure", requires_approval = true}\n"add-note" = {}\n'
    )
    assert read.mcp["crm"].tools["look"] == McpTool("pure", requires_approval=True)
    assert read.variables() == {"URL": "https://a", "RETRIES": "3", "IS_ON": "true"}
    assert read.values() == {
        "MaxDeaths": "5",
        "WorkerMemory": "2048",
        "WorkerTimeout": "300",
        "ModelProfiles": "openai=https://a/v1 own=https://b/v1",
        "ModelSecrets": "/models/",
    }


MISTAKES = {
    "not TOML": "x = = 1\n",
    "an unknown table": '[enviroment]\nA = "b"\n',
    "an unknown key of a table": "[functions]\nworker = {memroy = 512}\n",
    "an unknown function": "[functions.workers]\nmemory = 512\n",
    "a text for a number": '[functions.worker]\nmemory = "2 GB"\n',
    "a number that is too large": "[functions.worker]\ntimeout = 901\n",
    "a list for a text": '[environment]\nA = ["b"]\n',
    "a form": '[vpc]\nsubnets = ["vpc-1"]\nsecurity_groups = ["sg-1"]\n',
    "an address": '[mcp.crm]\nurl = "crm"\n',
    "a server without tools": '[mcp.crm]\nurl = "https://crm.example.com/mcp"\ntools = {}\n',
    "an effect": '[mcp.crm]\nurl = "https://a/mcp"\ntools = {look = {effect = "none"}}\n',
    "an unknown key of a tool": '[mcp.crm]\nurl = "https://a/mcp"\ntools = {look = {efect = "pure"}}\n',
    "a name of a server": '[mcp.std]\nurl = "https://a/mcp"\ntools = {look = {}}\n',
    "a missing key": '[vpc]\nsubnets = ["subnet-1"]\n',
    "an action": '[[permissions]]\nactions = ["GetObject"]\nresources = ["*"]\n',
    "a package": '[functions]\npackage = "tar"\n',
    "a variable of the engine": '[environment]\nBATON_MAX_DEATHS = "5"\n',
    "a variable of Lambda": '[environment]\nAWS_REGION = "x"\n',
    "a name that no variable has": '[environment]\n"my-key" = "x"\n',
    "a value for a secret's name": '[secrets]\nKEY = "sk live 123"\n',
    "a variable twice": '[environment]\nKEY = "x"\n[secrets]\nKEY = "a/b"\n',
    "an unknown parameter": "[parameters]\nMaxDeath = 5\n",
    "a parameter out of bounds": "[parameters]\nMaxDeaths = 11\n",
    "a parameter that is no number": '[parameters]\nMaxDeaths = "many"\n',
    "a parameter that is not offered": '[parameters]\nOnFailure = "shrug"\n',
    "a parameter of another form": '[parameters]\nMailFrom = "ada"\n',
    "a parameter that has a table": "[parameters]\nWorkerMemory = 512\n",
    "a secret among parameters": f'[parameters]\nSigningKey = "{"x" * 32}"\n',
    "the time of another function": "[functions]\nrelay = {timeout = 60}\n",
    "a provider without an address": '[models.profiles]\nopenai = "api.openai.com"\n',
}


@pytest.mark.parametrize("text", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line_and_with_what_would_be_right(text: str, says: Says) -> None:
    with pytest.raises(ConfigError) as refused:
        config(text)
    says(list(refused.value.problems))


def test_all_mistakes_are_named_at_once(says: Says) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config("stack = 3\n[vpc]\n", allowed_parameters({}))
    says(list(refused.value.problems))


def test_a_name_that_no_stack_has_is_refused(says: Says) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_config(f'baton = "{VERSION}"\nstack = "My Sagas"\n', allowed_parameters({}))
    says(list(refused.value.problems))


@pytest.mark.parametrize("running", ["0.0.9", "0.10.0"], ids=["older", "newer"])
def test_a_project_of_another_baton_is_refused_with_what_to_do(running: str, says: Says) -> None:
    project = parse_config('baton = "0.2.0"\nstack = "a"\n', allowed_parameters({}))
    check_version(project, "0.2.0")
    with pytest.raises(ConfigError) as refused:
        check_version(project, running)
    says(str(refused.value))
