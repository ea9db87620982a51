"""Credentials: by the profile's name, read once, renewed after a refusal, sent to one host, and shown nowhere."""

from __future__ import annotations

import asyncio
import logging
import threading

import httpx2
import pytest

from baton import settings
from baton.adapters.clock import SystemClock
from baton.adapters.credentials import KEPT_MS, Credentials, VariableSecrets
from baton.adapters.models.deployed import DeployedModels
from baton.adapters.models.exchange import _Held
from baton.adapters.models.profiles import Profiles
from baton.core.failures import sanitised
from baton.ports import StepFailure
from examples.services.models import Asked, Refusal, Reply
from tests.kit.provider import THREADS, Served, models, served
from tests.kit.sentences import Says
from tests.models.asking import a_request, adapter_of, ask, failure

KIND = "the model profile"


class Shifted:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.by = 0

    def now(self) -> int:
        return SystemClock().now() + self.by


class Vault:
    """Secrets that a test changes; it counts how often they are read."""

    def __init__(self, **kept: str) -> None:
        self.kept, self.reads = kept, list[str]()
        self._lock = threading.Lock()

    def read(self, profile: str) -> str:
        with self._lock:
            self.reads.append(profile)
        return self.kept.get(profile, "")

    def where(self, profile: str) -> str:
        return f"the vault's drawer `{profile}`"


def adapter(vault: Vault, profiles: str, clock: Shifted | None = None) -> DeployedModels:
    at = clock or Shifted()
    return DeployedModels(Profiles(profiles), Credentials(vault, at, THREADS, KIND), at, THREADS)


def only(key: str, served: Served) -> None:
    """The provider accepts this credential from now on."""

    def script(asked: Asked) -> Reply | Refusal:
        return Reply("in") if asked.authorization == f"Bearer {key}" else Refusal(401, "invalid_api_key")

    served.script = script


def test_each_profile_gets_its_own_credential_and_no_other(provider: Served) -> None:
    provider.script = lambda asked: Reply("x")
    with served() as other:
        other.script = lambda asked: Reply("y")
        two = models(f"a={provider.url}/v1 b={other.url}/v1", lambda profile: f"key-of-{profile}")
        found = ask(two, a_request(model="a/m"), a_request(model="b/m"), a_request(model="m"))
        assert [answer.text for answer in found] == ["x", "y", "x"]
        assert [one.authorization for one in other.asked] == ["Bearer key-of-b"]
    assert [one.authorization for one in provider.asked] == ["Bearer key-of-a"] * 2


def test_a_redirect_is_not_followed_and_the_host_it_leads_to_gets_nothing(provider: Served) -> None:
    with served() as other:
        other.script = lambda asked: Reply("stolen")
        for status in (301, 302, 307, 308):
            there = {"location": f"{other.url}/v1/chat/completions"}
            provider.script = lambda asked, s=status, t=there: Refusal(s, headers=t)  # type: ignore[misc]  # bound here
            assert failure(adapter_of(provider.url)).code == "resource_moved"
        assert other.asked == []


def test_the_transport_refuses_every_origin_but_its_profiles(says: Says) -> None:
    async def sent() -> None:
        async with httpx2.AsyncClient(
            transport=_Held("https://api.openai.com/v1"), trust_env=False
        ) as client:
            for url in (
                "https://elsewhere.example/v1",
                "http://api.openai.com/v1",
                "https://api.openai.com:444/v1",
            ):
                with pytest.raises(StepFailure) as refused:
                    await client.post(url, headers={"Authorization": "Bearer x"})
                says(refused.value.message)

    asyncio.run(sent())


def test_a_credential_is_read_once_and_again_after_five_minutes(provider: Served) -> None:
    provider.script = lambda asked: Reply("x")
    vault, clock = Vault(openai="k"), Shifted()
    one = adapter(vault, f"openai={provider.url}/v1", clock)
    ask(one, a_request(), a_request())
    assert vault.reads == ["openai"]
    clock.by = KEPT_MS
    ask(one, a_request())
    assert vault.reads == ["openai"] * 2


def test_agents_that_begin_at_once_read_a_credential_once() -> None:
    vault = Vault(openai="k")
    credentials = Credentials(vault, SystemClock(), THREADS, KIND)

    async def together() -> list[str]:
        return await asyncio.gather(*(credentials.of("openai") for _ in range(20)))

    assert asyncio.run(together()) == ["k"] * 20
    assert vault.reads == ["openai"]


