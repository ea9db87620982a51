"""The golden list of what tests hear: whole sentences of explanations and pages, by test, in a file of tests/sentences/ for each room.

A test takes the fixture `says` and gives it what was said: `says(why(saga, "a"))`, or `with says.raised(NotFound):`. In a
page, or in what changes with each run, `says.within(page)` looks for the list's sentence: write that of a new test into it.
After a change of wording, `pytest -n 0 --renew-sentences tests/core` writes anew what the tests that run have heard, and of
a page what is most like the sentence before, so that the diff shows each sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
import yaml

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "sentences"
_HEARING = re.compile(r"^(?:async )?def (\w+)\([^)]*\bsays: Says\b", re.MULTILINE)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

Raised = TypeVar("Raised", bound=BaseException)


@cache
def golden(room: str) -> Mapping[str, list[Any]]:
    """Sentences that each test of a room heard, in order; by file and name of the test."""
    file = GOLDEN / f"{room}.yaml"
    found: Mapping[str, list[Any]] = yaml.load(file.read_text("utf-8"), _LOADER) if file.exists() else {}
    return found


def rooms() -> list[str]:
    """Return the rooms of which sentences are listed."""
    return sorted(file.stem for file in GOLDEN.glob("*.yaml"))


# Ports, names that chance gives, addresses, and lines of files.
_OF_A_RUN = re.compile(r"(?<=127\.0\.0\.1:)\d{4,5}|\b[0-9a-f-]{36}\b|(?<=\b0x)[0-9a-f]{6,}|(?<=\.py:)\d+")
_PROGRAM = re.compile(r"[\w./-]*/bin/(?=baton\b)")  # shown with its folder where no shell finds it
_LIKE = 0.6
_RENEW = "run `pytest -n 0 --renew-sentences` with this test if the change is meant"
_NEW = "write the sentence that this test looks for into the file of its room in tests/sentences/"


def _most_like(sentence: str, text: str) -> tuple[float, str]:
    """The words of a text in a row that are most like a sentence, after how much they are."""
    words = [(found.start(), found.end()) for found in re.finditer(r"\S+", text)]
    size = len(sentence.split())
    pieces = [
        text[words[first][0] : words[last][1]]
        for first in range(len(words))
        for last in range(first + max(0, size - 3), min(first + size + 3, len(words)))
    ]
    return max(((SequenceMatcher(None, sentence, one).ratio(), one) for one in pieces), default=(0.0, ""))


@dataclass
class Says:
    """Sentences that one test hears. `renews`: they are written anew. `folder`: its own, which has another name with each run."""

    known: list[Any]
    renews: bool = False
    folder: str = ""
    heard: list[Any] = field(default_factory=list)

    def __call__(self, said: Any) -> None:
        """A sentence, or a value of JSON that has some; a tuple is a list."""
        text = msgspec.json.encode(msgspec.to_builtins(said)).decode()
        for place, name in ((self.folder or "TMP", "TMP"), (str(TESTS.parent), "ROOT")):
            text = text.replace(place, name)
        plain = msgspec.json.decode(_OF_A_RUN.sub("…", _PROGRAM.sub("", text)))
        if not self.renews:
            assert [plain] == self._expected(), _RENEW
        self.heard.append(plain)

    def within(self, said: str | Iterable[str], sentences: int = 1) -> None:
        """Assert that this number of sentences of the list stand in the text, or each in one of these lines."""
        lines = [said] if isinstance(said, str) else list(said)
        for _ in range(sentences):
            (sentence,) = [self._anew(lines)] if self.renews else self._expected() or [""]
            assert sentence, _NEW
            assert any(sentence in line for line in lines), f"{_RENEW}: {said}"
            self.heard.append(sentence)

    @contextmanager
    def raised(self, kind: type[Raised]) -> Iterator[pytest.ExceptionInfo[Raised]]:
        """Assert that the body raises this exception, with the words of the list."""
        with pytest.raises(kind) as caught:
            yield caught
        self(str(caught.value))

    def is_over(self) -> None:
        assert self.renews or self.known == self.heard, "the list has more than this test heard: renew it"

    def _expected(self) -> list[Any]:
        return self.known[len(self.heard) : len(self.heard) + 1]

    def _anew(self, lines: list[str]) -> str:
        """The sentence as before, or what is most like it, or another one of the list that stands here."""
        before = [*self._expected(), *(one for one in self.known if one not in self.heard)]
        found = [one for one in before if isinstance(one, str) and any(one in line for line in lines)]
        assert before, _NEW
        if before[:1] == found[:1]:
            return found[0]
        how_much, sentence = max(_most_like(str(before[0]), line) for line in lines)
        assert how_much > _LIKE or found, f"{_NEW}: nothing is like {before[0]!r}"
        return sentence if how_much > _LIKE else found[0]


def written(found: Mapping[str, list[Any]]) -> str:
    """The list as its file has it."""
    return "\n".join(
        yaml.dump({test: found[test]}, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=10_000)
        for test in sorted(found)
    )


def stale() -> list[str]:
    """Tests of the list that are gone, or hold nothing against it any more."""
    listed = (test for room in rooms() for test in golden(room))
    return [test for test in listed if not _is_there(*test.partition("[")[0].split("::"))]


def _is_there(path: str, name: str) -> bool:
    return (TESTS / path).is_file() and name in _functions(path)


@cache
def _functions(path: str) -> set[str]:
    return set(_HEARING.findall((TESTS / path).read_text(encoding="utf-8")))


def known(test: str) -> list[Any]:
    """Return the sentences that a test heard; a test with parameters has one entry if all of them hear the same."""
    found = golden(_room(test))
    return found.get(test) or found.get(_name(test), [])


def renew(heard: Mapping[str, list[Any]]) -> None:
    """Write what tests have heard, with all of their parameters, beside what others have; without those that are gone."""
    by_name: dict[str, dict[str, list[Any]]] = {}
    for test, said in heard.items():
        by_name.setdefault(_name(test), {})[test] = said
    gone = set(stale())
    for room in {*rooms(), *map(_room, heard)}:
        found = {test: said for test, said in golden(room).items() if _name(test) not in by_name}
        for name, tests in by_name.items():
            if _room(name) == room:
                first, *others = tests.values()
                found |= tests if any(said != first for said in others) else {name: first}
        found = {test: said for test, said in found.items() if test not in gone}
        (GOLDEN / f"{room}.yaml").write_text(written(found), encoding="utf-8")


def _room(test: str) -> str:
    """The folder of tests/ that it is in."""
    return test.partition("/")[0]


def _name(test: str) -> str:
    """Without its parameters."""
    return test.partition("[")[0]
