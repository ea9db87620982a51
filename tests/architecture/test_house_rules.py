"""Rules of the house that no linter holds: the size of files, their opening words, what tests may not do.

Import rules are in law.py; style is ruff's.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = (".ci", "layers", "functions", "examples", "tests", "benchmarks")
MOST_LINES = 700
MOST_FILES = 35  # right in a folder of the product: a list that is read, not searched
MOST_PRODUCT_FILES = 505
LEAST_MEDIAN = 180  # lines of a file of the product, those of `__init__.py` aside
LEAST_LINES = 60
# Folders of registries, whose entries are short: a kind of node, a strategy, a channel.
ENTRIES = ("core/nodes", "core/documents/nodes", "core/failures/strategies", "adapters/channels")
# Shorter files with a reason.
SHORT = {
    "adapters/aws_signer.py": "the command line loads botocore with it, and only for AuthMode iam",
    "adapters/discreet.py": "every process loads it first, before anything can be logged",
    "adapters/ses_mailer.py": "a port's adapter with a client of its own",
    "core/read/day_costs.py": "the command line loads it without a library",
    "core/on_demand.py": "all rooms load modules of capabilities with it",
    "core/version.py": "the release writes it",
    "testing/operations.py": "the files of the room share these names, and none of them imports all others",
    "loading.py": "loaded before everything else",
    "local/account.py": "the only file that looks at a real account",
    "local/guard.py": "a program",
    "local/guarded_ministack.py": "a program",
    "tools/functions/models.py": "it needs the models of documents, which a worker loads with the first request to a model",
    "tools/functions/newer.py": "it needs the compiler, which a worker loads only after a deploy of other code",
}
# Suites that prove behaviour by values and the product's own memory adapters. The runtime and the simulation
# run on an event loop of virtual time (tests/kit), where asyncio.sleep takes none.
FORBIDDEN_CALLS = {
    "core": {"time.sleep", "asyncio.sleep"},
    "contract": {"time.sleep", "asyncio.sleep"},
    "runtime": {"time.sleep"},
    "simulation": {"time.sleep"},
}
OPENING = re.compile(r'"""[^"\s\\][^"\\]*"""\n')
# A file that is named in prose, and not in a text of the program.
NAMED = re.compile(r'(?<![\w./"-])((?:[\w-]+/)*\w+\.py)\b(?!:\d)')
FORBIDDEN_IMPORTS = {"unittest.mock", "mock", "pytest_mock"}


def sources(root: Path) -> Iterator[Path]:
    """Every Python file of the project below `root`."""
    for room in ROOMS:
        yield from sorted((root / room).rglob("*.py"))


def too_long(root: Path) -> list[str]:
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in sources(root)}
    return [f"{file.relative_to(root)}: {n} lines" for file, n in lengths.items() if n > MOST_LINES]


def too_full(root: Path) -> list[str]:
    folders = Counter(file.parent for file in (root / "layers").rglob("*.py"))
    return [
        f"{folder.relative_to(root)}: {n} files" for folder, n in sorted(folders.items()) if n > MOST_FILES
    ]


def product(root: Path) -> dict[str, int]:
    """Lines of each file of the product. Packages' own files have a list of names, or nothing."""
    return {
        str(file.relative_to(root / "layers/engine/baton")): len(file.read_bytes().splitlines())
        for file in sorted((root / "layers/engine/baton").rglob("*.py"))
        if file.name not in ("__init__.py", "__main__.py")
    }


def too_short(root: Path) -> list[str]:
    """Files under 60 lines that are no registry's entry and have no reason."""
    return [
        f"{name}: {lines} lines"
        for name, lines in product(root).items()
        if lines < LEAST_LINES and str(Path(name).parent) not in ENTRIES and name not in SHORT
    ]


def without_opening(root: Path) -> list[str]:
    """Files with code but no docstring at the top. An empty `__init__.py` has nothing to say."""
    return [
        str(file.relative_to(root)) for file in sources(root) if _is_mute(file.read_text(encoding="utf-8"))
    ]


def _is_mute(source: str) -> bool:
    if OPENING.match(source):  # to parse all files takes seconds
        return False
    tree = ast.parse(source)
    return bool(tree.body) and not ast.get_docstring(tree)


