"""The import law as data, and a checker that reads source files without importing them.

Style is ruff's; the assertions are in the test files beside this one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = "baton"

# Each room and the rooms it may import, besides itself. A room is a module or a package right under
# `baton`; "" is the package's own front door and "functions" are the handlers.
_INNER = frozenset({"errors", "core"})
_PORTS = _INNER | {"ports"}
_EDGE = _PORTS | {"settings", "wiring"}
ALLOWED: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "core": frozenset({"errors"}),
    "ports": _INNER,
    "settings": _INNER,
    # Sentences for the command line and the console; the core itself says nothing to people.
    "words": _INNER,
    "runtime": _PORTS,
    "adapters": _PORTS,
    "tools": _PORTS,
    # Contexts of other systems over workflow functions, for applications that name them.
    "compat": _PORTS | {"tools"},
    # Pages of the API's own answers: it gets the routes handed in, and knows nothing of what serves them.
    "console": _PORTS | {"words"},
    "web": _PORTS | {"runtime", "settings", "console"},
    "wiring": _PORTS | {"runtime", "adapters", "tools", "web", "settings"},
    "loading": frozenset(),
    "local": _EDGE,
    "client": frozenset({"errors", "wiring", "words"}),
    "demo": frozenset({"core", "client", "local", "words"}),
    "cli": _EDGE
    | {"runtime", "tools", "web", "local", "project", "scaffold", "builder", "client", "demo", "words"},
    # It writes the prices of models into the layer in the form in which the adapter reads them.
    "shipping": frozenset({"errors", "adapters", ""}),
    # A deployment in memory for the tests of an application: with the wiring, the only room that joins both sides.
    "testing": _PORTS | {"runtime", "adapters", "tools", "builder", "project"},
    "project": _INNER,
    "scaffold": _INNER | {"project"},
    "builder": _INNER | {"tools"},
    "": _PORTS | {"tools", "builder", "client"},
    "functions": _EDGE | {"loading", "runtime", "web"},
}

# The rooms of the core, each of which may import those before it and none after. "" are the files right in `core`.
CORE = (
    "",
    "expressions",
    "outside",
    "effects",
    "conditions",
    "pipelines",
    "models",
    "failures",
    "graph",
    "schedules",
    "log",
    "nodes",
    "decide",
    "recovery",
    "read",
    "documents",
)

# Folders whose files only their registry imports, besides each other: what is asked of a kind is asked there.
BEHIND_A_REGISTRY = ("baton.core.documents.nodes", "baton.core.nodes")
# Of such a folder, what is for all.
FOR_ALL = frozenset({"base", "own", "registry"})

# Libraries that only some rooms may import.
ONLY_IN: dict[str, frozenset[str]] = {
    "boto3": frozenset({"adapters", "wiring", "local"}),
    "botocore": frozenset({"adapters", "wiring", "local"}),
    "openai": frozenset({"adapters", "wiring", "local"}),
    "genai_prices": frozenset({"adapters"}),
    "httpx": frozenset({"adapters", "wiring", "local", "client"}),
    "httpx2": frozenset({"adapters", "wiring", "local", "client"}),
}

# The wall clock, randomness and the environment: by the dotted name, everything below it included.
AMBIENT = (
    "time",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "random",
    "secrets",
    "uuid.uuid1",
    "uuid.uuid4",
    "os.environ",
    "os.environb",
    "os.getenv",
    "os.urandom",
)
# Besides clock and settings: a helper process puts a call's variables where its tools look for them, and so do tests.
AMBIENT_FILES = frozenset(
    {"adapters/clock.py", "settings.py", "tools/processes/forker.py", "testing/pytest_plugin.py"}
)
AMBIENT_ROOMS = frozenset({"local", "client", "demo", "cli"})

# What a pure room has no use for, besides the above.
IMPURE = frozenset(
    [
        "asyncio",
        "concurrent",
        "http",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "socketserver",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "urllib",
        "aws_lambda_powertools",
    ]
)
PURE_ROOMS = frozenset({"errors", "core"})


@dataclass(frozen=True)
class Breach:
    """One line that breaks the law."""

    file: Path
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def room_of(relative: Path) -> str:
    """The room of a file, given its path below the package: `core/log/folding/fold.py` -> `core`."""
    first = relative.parts[0]
    if relative.parts == ("__init__.py",):
        return ""
    return first.removesuffix(".py")


def check_engine(package: Path) -> list[Breach]:
    """All breaches in the engine's package, which need not have all its rooms."""
    found: list[Breach] = []
    for file in sorted(package.rglob("*.py")):
        relative = file.relative_to(package)
        found += check_file(file, room_of(relative), str(relative.as_posix()))
    return found


