"""Contract of `Facts`: written once, found by meaning, by one user of one tenant, and gone when they are deleted."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pytest
from botocore.exceptions import ClientError

from baton.adapters import facts as of_rows
from baton.adapters.aws import Aws
from baton.adapters.facts import IndexedFacts, StoredFacts, cosines, packed, square_of
from baton.adapters.memory.store import MemoryCheckpoints
from baton.ports.outside import Fact, Facts, NearestFacts
from tests.contract.conftest import EMBEDDED, LOCAL, MOTO
from tests.contract.stores import Stores
from tests.contract.vector_index import INDEX, VectorIndex, vector_index

NOW = 1_790_000_000_000
EAST, NORTH, NORTH_EAST = (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)


@pytest.fixture(scope="module")
def served() -> Iterator[VectorIndex]:
    with vector_index() as index:
        yield index


@pytest.fixture
def index(served: VectorIndex) -> VectorIndex:
    served.vectors.clear()
    return served


def indexed(index: VectorIndex) -> IndexedFacts:
    return IndexedFacts(MemoryCheckpoints(), _client(index.url), INDEX)


@cache
def _client(url: str) -> Any:
    return Aws(url).s3vectors


@pytest.fixture(params=[*LOCAL, MOTO, EMBEDDED, "s3vectors"])
def facts(request: pytest.FixtureRequest) -> Facts:
    """In each store, and with vectors in an index that speaks as Amazon S3 Vectors does."""
    if request.param == "s3vectors":
        return indexed(request.getfixturevalue("index"))
    found: Stores = (
        LOCAL[request.param]() if request.param in LOCAL else request.getfixturevalue(request.param)
    )
    return found.store.facts


def fact(id: str, text: str = "", **fields: object) -> Fact:
    given: dict[str, object] = {"saga": "s1", "at": NOW, "model": "m", "text": text or f"text {id}"}
    return Fact(id=id * 32, **given | fields)  # type: ignore[arg-type]


def near(
    facts: Facts, vector: Sequence[float] = EAST, tenant: str = "acme", user: str = "ada", **fields: object
) -> NearestFacts:
    given: dict[str, object] = {"model": "m", "most": 5, "now": NOW + 1}
    return facts.nearest(tenant, user, vector=vector, **given | fields)  # type: ignore[arg-type]


def texts(found: NearestFacts) -> list[str]:
    return [one.text for one, _ in found.found]


def test_the_nearest_fact_comes_first_whole_and_with_its_cosine(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a"), NORTH)
    facts.put("acme", "ada", fact("b", expires=NOW + 10), EAST)
    facts.put("acme", "ada", fact("c"), NORTH_EAST)
    found = near(facts)
    assert texts(found) == ["text b", "text c", "text a"]
    assert found.found[0][0] == fact("b", expires=NOW + 10)
    assert [round(score, 2) for _, score in found.found] == [1.0, 0.71, 0.0]
    assert texts(near(facts, most=1)) == ["text b"]
    assert (found.other_models or 0, found.more) == (0, False)


def test_a_fact_is_of_one_user_of_one_tenant(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a", "acme's ada"), EAST)
    facts.put("globex", "ada", fact("b", "globex's ada"), EAST)
    facts.put("acme", "bob", fact("c", "acme's bob"), EAST)
    assert texts(near(facts)) == ["acme's ada"]
    assert texts(near(facts, tenant="globex")) == ["globex's ada"]
    assert texts(near(facts, user="bob")) == ["acme's bob"]
    assert facts.delete("globex", "ada", ["a" * 32], NOW) == 0
    assert texts(near(facts)) == ["acme's ada"]


def test_a_repeated_write_changes_nothing(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a"), EAST)
    facts.put("acme", "ada", fact("a", "other words", saga="s2"), EAST)
    assert near(facts).found[0][0] == fact("a")


def test_a_deleted_fact_is_not_found_and_a_write_that_comes_late_does_not_bring_it_back(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a"), EAST)
    assert facts.delete("acme", "ada", ["a" * 32, "b" * 32], NOW) == 1
    facts.put("acme", "ada", fact("a"), EAST)
    facts.put("acme", "ada", fact("b"), EAST)  # under way when it was forgotten
    assert (texts(near(facts)), facts.listed("acme", "ada", "", 10)) == ([], ([], ""))
    assert facts.delete("acme", "ada", ["a" * 32], NOW) == 0


def test_an_expired_fact_is_not_found(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a", expires=NOW + 5_000), EAST)
    assert texts(near(facts, now=NOW + 4_999)) == ["text a"]
    assert texts(near(facts, now=NOW + 5_000)) == []


def test_a_fact_of_another_model_is_not_compared(facts: Facts) -> None:
    facts.put("acme", "ada", fact("a", model="older"), EAST)
    facts.put("acme", "ada", fact("c"), NORTH)
    found = near(facts)
    assert (texts(found), found.other_models) == (["text c"], None if isinstance(facts, IndexedFacts) else 1)


def test_vectors_of_another_length_are_not_compared() -> None:
    facts = StoredFacts(MemoryCheckpoints())
    facts.put("acme", "ada", fact("b"), (1.0, 0.0, 0.0))
    assert (texts(near(facts)), near(facts).other_models) == ([], 1)


def test_facts_in_equal_words_are_found_once(facts: Facts) -> None:
    for at, key in enumerate("abc"):
        facts.put("acme", "ada", fact(key, "a window seat", at=NOW + at), EAST)
    facts.put("acme", "ada", fact("d"), NORTH)
    assert texts(near(facts, most=2)) == ["a window seat", "text d"]


def test_a_list_has_every_fact_once(facts: Facts) -> None:
    for key in "abcde":
        facts.put("acme", "ada", fact(key), EAST)
    facts.delete("acme", "ada", ["d" * 32], NOW)
    found, place = list[str](), ""
    while True:
        page, place = facts.listed("acme", "ada", place, 2)
        found += [one.id[0] for one in page]
        if not place:
            break
    assert found == ["e", "c", "b", "a"]


def test_a_user_with_more_facts_than_one_search_compares_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_rows, "MOST_COMPARED", 2)
    facts = StoredFacts(MemoryCheckpoints())
    for key in "abc":
        facts.put("acme", "ada", fact(key), EAST)
    found = near(facts)
    assert (len(found.found), found.more) == (2, True)


def test_vectors_of_bytes_are_nearly_as_near_as_those_of_numbers() -> None:
    draw = random.Random(7)
    vectors = [[draw.gauss(0, 1) for _ in range(256)] for _ in range(20)]
    query, *others = vectors
    exact = [math.sumprod(query, one) / (math.hypot(*query) * math.hypot(*one)) if hasattr(math, "sumprod")
             else sum(map(float.__mul__, query, one)) / (math.hypot(*query) * math.hypot(*one)) for one in others]  # fmt: skip
    found = cosines(packed(query), [(one, square_of(one)) for one in map(packed, others)])
    assert max(abs(one - other) for one, other in zip(exact, found, strict=True)) < 0.01


# ---- the index ------------------------------------------------------------------------------------------------


def test_a_search_is_one_request_that_names_the_user_and_the_model(index: VectorIndex) -> None:
    facts = indexed(index)
    facts.put("acme", "ada", fact("a"), EAST)
    index.requests.clear()
    near(facts, most=3)
    ((operation, body),) = index.requests
    ((owner, model),) = [body.pop("filter")["$and"]]
    assert (operation, body) == (
        "QueryVectors",
        {"indexArn": INDEX, "topK": 13, "queryVector": {"float32": [1.0, 0.0]}, "returnDistance": True},
    )
    (vector,) = index.vectors.values()
    assert (owner, model) == ({"owner": {"$eq": vector["metadata"]["owner"]}}, {"model": {"$eq": "m"}})
    assert "text" not in str(vector)  # texts are in the table alone


def test_a_fact_that_is_deleted_while_it_is_written_leaves_no_vector(index: VectorIndex) -> None:
    facts = indexed(index)
    facts.delete("acme", "ada", ["a" * 32], NOW)
    facts.put("acme", "ada", fact("a"), EAST)
    assert index.vectors == {}


def test_a_writer_that_dies_between_the_fact_and_its_vector_writes_it_next_time(index: VectorIndex) -> None:
    facts = indexed(index)
    facts.put("acme", "ada", fact("a"), EAST)
    index.vectors.clear()
    facts.put("acme", "ada", fact("a"), EAST)
    assert texts(near(facts)) == ["text a"]


def test_a_deleted_fact_leaves_no_vector(index: VectorIndex) -> None:
    facts = indexed(index)
    facts.put("acme", "ada", fact("a"), EAST)
    assert facts.delete("acme", "ada", ["a" * 32], NOW) == 1
    assert index.vectors == {}


def test_a_search_takes_the_vectors_of_expired_facts_out_of_the_index(index: VectorIndex) -> None:
    facts = indexed(index)
    for number in range(16):
        facts.put("acme", "ada", fact(f"{number:x}", expires=NOW), EAST)
    facts.put("acme", "bob", fact("a", expires=NOW), EAST)
    facts.put("acme", "ada", Fact(id="a1" * 16, text="alive", saga="s1", at=NOW, model="m"), NORTH)
    assert [texts(near(facts)) for _ in range(2)] == [[], ["alive"]]
    assert len(index.vectors) == 2  # a search of one user takes nothing of another's


def test_an_index_that_does_not_exist_or_has_another_length_says_so(index: VectorIndex) -> None:
    with pytest.raises(ClientError, match="could not be found"):
        near(IndexedFacts(MemoryCheckpoints(), _client(index.url), INDEX + "s"))
    facts = indexed(index)
    facts.put("acme", "ada", fact("a"), EAST)
    with pytest.raises(ClientError, match="must have length"):
        facts.put("acme", "ada", fact("b"), (1.0, 0.0, 0.0))
