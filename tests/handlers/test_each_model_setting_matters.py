"""The settings of models and of APIs: with another value a worker asks elsewhere, or takes its credentials from elsewhere.

What the adapter does is in tests/models, and `std.openapi` in tests/tools.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.spans import TracedPerformer
from baton.settings import SettingsError, variable_of
from examples.services.models import Reply
from tests.handlers.deployment import Deployment
from tests.kit.provider import served
from tests.kit.sentences import Says
from tests.models.asking import a_request


def models_of_a_worker(deployment: Deployment, **settings: str) -> Any:
    changed = {variable_of(name): value for name, value in settings.items()}
    with deployment.function("worker", **changed) as module:
        module._loop.close()
        assert module._engine.models.price("gpt-5-mini") is not None  # what stands for the adapter is made
        return module._engine.models.price.__self__


def services_of_a_worker(deployment: Deployment, **settings: str) -> Any:
    """What its standard tools are given."""
    changed = {variable_of(name): value for name, value in settings.items()}
    with deployment.function("worker", **changed) as module:
        module._loop.close()
        return module._engine.performer._registry._services


def test_model_profiles(deployment: Deployment, says: Says) -> None:
    found = models_of_a_worker(deployment, model_profiles="own=https://a.example/v1 b=http://127.0.0.1/v1")
    assert found._profiles.of("m")[0].url == "https://a.example/v1"
    with says.raised(SettingsError):
        models_of_a_worker(deployment, model_profiles="own=http://a.example/v1")
    listed = models_of_a_worker(
        deployment, model_profiles="own=http://a.example/v1", plain_http_hosts="a.example"
    )
    assert listed._profiles.of("m")[0].host == "a.example"


def test_model_secrets(deployment: Deployment, says: Says) -> None:
    found = models_of_a_worker(deployment, model_secrets="/baton/models/")
    says(found._credentials._secrets.where("openai"))
    local = models_of_a_worker(deployment)._credentials._secrets
    says(local.where("openai"))
    assert local.read("openai") == ""


def test_a_worker_asks_the_provider_and_sends_the_credential_that_it_is_given(
    deployment: Deployment,
) -> None:
    with served() as provider:
        provider.script = lambda asked: Reply("yes")
        given = {"BATON_MODEL_PROFILES": f"own={provider.url}/v1", "BATON_MODEL_KEY_OWN": "k-1"}
        with deployment.function("worker", **given) as module:
            asked = module._engine.models.answer(a_request())
            assert module._loop.run(asked).text == "yes"
            module._loop.run(module._engine.models.aclose())
            module._loop.close()
        assert provider.asked[0].authorization == "Bearer k-1"


WEATHER = f"weather=https://api.example/openapi.json#sha256:{'0' * 64}"


def test_open_apis(deployment: Deployment) -> None:
    found = services_of_a_worker(
        deployment, open_apis=f"{WEATHER} {WEATHER.replace('weather', 'own')}@https://b.example/v1/"
    )
    assert found.apis.names() == ["own", "weather"]
    assert (found.apis.get("weather").server, found.apis.get("own").server) == ("", "https://b.example/v1")
    for wrong in (f"{WEATHER} {WEATHER}", WEATHER.partition("#")[0], WEATHER.replace("https://", "file://")):
        with pytest.raises(SettingsError, match="BATON_OPEN_APIS: "):
            services_of_a_worker(deployment, open_apis=wrong)


def test_facts(deployment: Deployment) -> None:
    index = "arn:aws:s3vectors:eu-central-1:123456789012:bucket/facts/index/facts"
    found = services_of_a_worker(deployment, facts=f"own/small {index}")
    assert (found.embedding_model, found.facts.nearest.__self__._index) == ("own/small", index)
    found = services_of_a_worker(deployment, facts="own/small")
    assert (found.embedding_model, hasattr(found.facts.nearest.__self__, "_index")) == ("own/small", False)
    with pytest.raises(SettingsError, match="BATON_FACTS"):
        services_of_a_worker(deployment, facts=f"{index} own/small")


def test_api_secrets(deployment: Deployment, says: Says) -> None:
    found = services_of_a_worker(deployment, api_secrets="baton/apis/").credentials
    says(found.of.__self__._secrets.where("weather"))
    local = services_of_a_worker(deployment).credentials.of.__self__._secrets
    says(local.where("weather"))
    assert local.read("weather") == ""


def test_the_api_asks_the_same_providers_with_the_same_credentials(
    deployment: Deployment, says: Says
) -> None:
    given = {
        "model_profiles": "own=http://a.example/v1",
        "model_secrets": "/baton/models/",
        "plain_http_hosts": "a.example",
    }
    changed = {variable_of(name): value for name, value in given.items()}
    with deployment.function("api", **changed) as module:
        models = module._api._engine.models
        assert models.price("no-such-model") is None  # what stands for the adapter is made
        found = models.price.__self__
    assert found._profiles.of("m")[0].host == "a.example"
    says(found._credentials._secrets.where("own-webhook"))


def test_traces_url(deployment: Deployment) -> None:
    with deployment.function("worker", BATON_TRACES_URL="http://127.0.0.1:4318/v1/traces") as module:
        module._loop.close()
        assert module._engine.spans._url == "http://127.0.0.1:4318/v1/traces"
        assert module._engine.models._provider_of("m")[0].name == "openai"
        assert isinstance(module._engine.performer, TracedPerformer)
    with deployment.function("worker") as module:
        module._loop.close()
        assert module._engine.spans is None
