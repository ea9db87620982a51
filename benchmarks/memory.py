"""Facts of a user: how many of those that answer a question are found, and what a search costs.

The set is a person's 48 facts, each with a question that does not repeat it, among 952 facts of other subjects. No
model is asked: vectors are hashed words and parts of words, which know no meaning. So recall says how much a search
loses that compares bytes, and not how good a model is.
"""

from __future__ import annotations

import hashlib
import math
import re
import time
from collections.abc import Sequence

from baton.adapters.facts import StoredFacts
from baton.adapters.memory.store import MemoryCheckpoints
from baton.ports.outside import Fact
from benchmarks.figures import Bench, Figure, Sample

DIMENSIONS, MOST = 256, 5
SIZES = (100, 1_000, 10_000)
_NOW = 1_790_000_000_000
_THINGS = {
    "breakfast": "eats porridge with blueberries", "coffee": "drinks espresso without sugar", "tea": "prefers green tea from Uji",
    "seat": "wants a window seat in the front", "hotel": "sleeps in quiet hotels near the station", "allergy": "cannot eat peanuts or cashews",
    "wine": "likes dry white wine from the Mosel", "music": "listens to baroque organ concerts", "sport": "rows on the lake every Sunday",
    "language": "speaks Portuguese with the family", "school": "has a daughter in the third grade", "pet": "owns an old dog called Biscuit",
    "car": "drives an electric van", "bicycle": "repairs bicycles in the cellar", "garden": "grows tomatoes on the balcony",
    "book": "reads crime novels set in Iceland", "film": "watches silent films with live piano", "painting": "collects small watercolours",
    "phone": "answers calls only after ten", "mail": "wants letters on paper", "payment": "pays by bank transfer", "budget": "spends at most eighty euros on dinner",
    "doctor": "sees a cardiologist each spring", "medicine": "takes a blood thinner at night", "glasses": "wears glasses for reading",
    "shoe": "has shoe size forty-three", "coat": "needs a waterproof coat", "colour": "paints rooms in pale green", "kitchen": "cooks on gas",
    "bread": "bakes rye bread on Fridays", "cheese": "dislikes blue cheese", "fish": "loves smoked mackerel", "soup": "orders leek soup in winter",
    "mountain": "climbs in the Dolomites in July", "sea": "swims in the sea until October", "train": "travels by night train", "plane": "is afraid of flying",
    "work": "works as a hydraulic engineer", "office": "shares an office with two colleagues", "meeting": "never meets on Monday mornings",
    "birthday": "celebrates the birthday on the ninth of May", "wedding": "married in Lisbon", "brother": "has a brother in Toronto",
    "house": "lives in a narrow house by the canal", "heating": "heats with wood", "insurance": "is insured with a cooperative",
    "tax": "files the taxes in February", "holiday": "spends the holidays in Brittany",
}  # fmt: skip


def embedded(text: str) -> list[float]:
    """Words and their parts of four letters, each counted in one of the numbers."""
    vector = [0.0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()):
        for part in {word, *(f"<{word}>"[at : at + 4] for at in range(max(1, len(word) - 1)))}:
            digest = hashlib.blake2b(part.encode(), digest_size=4).digest()
            vector[int.from_bytes(digest) % DIMENSIONS] += 1.0 if digest[0] & 1 else -1.0
    return vector if any(vector) else [1.0] * DIMENSIONS


def of_a_person(size: int) -> dict[str, str]:
    """Texts by the thing that they are about: the person's first, then of other subjects."""
    texts = {thing: f"About {thing}: the guest {what}." for thing, what in _THINGS.items()}
    others = (
        f"Note {n}: parcel {n * 7919 % 9973} left depot {n * 31 % 97} on route {n * 17 % 61}"
        for n in range(size)
    )
    return texts | {str(n): text for n, text in zip(range(size - len(texts)), others, strict=False)}


def _stored(texts: dict[str, str]) -> StoredFacts:
    facts = StoredFacts(MemoryCheckpoints())
    for thing, text in texts.items():
        key = hashlib.sha256(thing.encode()).hexdigest()[:32]
        facts.put("acme", "ada", Fact(id=key, text=text, saga="s", at=_NOW, model="m"), embedded(text))
    return facts


def _exactly(query: Sequence[float], vectors: dict[str, list[float]]) -> set[str]:
    """The nearest texts, compared as numbers of 64 bits."""

    def cosine(text: str) -> float:
        one = vectors[text]
        return sum(map(float.__mul__, query, one)) / math.hypot(*one)

    return set(sorted(vectors, key=cosine, reverse=True)[:MOST])


def _search(facts: StoredFacts, query: Sequence[float]) -> set[str]:
    found = facts.nearest("acme", "ada", "m", query, MOST, _NOW).found
    return {fact.text for fact, _ in found}


def measure(sizes: Sequence[int] = SIZES, count: int = 1_000) -> Sample:
    texts = of_a_person(count)
    facts, vectors = _stored(texts), {text: embedded(text) for text in texts.values()}
    asked = {thing: embedded(f"What is known of the {thing} of this guest?") for thing in _THINGS}
    found = {thing: _search(facts, query) for thing, query in asked.items()}
    hits = sum(texts[thing] in there for thing, there in found.items())
    best = sum(texts[thing] in _exactly(query, vectors) for thing, query in asked.items())
    sample = {"recall": hits / len(asked), "lost": (best - hits) / len(asked)}
    for size in sizes:
        facts = _stored(of_a_person(size))
        before = time.process_time()
        _search(facts, asked["tea"])
        sample[f"cpu{size}"] = (time.process_time() - before) * 1_000
    return sample


BENCH = Bench(
    "memory",
    "facts of a user, found by meaning",
    {
        "recall": Figure(
            "recall@5 of 48 questions to 1,000 facts, with vectors of bytes", "", 0.9, at_most=False, digits=2
        ),
        "lost": Figure("of it lost by bytes in place of numbers", "", 0.02, digits=2),
        **{f"cpu{size}": Figure(f"CPU of a search of {size:,} facts", "ms", cpu=True) for size in SIZES},
    },
    measure,
    runs=3,
)
