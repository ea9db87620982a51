"""Docstrings are imperatives or noun phrases of at most 110 columns, and a public name has one home: offenders only become fewer.

language.json counts the present ones: docstrings by room of the product, names by the files that define them.
`python -m tests.architecture.test_language` renews it; with the name of a room it prints the offenders there.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_house_rules import ROOT

GOLDEN = Path(__file__).with_name("language.json")
BEGINNING = re.compile(
    r"(What|Whatever|Whether|How|Who|Whom|Whose|Which|Where|When|Why|One that|One who|So many|So much)\b"
)
MOST_COLUMNS = 110
MOST_HOMES = 2
OF_A_PROTOCOL = {
    # Modules that a registry loads by their kind answer to the same names, as methods of a class would.
    "faults": "core/conditions/",
    "judge": "core/conditions/",
    "names": "core/conditions/",
    # Each file of standard tools declares its tools in the registry that it is given.
    "declare": "tools/standard/",
    # A program begins there.
    "main": "",
}
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def trees(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Files of the product."""
    for file in sorted((root / "layers").rglob("*.py")):
        yield file, ast.parse(file.read_text(encoding="utf-8"))


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Those of modules, classes and functions, and those below a constant or a field."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for number, one in enumerate(node.body):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                is_first = number == 0
                is_of_field = number > 0 and isinstance(node.body[number - 1], ast.Assign | ast.AnnAssign)
                if isinstance(one.value.value, str) and (is_first or is_of_field):
                    yield one.value


def room_of(path: Path) -> str:
    """`core`, `web`, …; files right in `baton/` and those of the application are rooms, too."""
    parts = path.parts
    return parts[3] if parts[1:3] == ("engine", "baton") and len(parts) > 4 else parts[1]


def found(root: Path) -> dict[str, dict[str, list[str]]]:
    """Offenders as `file:line: text`, by law, then by room or name."""
    wh, wide = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    homes = defaultdict[str, dict[Path, str]](dict)
    for file, tree in trees(root):
        path = file.relative_to(root)
        for one in docstrings(tree):
            lines = str(one.value).splitlines()
            if BEGINNING.match(str(one.value).lstrip()):
                wh[room_of(path)].append(f"{path}:{one.lineno}: {lines[0]}")
            source = file.read_text(encoding="utf-8").splitlines()[one.lineno - 1 : one.end_lineno]
            wide[room_of(path)] += [
                f"{path}:{number}: {line.strip()}"
                for number, line in enumerate(source, one.lineno)
                if len(line) > MOST_COLUMNS
            ]
        for defined in tree.body:
            if not isinstance(defined, DEFINITIONS) or defined.name.startswith("_"):
                continue
            if OF_A_PROTOCOL.get(defined.name, " ") not in path.as_posix():
                homes[defined.name][path] = f"{path}:{defined.lineno}"
    many = {name: list(at.values()) for name, at in sorted(homes.items()) if len(at) > MOST_HOMES}
    return {"wh-words": dict(wh), "wide lines": {room: at for room, at in wide.items() if at}, "names": many}


@cache
def now() -> dict[str, dict[str, list[str]]]:
    return found(ROOT)


def counts() -> dict[str, dict[str, int]]:
    return {law: {key: len(at) for key, at in by.items()} for law, by in now().items()}


@pytest.mark.parametrize("law", ["wh-words", "wide lines", "names"])
def test_offenders_only_become_fewer(law: str) -> None:
    golden = Counter(json.loads(GOLDEN.read_text(encoding="utf-8"))[law])
    present = Counter(counts()[law])
    more = {key: now()[law][key] if law == "names" else n for key, n in (present - golden).items()}
    assert more == {}, (
        "more than before; `python -m tests.architecture.test_language ROOM` prints all of a room"
    )
    assert golden - present == Counter(), "fewer: run `python -m tests.architecture.test_language`"


def test_an_offender_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "layers/engine/baton/core"
    folder.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (folder / f"{name}.py").write_text(
            f'"""Fine."""\n\nLIMIT = 1\n"""How much."""\n\n\nclass Held:\n    """Whatsoever: fine. {"x" * 90}"""\n'
        )
    assert found(tmp_path) == {
        "wh-words": {"core": [f"layers/engine/baton/core/{n}.py:4: How much." for n in "abc"]},
        "wide lines": {
            "core": [f'layers/engine/baton/core/{n}.py:8: """Whatsoever: fine. {"x" * 90}"""' for n in "abc"]
        },
        "names": {"Held": [f"layers/engine/baton/core/{n}.py:7" for n in "abc"]},
    }


if __name__ == "__main__":
    if rooms := sys.argv[1:]:
        sys.stdout.writelines(
            f"{line}\n" for by in now().values() for room in rooms for line in by.get(room, ())
        )
    else:
        GOLDEN.write_text(json.dumps(counts(), indent=2) + "\n", encoding="utf-8")
