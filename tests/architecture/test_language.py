"""A function's docstring is an imperative, any other text a noun phrase, and a public name has one home: offenders only become fewer.

language.json counts the present ones: docstrings and descriptions by room of the product, names by the files that define them.
`python -m tests.architecture.test_language` renews it; with the name of a room it prints the offenders there.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from baton.settings import ApiSettings
from baton.web.openapi import describe
from docs.document_tables import schema_text
from tests.architecture.law import nodes_of
from tests.architecture.test_house_rules import ROOT

GOLDEN = Path(__file__).with_name("language.json")
BEGINNING = re.compile(
    r"(What|Whatever|Whether|How|Who|Whom|Whose|Which|Where|When|Why|One that|One who|So many|So much)\b"
)
# A function's docstring begins with a verb, as "Return …" or "Yield …" do; a property may be a noun phrase.
NO_VERB = re.compile(
    r"(?![A-Z][a-z]+\b)|(?!(Pass|Process)\b)[A-Z][a-z]*s\b|"
    r"(A|After|All|An|Another|Any|At|Before|Both|By|Each|Every|Everything|For|From|If|In|It|Key|Message|More|"
    r"Most|Name of|No|None|Nothing|Number|Of|On|Once|One|Only|Otherwise|Our|Partition|Problem|Schema|Sentence|Several|"
    r"Since|So|Some|Something|Text|That|The|Their|There|These|They|This|Those|Time|To|True|Two|Until|Value|"
    r"While|With|Without)\b"
)
# A description states its subject first: "Number of …", not "How many …", "By which …" or "So many …".
OF_A_DESCRIPTION = re.compile(
    rf"({BEGINNING.pattern}|(If|So)\b|(At|By|For|From|In|Of|On|To|With) (how|what|which|whom)\b)"
)
DESCRIBING = {"description", "help", "short_help", "summary"}
IN_A_TEMPLATE = re.compile(r"(?m)^ *Description: *(?:>-?\s+)?(.*)$")
# Their text is in the hash of each graph that calls the tool, or that has the schema.
HASHED = ("core/pipelines/", "tools/standard/", "core/documents/nodes/model.py")
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
Nodes = Sequence[ast.AST]
DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def trees(root: Path) -> Iterator[tuple[Path, Nodes]]:
    """Files of the product."""
    for file in sorted((root / "layers").rglob("*.py")):
        yield file, nodes_of(file.read_text(encoding="utf-8"))


def body_of(nodes: Nodes) -> Sequence[ast.stmt]:
    """Return the nodes of a file that stand in no class or function of it."""
    return nodes[0].body if isinstance(nodes[0], ast.Module) else ()


def functions(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Line and docstring of each function and method that is no property."""
    for node in nodes:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        decorators = [ast.unparse(one) for one in node.decorator_list]
        text = ast.get_docstring(node)
        if text and not any(one.endswith(("property", ".setter")) for one in decorators):
            yield node.lineno, text


def docstrings(nodes: Nodes) -> Iterator[ast.Constant]:
    """Those of modules, classes and functions, and those below a constant or a field."""
    for node in nodes:
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for number, one in enumerate(node.body):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                is_first = number == 0
                is_of_field = number > 0 and isinstance(node.body[number - 1], ast.Assign | ast.AnnAssign)
                if isinstance(one.value.value, str) and (is_first or is_of_field):
                    yield one.value


def written(value: ast.expr) -> str:
    """Text of a literal, `{}` for what an f-string is filled with; empty for any other expression."""
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in value.values)
    return str(value.value) if isinstance(value, ast.Constant) else ""


def descriptions(nodes: Nodes) -> Iterator[tuple[int, str]]:
    """Line and text of `description=`, `help=` and `summary=`, and of such keys of a literal object."""
    for node in nodes:
        if isinstance(node, ast.Call):
            pairs = [(one.arg, one.value) for one in node.keywords]
        elif isinstance(node, ast.Dict):
            pairs = [(written(key), value) for key, value in zip(node.keys, node.values, strict=True) if key]
        else:
            continue
        yield from ((value.lineno, written(value)) for name, value in pairs if name in DESCRIBING)


def templates(root: Path) -> Iterator[tuple[Path, int, str]]:
    """File, line and text of the descriptions in CloudFormation templates."""
    for file in sorted(root.glob("*.yaml")):
        text = file.read_text(encoding="utf-8")
        for match in IN_A_TEMPLATE.finditer(text):
            yield file, text.count("\n", 0, match.start()) + 1, match[1].strip('"')


def room_of(path: Path) -> str:
    """`core`, `web`, …; files right in `baton/` and those of the application are rooms, too."""
    parts = path.parts
    return parts[3] if parts[1:3] == ("engine", "baton") and len(parts) > 4 else parts[1]