def names_of_nothing(root: Path) -> list[str]:
    """Files that the product names and that are not there: beside the one that names them, right in `baton/`, or under the folders that are named."""
    own = root / "layers/engine/baton"
    known = {file.relative_to(root).as_posix() for file in (*sources(root), *root.glob("*.py"))}
    ends = {name.split("/", n)[-1] for name in known for n in range(name.count("/"))} | known
    return [
        f"{file.relative_to(root)}: {name}"
        for file in sorted(own.rglob("*.py"))
        for name in NAMED.findall(file.read_text(encoding="utf-8"))
        if not ("/" in name and name in ends)
        and not any((folder / name).exists() for folder in (file.parent, own, root))
    ]


def mocks_and_sleeps(root: Path) -> list[str]:
    return [
        f"{file.relative_to(root)}:{getattr(node, 'lineno', 0)}: {name}"
        for suite, calls in FORBIDDEN_CALLS.items()
        for file in sorted((root / "tests" / suite).rglob("*.py"))
        for node in _nodes(file.read_text(encoding="utf-8"), FORBIDDEN_IMPORTS | calls)
        if (name := _forbidden(node, calls))
    ]


def _nodes(source: str, names: set[str]) -> Iterator[ast.AST]:
    """The syntax tree of a file; none of one where no part of these names is spelled out."""
    if any(part in source for name in names for part in name.split(".")[-1:]):
        yield from ast.walk(ast.parse(source))


def _forbidden(node: ast.AST, calls: set[str]) -> str | None:
    if isinstance(node, ast.Import):
        return next((alias.name for alias in node.names if alias.name in FORBIDDEN_IMPORTS), None)
    if isinstance(node, ast.ImportFrom):
        names = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
        return next(iter(sorted(names & (FORBIDDEN_IMPORTS | calls))), None)
    # `await asyncio.sleep(0)` gives way to other tasks and takes no time.
    if isinstance(node, ast.Call) and ast.unparse(node.func) in calls:
        no_time = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
        return None if no_time else ast.unparse(node.func)
    return None


def unmarked_end_to_end(root: Path) -> list[str]:
    """End-to-end tests are chosen by their marker, in their own file; one without it, or with an alias, would run in no tier."""
    files = sorted((root / "tests/e2e").rglob("test_*.py"))
    unmarked = [file.name for file in files if "mark.e2e" not in file.read_text(encoding="utf-8")]
    others = (file for file in sorted((root / "tests").rglob("*.py")) if not file.name.startswith("test_"))
    return unmarked + [file.name for file in others if "mark.e2e" in file.read_text(encoding="utf-8")]


def guesses_of_events(root: Path) -> list[str]:
    """Calls of `getattr` on an event: its type, a group of types (core/log/events.py) or `asdict` says which fields it has."""
    guess = re.compile(r"getattr\((?:\w+\.)*(?:event|opened|done)\b")
    return [
        f"{file.relative_to(root)}:{number}"
        for room in ("core", "runtime")
        for file in sorted((root / "layers/engine/baton" / room).rglob("*.py"))
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if guess.search(line)
    ]


def test_no_file_is_longer_than_one_reason_to_change() -> None:
    assert too_long(ROOT) == []


def test_no_folder_is_longer_than_a_list_of_rooms() -> None:
    assert too_full(ROOT) == []


def test_every_module_opens_with_what_belongs_in_it() -> None:
    assert without_opening(ROOT) == []


def test_every_file_that_is_named_is_there() -> None:
    assert names_of_nothing(ROOT) == []


def test_suites_that_prove_behaviour_neither_mock_nor_sleep() -> None:
    assert mocks_and_sleeps(ROOT) == []


def test_every_end_to_end_test_says_that_it_is_one() -> None:
    assert unmarked_end_to_end(ROOT) == []


def test_no_event_is_asked_for_a_field_that_it_may_not_have() -> None:
    assert guesses_of_events(ROOT) == []