def test_a_credential_that_was_replaced_is_read_anew_and_the_request_is_made_again(provider: Served) -> None:
    only("new", provider)
    vault, clock = Vault(openai="old"), Shifted()
    one = adapter(vault, f"openai={provider.url}/v1", clock)
    assert failure(one).code == "unauthorized"
    vault.kept["openai"] = "new"
    clock.by = 20_000
    assert ask(one, a_request())[0].text == "in"
    assert [asked.authorization for asked in provider.asked] == ["Bearer old", "Bearer old", "Bearer new"]


def test_a_credential_that_stays_refused_is_neither_sent_again_nor_read_at_every_request(
    provider: Served,
) -> None:
    only("other", provider)
    vault = Vault(openai="wrong")
    one = adapter(vault, f"openai={provider.url}/v1")
    for _ in range(5):
        assert failure(one).code == "unauthorized"
    assert (len(vault.reads), len(provider.asked)) == (1, 5)


def test_a_renewed_credential_that_is_refused_too_is_the_failure(provider: Served) -> None:
    only("third", provider)
    vault, clock = Vault(openai="first"), Shifted()
    one = adapter(vault, f"openai={provider.url}/v1", clock)
    failure(one)
    vault.kept["openai"], clock.by = "second", 20_000
    assert failure(one).code == "unauthorized"
    assert len(provider.asked) == 3


def test_without_a_credential_nothing_is_sent_and_the_message_says_where_it_belongs(says: Says) -> None:
    found = failure(adapter(Vault(), "openai=https://api.openai.com/v1"))
    assert found.code == "missing_credentials"
    says(found.message)
    assert sanitised(found.message) == found.message


def test_a_server_of_ones_own_without_tls_needs_none(provider: Served) -> None:
    provider.script = lambda asked: Reply("x")
    ask(adapter(Vault(), f"own={provider.url}/v1"), a_request())
    assert "authorization" not in provider.asked[0].headers


def test_a_credential_that_need_not_be_there_is_looked_for_every_ten_seconds(provider: Served) -> None:
    provider.script = lambda asked: Reply("in")
    vault, clock = Vault(), Shifted()
    own = adapter(vault, f"own={provider.url}/v1", clock)
    ask(own, a_request(), a_request())
    assert vault.reads == ["own"]
    clock.by = 10_000
    vault.kept["own"] = "key-of-own"
    ask(own, a_request(), a_request())
    assert (vault.reads, provider.asked[-1].authorization) == (["own", "own"], "Bearer key-of-own")


@pytest.mark.parametrize("secret", ['{"key":"sk-1"}', "sk-1\r\nX-Other: 1", "sk 1", "schlüssel"])
def test_what_is_no_credential_is_not_sent_and_not_quoted(secret: str, says: Says) -> None:
    found = failure(adapter(Vault(openai=secret), "openai=https://api.openai.com/v1"))
    assert found.code == "missing_credentials"
    says(found.message)


def test_a_line_end_behind_a_credential_is_no_part_of_it() -> None:
    credentials = Credentials(Vault(openai="sk-1\n"), SystemClock(), THREADS, KIND)
    assert asyncio.run(credentials.of("openai")) == "sk-1"


def test_neither_credential_nor_request_is_in_a_log_or_a_representation(
    provider: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    provider.script = lambda asked: Refusal(500, message="It does not work.")
    vault = Vault(openai="sk-very-secret-4711")
    one = adapter(vault, f"openai={provider.url}/v1")
    failure(one, a_request("what the user said"))
    assert [word for word in ("4711", "what the user said", "POST") if word in caplog.text] == []
    assert "4711" not in repr(one) + repr(one._credentials)


def test_variables_are_named_after_the_profile(says: Says) -> None:
    secrets = VariableSecrets({"own": "k"}.__getitem__, lambda profile: f"KEY_{profile}")
    assert secrets.read("own") == "k"
    says(secrets.where("own"))


def test_the_variable_of_a_credential_is_known_as_a_secret_wherever_it_is_quoted() -> None:
    assert (
        sanitised(f"{settings.local_key_variable('MODEL', 'own')}=abc def")
        == "BATON_MODEL_KEY_OWN=[redacted] def"
    )
    assert (
        sanitised(f"{settings.local_key_variable('API', 'own')}=abc def")
        == "BATON_API_KEY_OWN=[redacted] def"
    )