def found(root: Path) -> dict[str, dict[str, list[str]]]:
    """Offenders as `file:line: text`, by law, then by room or name."""
    wh, wide = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    homes = defaultdict[str, dict[Path, str]](dict)
    described, verbless = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for file, number, text in templates(root):
        if OF_A_DESCRIPTION.match(text):
            described["templates"].append(f"{file.relative_to(root)}:{number}: {text}")
    for file, nodes in trees(root):
        path = file.relative_to(root)
        source = file.read_text(encoding="utf-8").splitlines()
        for one in docstrings(nodes):
            lines = str(one.value).splitlines()
            if BEGINNING.match(str(one.value).lstrip()):
                wh[room_of(path)].append(f"{path}:{one.lineno}: {lines[0]}")
            wide[room_of(path)] += [
                f"{path}:{number}: {line.strip()}"
                for number, line in enumerate(source[one.lineno - 1 : one.end_lineno], one.lineno)
                if len(line) > MOST_COLUMNS
            ]
        verbless[room_of(path)] += [
            f"{path}:{number}: {text.splitlines()[0]}"
            for number, text in functions(nodes)
            if NO_VERB.match(text)
        ]
        for number, text in descriptions(nodes):
            if OF_A_DESCRIPTION.match(text) and not any(one in path.as_posix() for one in HASHED):
                described[room_of(path)].append(f"{path}:{number}: {text}")
        for defined in body_of(nodes):
            if not isinstance(defined, DEFINITIONS) or defined.name.startswith("_"):
                continue
            if OF_A_PROTOCOL.get(defined.name, " ") not in path.as_posix():
                homes[defined.name][path] = f"{path}:{defined.lineno}"
    many = {name: list(at.values()) for name, at in sorted(homes.items()) if len(at) > MOST_HOMES}
    return {
        "wh-words": dict(wh),
        "wide lines": {room: at for room, at in wide.items() if at},
        "descriptions": dict(described),
        "functions": {room: at for room, at in verbless.items() if at},
        "names": many,
    }


@cache
def now() -> dict[str, dict[str, list[str]]]:
    return found(ROOT)


def counts() -> dict[str, dict[str, int]]:
    return {law: {key: len(at) for key, at in by.items()} for law, by in now().items()}


@pytest.mark.parametrize("law", ["wh-words", "wide lines", "descriptions", "functions", "names"])
def test_offenders_only_become_fewer(law: str) -> None:
    golden = Counter(json.loads(GOLDEN.read_text(encoding="utf-8"))[law])
    present = Counter(counts()[law])
    more = {key: now()[law][key] if law == "names" else n for key, n in (present - golden).items()}
    assert more == {}, (
        "more than before; `python -m tests.architecture.test_language ROOM` prints all of a room"
    )
    assert golden - present == Counter(), "fewer: run `python -m tests.architecture.test_language`"


def published(document: object) -> Iterator[str]:
    """The descriptions in a JSON Schema or an OpenAPI document."""
    if isinstance(document, dict):
        yield from (document[name] for name in DESCRIBING if isinstance(document.get(name), str))
    inner = document.values() if isinstance(document, dict) else document
    for one in inner if isinstance(document, dict | list) else ():  # type: ignore[attr-defined]
        yield from published(one)


@pytest.mark.parametrize(
    "document",
    [describe(ApiSettings(table="t", bucket="b", worker="w")), json.loads(schema_text())],
    ids=["OpenAPI", "workflow.schema.json"],
)
def test_a_published_description_states_its_subject_first(document: object) -> None:
    assert sorted({text for text in published(document) if OF_A_DESCRIPTION.match(text)}) == []


def test_a_description_is_found_wherever_it_stands(tmp_path: Path) -> None:
    folder = tmp_path / "layers/engine/baton/web"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(
        'f(description="By which name", help=f"How {1} is", title="How")\nx = {"summary": "If " "so", "b": "Why"}\n'
    )
    (tmp_path / "template.yaml").write_text(
        'A:\n  Description: "Who calls"\n  Description: >-\n    So many\n'
    )
    assert found(tmp_path)["descriptions"] == {
        "templates": ["template.yaml:2: Who calls", "template.yaml:3: So many"],
        "web": [
            f"layers/engine/baton/web/a.py:{at}" for at in ("1: By which name", "1: How {} is", "2: If so")
        ],
    }
    assert [*published({"a": [{"description": "x"}], "summary": "y", "help": {}})] == ["y", "x"]


@pytest.mark.parametrize(
    ("docstring", "is_fine"),
    [
        ("Return it.", True),
        ("Pass it on.", True),
        ("Yield, by name, each.", True),
        ("The name.", False),
        ("Returns it.", False),
        ("Key of it.", False),
        ("`GET /sagas`.", False),
        ("JSON of it.", False),
        ("host: its name.", False),
    ],
)
def test_a_docstring_of_a_function_begins_with_a_verb(docstring: str, is_fine: bool) -> None:
    assert (NO_VERB.match(docstring) is None) is is_fine
    source = f'class A:\n    @property\n    def a(self):\n        """The name."""\n\n    def b(self):\n        """{docstring}"""\n'
    assert [*functions(nodes_of(source))] == [(6, docstring)]


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
        "descriptions": {},
        "functions": {},
        "names": {"Held": [f"layers/engine/baton/core/{n}.py:7" for n in "abc"]},
    }


if __name__ == "__main__":
    if rooms := sys.argv[1:]:
        sys.stdout.writelines(
            f"{line}\n" for by in now().values() for room in rooms for line in by.get(room, ())
        )
    else:
        GOLDEN.write_text(json.dumps(counts(), indent=2) + "\n", encoding="utf-8")
