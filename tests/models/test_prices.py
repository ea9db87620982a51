"""What models cost is what genai-prices says, found as it finds it, from the package or from the file of a layer."""

from __future__ import annotations

import math
import sys
import warnings
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot

from baton.adapters.models import price_source
from baton.adapters.models.deployed import DeployedModels
from baton.adapters.models.prices import (
    FILE,
    DatedPrice,
    NamePattern,
    PricedModel,
    Prices,
    PriceTable,
    Provider,
    read_prices,
    write,
)
from baton.adapters.models.profiles import Profiles
from baton.core.models.usage import Price, Usage, usage_cost
from baton.shipping.contents import write_prices
from tests.kit.provider import models

NOW = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp() * 1_000)
HOUR = 3_600_000


@pytest.fixture(scope="module")
def prices() -> Prices:
    return Prices(read_prices(write(price_source.price_table())))


def price(prices: Prices, model: str, profile: str = "openai=https://api.openai.com/v1") -> Price | None:
    found, name = Profiles(profile).of(model)
    return prices.of(found, name, NOW)


@pytest.mark.parametrize(
    ("provider", "url", "model"),
    [
        ("openai", "https://api.openai.com/v1", "gpt-5-mini"),
        ("openai", "https://api.openai.com/v1", "gpt-5.4"),
        ("openai", "https://api.openai.com/v1", "gpt-5-mini-2025-08-07"),
        ("openai", "https://api.openai.com/v1", "gpt-4o-mini"),
        ("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-5"),
        ("google", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro"),
        ("deepseek", "https://api.deepseek.com/v1", "deepseek-chat"),
        ("openrouter", "https://openrouter.ai/api/v1", "openai/gpt-5-mini"),
        ("groq", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("azure", "https://mine.openai.azure.com/openai/v1", "gpt-4o"),
    ],
)
@pytest.mark.parametrize("tokens", [(1_000, 200, 300), (300_000, 299_000, 9_000)])
def test_the_exported_figures_are_the_packages(
    provider: str, url: str, model: str, tokens: tuple[int, int, int], prices: Prices
) -> None:
    given, cached, output = tokens
    usage = genai_prices.Usage(input_tokens=given, cache_read_tokens=cached, output_tokens=output)
    theirs = genai_prices.calc_price(
        usage, model, provider_api_url=url, genai_request_timestamp=datetime.fromtimestamp(NOW / 1_000, UTC)
    ).total_price
    ours = price(prices, model, f"p={url}")
    assert ours is not None
    assert usage_cost(Usage(input=given, cached=cached, output=output), ours) == micro(theirs)
    assert provider in {one.id for one in get_snapshot().providers}


def micro(usd: Decimal) -> int:
    return math.ceil(usd * 1_000_000)


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_of_every_model_of_the_package_the_cost_is_the_packages_or_there_is_none(
    prices: Prices, every: int
) -> None:
    at = datetime.fromtimestamp(NOW / 1_000, UTC)
    # An own address that no provider has: then the profile's name says which one is meant.
    listed = [
        (one.id, model.id) for one in get_snapshot().providers if one.id.isalnum() for model in one.models
    ][::every]
    compared = 0
    for provider, model in listed:
        found = price(prices, model, f"{provider}=https://gateway.invalid")
        if found is None:
            continue
        usage = genai_prices.Usage(input_tokens=250_000, output_tokens=1_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = genai_prices.calc_price(usage, model, provider_id=provider, genai_request_timestamp=at)
        assert usage_cost(Usage(input=250_000, output=1_000), found) == micro(theirs.total_price), (
            provider,
            model,
        )
        compared += 1
    assert compared > len(listed) * 0.8


@pytest.mark.parametrize(
    ("profile", "model", "is_known"),
    [
        ("openai=https://api.openai.com/v1", "gpt-5-mini", True),
        ("openai=https://api.openai.com/v1", "gpt-of-no-one", False),
        ("openai=https://gateway.example.com/v1", "gpt-5-mini", True),  # by the profile's name
        ("gateway=https://gateway.example.com/v1", "gpt-5-mini", True),  # by the model's own
        ("gateway=https://gateway.example.com/v1", "our-own-model", False),
        ("gateway=https://gateway.example.com/v1", "GPT-5-Mini", True),
        ("openai=https://api.openai.com/v1", "gpt-5-mini-20250807", True),
        ("openai=https://api.openai.com/v1", "gpt-5-mini-20251399", False),
    ],
)
def test_a_provider_is_known_by_its_address_its_profile_or_its_models_name(
    profile: str, model: str, is_known: bool, prices: Prices
) -> None:
    assert (price(prices, model, profile) is not None) is is_known


@pytest.mark.parametrize(
    ("names", "fitting", "other"),
    [
        (NamePattern(equals="a"), "a", "ab"),
        (NamePattern(begins="a"), "ab", "ba"),
        (NamePattern(ends="a"), "ba", "ab"),
        (NamePattern(contains="b"), "abc", "ac"),
        (NamePattern(regex="^o[134]"), "o3-mini", "o2"),
        (NamePattern(any=(NamePattern(equals="a"), NamePattern(equals="b"))), "b", "c"),
        (NamePattern(all=(NamePattern(begins="a"), NamePattern(ends="b"))), "a-b", "a-c"),
    ],
)
def test_a_rule_for_names_fits_what_it_says(names: NamePattern, fitting: str, other: str) -> None:
    assert (names.fits(fitting), names.fits(other)) == (True, False)


CHEAP, DEAR = Price(input=1, output=1), Price(input=2, output=2)


@pytest.mark.parametrize(
    ("dated", "now", "cost"),
    [
        (DatedPrice(DEAR, since="2026-11-23"), NOW, DEAR),
        (DatedPrice(DEAR, since="2026-11-24"), NOW, CHEAP),
        (DatedPrice(DEAR, hours=(11 * HOUR, 13 * HOUR)), NOW, DEAR),
        (DatedPrice(DEAR, hours=(13 * HOUR, 14 * HOUR)), NOW, CHEAP),
        (DatedPrice(DEAR, hours=(22 * HOUR, 13 * HOUR)), NOW, DEAR),
        (DatedPrice(DEAR, hours=(22 * HOUR, 2 * HOUR)), NOW, CHEAP),
    ],
)
def test_a_price_holds_from_its_day_on_or_in_its_hours(dated: DatedPrice, now: int, cost: Price) -> None:
    models = (PricedModel(NamePattern(equals="m"), (DatedPrice(CHEAP), dated)),)
    table = PriceTable("1", (Provider("p", "https://p.example", models),))
    assert Prices(table).of(Profiles("p=https://p.example").of("m")[0], "m", now) == cost


def test_a_model_that_another_provider_lists_has_that_ones_price() -> None:
    own = Provider("a", "https://a.example", (), others=("b", "gone"))
    other = Provider("b", "https://b.example", (PricedModel(NamePattern(equals="m"), (DatedPrice(DEAR),)),))
    assert (
        Prices(PriceTable("1", (own, other))).of(Profiles("x=https://a.example").of("m")[0], "m", NOW) == DEAR
    )


@pytest.mark.parametrize(
    "model", ["text-embedding-3-small", "text-embedding-3-large", "text-embedding-ada-002"]
)
def test_a_model_that_embeds_has_a_price_for_its_input(prices: Prices, model: str) -> None:
    found = price(prices, model)
    assert found is not None
    assert (found.input > 0, found.output) == (True, 0)


def test_a_model_whose_price_cannot_be_said_by_tokens_has_none(prices: Prices) -> None:
    assert price(prices, "sonar-deep-research", "perplexity=https://api.perplexity.ai") is None


def test_the_build_writes_the_same_figures_that_a_checkout_reads(tmp_path: Path) -> None:
    (tmp_path / "adapters/models").mkdir(parents=True)
    write_prices(tmp_path)
    file = tmp_path / "adapters/models" / FILE
    assert read_prices(file.read_bytes()) == price_source.price_table()
    assert file.stat().st_size < 1_000_000


def test_a_checkout_reads_the_installed_library_and_without_it_no_price_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    adapter: DeployedModels = models("openai=https://api.openai.com/v1")
    known = adapter.price("gpt-5-mini")
    assert known is not None
    assert known.input > 0
    monkeypatch.setitem(sys.modules, "baton.adapters.models.price_source", None)
    assert models("openai=https://api.openai.com/v1").price("gpt-5-mini") is None


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-5-mini",
        "anthropic/claude-sonnet-4-5",
        "google-gla/gemini-2.5-flash",
        "groq/llama-3.3-70b-versatile",
        "mistral/mistral-large-latest",
    ],
)
def test_a_provider_needs_no_profile_for_the_price_of_what_a_program_asks_itself(model: str) -> None:
    assert models("openai=https://api.openai.com/v1").price(model) is not None
