"""Which provider a model's name leads to, and which addresses a deployment may name."""

from __future__ import annotations

import pytest

from baton.adapters.models.profiles import Profile, Profiles
from tests.kit.sentences import Says

BEDROCK = Profile(
    "bedrock",
    "https://bedrock-runtime.eu-west-1.amazonaws.com",
    "bedrock-runtime.eu-west-1.amazonaws.com",
    "bedrock",
    "eu-west-1",
)
TWO = Profiles("openai=https://api.openai.com/v1/ own=http://127.0.0.1:8099/v1")


@pytest.mark.parametrize(
    ("model", "profile", "name"),
    [
        ("gpt-5-mini", "openai", "gpt-5-mini"),
        ("openai/gpt-5-mini", "openai", "gpt-5-mini"),
        ("own/qwen3", "own", "qwen3"),
        ("own/meta-llama/llama-4", "own", "meta-llama/llama-4"),
        ("meta-llama/llama-4", "openai", "meta-llama/llama-4"),
        ("own/", "openai", "own/"),
        ("own", "openai", "own"),
    ],
)
def test_a_name_leads_to_the_profile_that_it_begins_with_or_to_the_first(
    model: str, profile: str, name: str
) -> None:
    found, rest = TWO.of(model)
    assert (found.name, rest) == (profile, name)


def test_an_address_has_no_slash_at_its_end_and_its_host_is_known() -> None:
    assert TWO.of("x")[0][1:3] == ("https://api.openai.com/v1", "api.openai.com")


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("openai", Profile("openai", "https://api.openai.com/v1", "api.openai.com")),
        ("anthropic", Profile("anthropic", "https://api.anthropic.com/v1", "api.anthropic.com", "anthropic")),
        ("a=anthropic+https://g.example/v1/", Profile("a", "https://g.example/v1", "g.example", "anthropic")),
        ("bedrock", BEDROCK),
        (
            "us=bedrock+https://bedrock-runtime.us-east-1.amazonaws.com",
            Profile(
                "us",
                "https://bedrock-runtime.us-east-1.amazonaws.com",
                "bedrock-runtime.us-east-1.amazonaws.com",
                "bedrock",
                "us-east-1",
            ),
        ),
    ],
)
def test_a_known_provider_needs_no_address_and_an_address_may_name_its_api(
    text: str, profile: Profile
) -> None:
    assert Profiles(text, region="eu-west-1").of("m") == (profile, "m")


def test_the_region_is_that_of_the_deployment_or_of_the_address(says: Says) -> None:
    with says.raised(ValueError):
        Profiles("bedrock=bedrock+https://bedrock.internal.example")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a=https://x.example a=https://y.example",
        "https://api.openai.com/v1",
        "Open-AI=https://x.example",
        "a=ftp://x.example",
        "a=https://",
        "a=https://x.example:port/v1",
        "a=https://x.example/v1?key=sk-123",
        "a=https://me:sk-123@x.example/v1",
        "a=http://x.example/v1",
        "a=http://10.0.0.7/v1",
        "a=https://x.example/v1/chat/completions/",
        "own",
        "a=vertex+https://x.example/v1",
    ],
)
def test_what_is_wrong_with_a_profile_is_said_without_what_may_be_a_secret(text: str, says: Says) -> None:
    with says.raised(ValueError) as caught:
        Profiles(text)
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:80", "http://llm.internal/v1"]
)
def test_loopback_and_hosts_of_the_deployments_list_are_called_without_tls(url: str) -> None:
    assert Profiles(f"a={url}", ["llm.internal"]).of("m")[0].url == url.rstrip("/")
    assert Profiles(f"a={url}", ["*"]).of("m")[0].url == url.rstrip("/")