def test_a_guess_is_found(tmp_path: Path) -> None:
    room = tmp_path / "layers/engine/baton/core"
    room.mkdir(parents=True)
    (room / "guess.py").write_text('x = 1\ny = getattr(said.event, "emits", ())')
    assert guesses_of_events(tmp_path) == ["layers/engine/baton/core/guess.py:2"]


def test_a_long_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/app.py").write_text('"""Says what it is."""\n' * (MOST_LINES + 1))
    assert too_long(tmp_path) == [f"functions/app.py: {MOST_LINES + 1} lines"]


def test_the_product_is_files_of_one_subject_each() -> None:
    assert len(list((ROOT / "layers").rglob("*.py"))) <= MOST_PRODUCT_FILES
    assert median(product(ROOT).values()) >= LEAST_MEDIAN
    assert too_short(ROOT) == [], "merge it with the file of its subject, or give a reason in SHORT"
    assert {name for name in SHORT if product(ROOT).get(name, LEAST_LINES) >= LEAST_LINES} == set()


def test_a_short_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "layers/engine/baton/core/nodes").mkdir(parents=True)
    for name in ("core/nodes/wait.py", "core/version.py", "core/other.py"):
        (tmp_path / "layers/engine/baton" / name).write_text("\n" * (LEAST_LINES - 1))
    assert too_short(tmp_path) == [f"core/other.py: {LEAST_LINES - 1} lines"]


def test_a_full_folder_is_found(tmp_path: Path) -> None:
    (tmp_path / "layers/engine").mkdir(parents=True)
    for number in range(MOST_FILES + 1):
        (tmp_path / f"layers/engine/f{number}.py").touch()
    assert too_full(tmp_path) == [f"layers/engine: {MOST_FILES + 1} files"]


def test_a_file_without_opening_words_is_found(tmp_path: Path) -> None:
    (tmp_path / "layers/engine").mkdir(parents=True)
    (tmp_path / "layers/engine/__init__.py").write_text("")
    (tmp_path / "layers/engine/mute.py").write_text("x = 1\n")
    assert without_opening(tmp_path) == ["layers/engine/mute.py"]


def test_a_name_of_no_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "layers/engine/baton/core").mkdir(parents=True)
    (tmp_path / "layers/engine/baton/core/one.py").write_text('"""As in two.py, one.py and core/one.py."""\n')
    assert names_of_nothing(tmp_path) == ["layers/engine/baton/core/one.py: two.py"]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from unittest import mock", "unittest.mock"),
        ("from unittest.mock import patch", "unittest.mock"),
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("from asyncio import sleep", "asyncio.sleep"),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0.1)", "asyncio.sleep"),
    ],
)
def test_a_mock_or_a_sleep_is_found(tmp_path: Path, source: str, found: str) -> None:
    (tmp_path / "tests/contract").mkdir(parents=True)
    (tmp_path / "tests/contract/test_it.py").write_text(source)
    assert len(mocks_and_sleeps(tmp_path)) == 1
    assert mocks_and_sleeps(tmp_path)[0].endswith(found)


def test_virtual_time_may_be_slept_through_but_not_the_machines(tmp_path: Path) -> None:
    (tmp_path / "tests/simulation").mkdir(parents=True)
    lines = ["import asyncio, time", "async def f():", "    await asyncio.sleep(60)", "    time.sleep(1)"]
    (tmp_path / "tests/simulation/test_it.py").write_text("\n".join(lines))
    assert mocks_and_sleeps(tmp_path) == ["tests/simulation/test_it.py:4: time.sleep"]


def test_an_unmarked_end_to_end_test_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests/e2e").mkdir(parents=True)
    (tmp_path / "tests/e2e/test_all.py").write_text("def test_all(): ...")
    (tmp_path / "tests/e2e/kit.py").write_text("SLOW = pytest.mark.e2e")
    assert unmarked_end_to_end(tmp_path) == ["test_all.py", "kit.py"]


def test_giving_way_to_other_tasks_is_no_sleep(tmp_path: Path) -> None:
    (tmp_path / "tests/runtime").mkdir(parents=True)
    (tmp_path / "tests/runtime/test_it.py").write_text(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)"
    )
    assert mocks_and_sleeps(tmp_path) == []