def check_functions(folder: Path) -> list[Breach]:
    """All breaches in the handlers."""
    return [breach for file in sorted(folder.rglob("*.py")) for breach in check_file(file, "functions", "")]


@cache
def nodes_of(source: str) -> Sequence[ast.AST]:
    """Everything in a source but the third of it that says of a name if it is read. Several laws look at the same files."""
    return [node for node in ast.walk(ast.parse(source)) if not isinstance(node, ast.expr_context)]


def check_file(file: Path, room: str, relative: str) -> list[Breach]:
    """All breaches in one file of a room."""
    if room not in ALLOWED:
        return [Breach(file, 1, f"the room {room!r} is not in the law: say what it may import")]
    nodes = nodes_of(file.read_text(encoding="utf-8"))
    found = []
    for line, name in _imports(nodes, file):
        found += [Breach(file, line, rule) for rule in _import_rules(room, name)]
        found += [Breach(file, line, rule) for rule in _registry_rules(relative, name)]
        if room == "core":
            found += [Breach(file, line, rule) for rule in _core_rules(relative, name)]
        if room == "adapters":
            found += [Breach(file, line, rule) for rule in _adapter_rules(relative, name)]
    if room not in AMBIENT_ROOMS and relative not in AMBIENT_FILES:
        for line, name in sorted(set(_names(nodes))):
            banned = next((ban for ban in AMBIENT if name == ban or name.startswith(ban + ".")), None)
            if banned:
                found.append(Breach(file, line, f"{room or PACKAGE} uses {banned}; take it from a port"))
    return found


def _import_rules(room: str, name: str) -> Iterator[str]:
    top, _, below = name.partition(".")
    if top == PACKAGE:
        target = below.partition(".")[0]
        if target != room and target not in ALLOWED[room]:
            yield f"{room or PACKAGE} imports {PACKAGE}.{target}".rstrip(".")
    elif top in ONLY_IN and room not in ONLY_IN[top]:
        yield f"{room or PACKAGE} imports {top}, which belongs to {', '.join(sorted(ONLY_IN[top]))}"
    elif room in PURE_ROOMS and top in IMPURE:
        yield f"{room} is pure and imports {top}"


def _core_rules(relative: str, name: str) -> Iterator[str]:
    """Yield a rule for an import from a later room of the core. A room is a folder, or a file named like one."""
    first = relative.split("/")[1].removesuffix(".py")
    own = first if relative.count("/") > 1 or first in CORE else ""
    if own not in CORE:
        yield f"the room core/{own} is not in the law: say which rooms of the core it may import"
        return
    parts = name.split(".")
    target = parts[2] if parts[:2] == [PACKAGE, "core"] and len(parts) > 2 and parts[2] in CORE else ""
    if own == "decide" and parts[2:] == ["nodes", "registry"]:
        yield "core/decide imports the registry of kinds; it gets them with the program"
    if CORE.index(target) > CORE.index(own):
        yield f"core/{own} imports core/{target}, which is above it"


def _adapter_rules(relative: str, name: str) -> Iterator[str]:
    """A folder of adapters is one technology, and knows no other."""
    own, parts = relative.split("/"), name.split(".")
    if len(own) < 3 or parts[:2] != [PACKAGE, "adapters"] or len(parts) < 4:
        return
    if parts[2] != own[1]:
        yield f"adapters/{own[1]} imports adapters/{parts[2]}, which is another technology"


def _registry_rules(relative: str, name: str) -> Iterator[str]:
    """What a file imports past a registry."""
    own = ".".join((PACKAGE, *relative.removesuffix(".py").split("/")))
    for folder in BEHIND_A_REGISTRY:
        inside = name.startswith(f"{folder}.") and not own.startswith(f"{folder}.")
        if inside and name.removeprefix(f"{folder}.").partition(".")[0] not in FOR_ALL:
            yield f"{own} imports {name} past {folder}.registry"


def _imports(nodes: Sequence[ast.AST], file: Path) -> Iterator[tuple[int, str]]:
    """Every imported name, with its line. `from baton import core` counts as `baton.core`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, f"{PACKAGE}.<relative import in {file.name}>"
            elif node.module == PACKAGE:
                yield from ((node.lineno, _below_front_door(alias.name)) for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def _below_front_door(name: str) -> str:
    """`from baton import core` names a room; `from baton import tool` uses the front door."""
    return f"{PACKAGE}.{name}" if name in ALLOWED else PACKAGE


def _names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Every dotted name that is imported or used, aliases resolved, with its line."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield node.lineno, f"{node.module}.{alias.name}"
    for node in nodes:
        if isinstance(node, ast.Attribute):
            dotted = _dotted(node, known)
            if dotted:
                yield node.lineno, dotted


def _dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value, known)
        return f"{before}.{node.attr}" if before else None
    return None
