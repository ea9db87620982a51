"""The golden list of what tests hear: whole sentences of explanations and pages, by test, in tests/sentences.yaml.

A test takes the fixture `says` and gives it what was said: `says(why(saga, "a"))`. After a change of wording,
`pytest --renew-sentences tests/core` writes anew what the tests that run have heard, so that the diff shows each sentence.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "sentences.yaml"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@cache
def golden() -> Mapping[str, list[Any]]:
    """What each test heard, in order; by file and name of the test."""
    found: Mapping[str, list[Any]] = yaml.load(GOLDEN.read_text(encoding="utf-8"), _LOADER) or {}
    return found


@dataclass
class Says:
    """What one test hears. `known` None: it is written anew."""

    known: list[Any] | None
    heard: list[Any] = field(default_factory=list)

    def __call__(self, said: Any) -> None:
        """A sentence, or a value of JSON that has some; a tuple is a list."""
        plain = msgspec.to_builtins(said)
        plain = msgspec.json.decode(msgspec.json.encode(plain))
        self.heard.append(plain)
        if self.known is not None:
            expected = self.known[len(self.heard) - 1 : len(self.heard)]
            assert [plain] == expected, "run `pytest --renew-sentences` with this test if the change is meant"

    def is_over(self) -> None:
        assert self.known in (None, self.heard), "the list has more than this test heard: renew it"


def written(found: Mapping[str, list[Any]]) -> str:
    """The list as its file has it."""
    return "\n".join(
        yaml.dump({test: found[test]}, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=10_000)
        for test in sorted(found)
    )


def stale() -> list[str]:
    """Tests of the list that are gone, or hold nothing against it any more."""
    return [test for test in golden() if not _is_there(*test.partition("[")[0].split("::"))]


def _is_there(path: str, name: str) -> bool:
    return (TESTS / path).is_file() and name in _functions(path)


@cache
def _functions(path: str) -> set[str]:
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {
        node.name
        for node in functions
        if "says" in {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
    }


def renew(heard: Mapping[str, list[Any]]) -> None:
    """Write what tests have heard, beside what others have; without those that are gone."""
    found = {**golden(), **heard}
    for test in stale():
        found.pop(test, None)
    GOLDEN.write_text(written(found), encoding="utf-8")
