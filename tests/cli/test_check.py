"""`baton check`: all problems of a document at once, without any API."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from baton.cli.documents.app import documents, load_app
from baton.tools import define
from tests.cli.conftest import Baton, FakeApi
from tests.docs.pages import README, ROOT
from tests.kit.sentences import Says

GOOD = """\
name: small
nodes:
  quote: {tool: delivery.quote, with: {city: Lisbon, items: [cake], at: "2026-12-24T19:30:00Z"}}
"""
BAD = """\
name: small
nodes:
  quote:
    tool: delivery.qoute
  order:
    tool: delivery.order
    after: qoute
"""
KINDS = """\
name: kinds
nodes:
  pause: {wait: {for: 2500ms}}
  either: {wait: {signal: ok, timeout: 1h}, after: pause}
  call: {wait: {signal: called}, after: either}
  child: {workflow: other@2, after: call}
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with an application package of its own, `evenings`."""
    package = tmp_path / "layers" / "app" / "evenings"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Nothing."""\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield package
    sys.modules.pop("evenings", None)


def write(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_a_good_document_is_ok(baton: Baton, api: FakeApi, tmp_path: Path, says: Says) -> None:
    file = write(tmp_path, "small.yaml", GOOD)
    result = baton("check", file)
    assert result.exit_code == 0
    says(result.stdout)
    assert api.asked == []


def shown_on(page: str, command: str) -> list[str]:
    """The lines that a page shows under a command."""
    block = (ROOT / page).read_text("utf-8").partition(f"$ {command}\n")[2]
    return re.split(r"^(?:\$ |```)", block, maxsplit=1, flags=re.MULTILINE)[0].strip().splitlines()


def test_the_page_of_the_command_line_shows_what_it_prints(
    baton: Baton, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    file = "layers/app/sagas/evening.yaml"
    assert baton("check", file).stdout.strip().splitlines() == shown_on("docs/cli.md", f"baton check {file}")


def test_the_readme_shows_what_it_prints(baton: Baton, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(define, "REGISTRY", define.Registry())
    for path, text in README.files().items():
        write(app, Path(path).name, text.replace("sagas.", "evenings."))
    line, *drawn = shown_on("README.md", ".venv/bin/baton check layers/app/sagas/greeting.yaml")
    first, *rest = baton("check", "--app", "evenings", str(app / "greeting.yaml")).stdout.strip().splitlines()
    assert (first.partition(": ")[2], rest) == (line.partition(": ")[2], drawn)


@pytest.mark.parametrize(
    ("own", "rest"),
    [
        ("", "on_failure: fail\n"),
        (", catch: late", ""),
    ],
)
def test_what_happens_when_a_step_fails_for_good_is_said_in_a_line(
    baton: Baton, tmp_path: Path, own: str, rest: str, says: Says
) -> None:
    node = GOOD.rstrip().removesuffix("}") + own + "}\n"
    more = "  late: {value: 1}\n" if own else ""
    file = write(tmp_path, "small.yaml", node + more + rest)
    shown = baton("check", file).stdout.splitlines()
    says(shown[1 : shown.index("")])
    (report,) = json.loads(baton("check", "--json", file).stdout)
    by_class = report["on_failure"].pop("by_class")
    assert by_class["steps"]["transient"] == {"attempts": 5, "over_ms": 15_000, "undone": False}
    assert by_class["nodes"] == {}
    assert report["on_failure"] == (
        {"steps": "", "nodes": {"quote": "goes on with `late`"}} if own else {"steps": "fails", "nodes": {}}
    )


def test_the_drawing_can_be_left_out(baton: Baton, tmp_path: Path, says: Says) -> None:
    file = write(tmp_path, "small.yaml", GOOD)
    says(baton("check", "--quiet", file).stdout)


def test_the_graph_can_be_had_for_a_page(baton: Baton, tmp_path: Path) -> None:
    result = baton("check", "--mermaid", write(tmp_path, "small.yaml", GOOD))
    assert result.stdout == 'flowchart TD\n  n0["quote<br/>delivery.quote"]\n'


GRAPHS = """
name: rounds
failure_handler: {graph: tell, on_cancel: true}
nodes:
  visit: {map: [1, 2], graph: one, with: {day: "${item}"}}
  judge: {map: [1, 2], agent: {model: gpt-5-mini, prompt: "Judge ${item}"}, after: visit}
graphs:
  one: {nodes: {look: {value: 1}, say: {value: 2, after: look}}}
  tell: {nodes: {mail: {value: "${last_error.message}"}}}
"""


def test_the_graphs_of_a_document_and_its_failure_handler_are_drawn_under_their_names(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    file = write(tmp_path, "rounds.yaml", GRAPHS)
    shown = baton("check", file).stdout
    says.within(shown, 2)
    drawn = [line.split() for line in shown.partition("\n\n")[2].splitlines()]
    assert ["≡", "visit", "graph", "one", "for", "each", "of", "[1,", "2],", "40", "at", "a", "time"] in drawn
    at = drawn.index(["graph", "one"])
    assert [line[1] for line in drawn[at + 1 : at + 3]] == ["look", "say"]
    assert drawn[drawn.index(["graph", "tell,", "the", "failure", "handler"]) + 1][1] == "mail"
    assert drawn[drawn.index(["graph", "judge"]) + 1][1] == "judge"
    chart = baton("check", "--mermaid", file).stdout
    assert 'subgraph g1["graph one"]' in chart
    assert "  n0 -.-> g1" in chart
    assert "  failed -.-> g2" in chart
    (told,) = json.loads(baton("check", "--json", file).stdout)
    assert [one["name"] for one in told["graphs"]] == ["judge", "one", "tell"], (
        "as `baton workflows` has them"
    )
    assert told["failure_handler"] == {"workflow": None, "graph": "tell", "on_cancel": True}


def test_what_happens_when_a_step_fails_is_said_where_only_graphs_have_steps(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    text = """
name: rounds
on_failure: fail
nodes: {visit: {graph: one}}
graphs:
  one: {nodes: {a: {tool: delivery.quote, with: {city: Wien, items: [cake], at: "2026-05-01T18:00:00Z"}, catch: b}, b: {value: 1}, c: {tool: delivery.quote, with: {city: Wien, items: [cake], at: "2026-05-01T18:00:00Z"}}}}
"""
    shown = baton("check", write(tmp_path, "rounds.yaml", text))
    says.within(shown.stdout)  # shown.output


def test_every_kind_of_node_says_what_it_does(baton: Baton, tmp_path: Path, says: Says) -> None:
    file = write(tmp_path, "kinds.yaml", KINDS)
    lines = baton("check", file).stdout.splitlines()
    says.within(lines[1])
    says(lines[3:-1])


def test_all_problems_are_listed_with_place_path_and_suggestion(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    file = write(tmp_path, "bad.yaml", BAD)
    result = baton("check", file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    says.within(lines[0], 2)
    assert {line.split()[1] for line in lines} >= {"/nodes/order", "/nodes/order/after"}
    says(result.stderr)


def test_text_that_is_no_document_has_line_and_column(baton: Baton, tmp_path: Path) -> None:
    file = write(tmp_path, "broken.yaml", "name: [\n")
    result = baton("check", file)
    assert result.exit_code == 1
    assert result.stdout.startswith(f"{file}:2:1  ")


def test_nodes_of_which_only_one_acts_are_named_and_are_no_problem(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    letter = "tool: std.notify, with: {to: a@b.example, subject: x, text: y}"
    nodes = f"tell: {{{letter}}}, remind: {{{letter}, after: tell}}"
    file = write(tmp_path, "small.yaml", f"name: small\nnodes: {{{nodes}}}\n")
    result = baton("check", "--quiet", file)
    assert result.exit_code == 0
    says(result.stdout.splitlines()[1])
    says(json.loads(baton("check", "--json", file).stdout)[0]["notes"][0])


@pytest.mark.parametrize(
    "nodes",
    [
        "call: {tool: std.http, with: {method: GET, url: https://a.example}}",
        "one: {tool: std.get, with: {type: a, id: b}}, two: {tool: std.get_object, after: one, with: {name: a}}",
    ],
)
def test_a_standard_tool_that_has_to_be_switched_on_is_named(
    baton: Baton,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    nodes: str,
    says: Says,
) -> None:
    monkeypatch.setattr("baton.client.connection.program", lambda: "baton")
    file = write(tmp_path, "small.yaml", f"name: small\nnodes: {{{nodes}}}\n")
    result = baton("check", "--quiet", file)
    assert result.exit_code == 0
    says(result.stdout.splitlines()[1:])


def test_several_files_are_checked_in_one_go(baton: Baton, tmp_path: Path) -> None:
    good, bad = write(tmp_path, "good.yaml", GOOD), write(tmp_path, "bad.yaml", BAD)
    result = baton("check", good, bad)
    assert (result.exit_code, f"{good}: ok" in result.stdout) == (1, True)
    assert "in 2 documents" in result.stderr


def test_programs_get_every_problem(baton: Baton, tmp_path: Path) -> None:
    result = baton("check", "--json", write(tmp_path, "good.yaml", GOOD), write(tmp_path, "bad.yaml", BAD))
    good, bad = json.loads(result.stdout)
    assert (result.exit_code, good["problems"], good["edges"]) == (1, [], [])
    assert [(node["name"], node["kind"], node["tool"]) for node in good["nodes"]] == [
        ("quote", "task", "delivery.quote")
    ]
    assert (bad["nodes"], bad["edges"]) == ([], [])
    assert bad["problems"][0]["path"] == "/nodes/quote/tool"
    assert (bad["problems"][0]["line"], bad["problems"][0]["column"]) == (4, 11)


def test_a_file_that_is_not_there_is_a_wrong_command_line(baton: Baton) -> None:
    result = baton("check", "no-such.yaml")
    assert (result.exit_code, "no-such.yaml" in result.stderr) == (2, True)


def test_an_application_that_is_not_there_is_named(baton: Baton, tmp_path: Path, says: Says) -> None:
    result = baton("check", "--app", "no_such_app", write(tmp_path, "good.yaml", GOOD))
    assert result.exit_code == 2
    says(result.stderr)


@pytest.mark.parametrize(
    "text",
    [
        "import no_such_library\n",
        pytest.param("raise ModuleNotFoundError('no `agents`', name='agents')\n", id="agents"),
        "1 / 0\n",
        "def (\n",
    ],
)
def test_an_application_that_does_not_import_says_why(baton: Baton, app: Path, text: str, says: Says) -> None:
    (app / "__init__.py").write_text(text)
    result = baton("check", "--app", "evenings", write(app, "good.yaml", GOOD))
    assert result.exit_code == 2
    says(result.stderr)


def test_the_application_of_the_environment_is_used(baton: Baton, app: Path) -> None:
    load_app("sagas")  # the document names its tools
    result = baton("check", write(app, "good.yaml", GOOD), env={"BATON_APP": "evenings"})
    assert (result.exit_code, "evenings" in sys.modules) == (0, True)


def test_the_documents_of_an_application_are_its_yaml_files(app: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt"):
        write(app, name, GOOD)
    assert [path.name for path in documents(load_app("evenings"))] == ["a.yml", "b.yaml"]


def test_the_application_is_found_from_deep_down(
    baton: Baton, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app)
    write(app, "pause.yaml", "name: pause\nnodes: {a: {wait: {for: 1s}}}")
    result = baton("check", "pause.yaml", "-q", "--app", "evenings")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_step_that_asks_first_is_marked_and_the_rules_are_said(
    baton: Baton, tmp_path: Path, says: Says
) -> None:
    pay = "{tool: std.pay, with: {amount: 1, currency: USD, to: bob}}"
    get = "{tool: std.http, with: {url: 'https://a.example'}, requires_approval: true, after: pay}"
    nodes = f"nodes:\n  pay: {pay}\n  get: {get}\n"
    shown = baton("check", write(tmp_path, "a.yaml", f"name: asks\n{nodes}")).stdout
    says.within(shown, 3)
    own = "risk: [{action: payment, above: 50, currency: EUR, level: high}]\n"
    file = write(tmp_path, "b.yaml", f"name: asks\n{own}{nodes}")
    says.within(baton("check", file).stdout)
    (report,) = json.loads(baton("check", file, "--json").stdout)
    says(report["risk"])
    assert [node["approval"] for node in report["nodes"]] == ["by_risk", "always"]


ASKS = """\
name: asks
limits: {cost_usd: 2}
nodes:
  sort: {model: {name: tiny, prompt: Sort., fallbacks: [small], max_output: 500, price: {input: 0.25, output: 2}}}
  find:
    agent: {model: small, prompt: Find., tools: ["delivery.*"], turns: 5, tokens: 90000, price: {input: 0.25, output: 2}}
    limits: {cost_usd: 0.5}
  talk: {agent: {model: small, prompt: Talk.}}
"""


def test_what_is_asked_of_models_is_said(baton: Baton, api: FakeApi, tmp_path: Path, says: Says) -> None:
    file = write(tmp_path, "asks.yaml", ASKS)
    lines = baton("check", file).stdout.splitlines()
    told = {line.split("`")[1]: line for line in lines if line.startswith("`")}
    says(told["sort"])
    says(told["find"])
    says(told["talk"])
    (report,) = json.loads(baton("check", "--json", file).stdout)
    models = {one["node"]: one for one in report["models"]}
    assert models["sort"] == {
        "node": "sort",
        "model": "tiny",
        "fallbacks": ["small"],
        "max_output": 500,
        "answers_usd": 0.004,
        "cost_usd": 2,
    }
    find, talk = models["find"], models["talk"]
    assert (find["turns"], find["calls_in_a_turn"], find["tokens"], talk["tokens"]) == (5, 16, 90_000, None)
    assert (find["answers_usd"], talk["answers_usd"]) == (0.16384, None), "each may be corrected three times"


MODELS = """\
name: asks
nodes:
  one: {model: {name: gpt-5-mini, prompt: hi}}
  two: {model: {name: "bedrock/eu.amazon.nova-lite-v1:0", prompt: hi}}
  own: {model: {name: own/qwen3, prompt: hi, price: {input: 1, output: 2}}}
"""


@pytest.mark.parametrize(
    ("profiles", "has_note"), [("", True), ('bedrock = ""\n', False), ('bedrok = ""\n', True)]
)
def test_models_that_no_worker_would_ask_are_noted(
    profiles: str, has_note: bool, baton: Baton, app: Path, says: Says
) -> None:
    root = app.parents[2]
    write(root, "baton.toml", f'baton = "0.1.0"\nstack = "x"\n[models.profiles]\nopenai = ""\n{profiles}')
    result = baton("check", "--json", write(root, "asks.yaml", MODELS), "--app", "evenings")
    assert result.exit_code == 0
    (report,) = json.loads(result.output)
    assert bool(report["notes"]) == has_note
    for note in report["notes"]:
        says(note)


BACKGROUND = """\
name: asks
nodes:
  one: {model: {name: gpt-5-mini, prompt: hi, background: true}}
  two: {model: {name: anthropic/claude-sonnet-4-5, prompt: hi, background: true}}
  own: {agent: {model: anthropic/claude-sonnet-4-5, prompt: hi}}
"""


def test_a_request_in_the_background_to_a_provider_without_them_is_noted(
    baton: Baton, app: Path, says: Says
) -> None:
    profiles = 'baton = "0.1.0"\nstack = "x"\n[models.profiles]\nopenai = ""\nanthropic = ""\n'
    write(app.parents[2], "baton.toml", profiles)
    result = baton("check", "--json", write(app.parents[2], "asks.yaml", BACKGROUND), "--app", "evenings")
    (report,) = json.loads(result.output)
    (note,) = report["notes"]
    says(note)


FUNCTIONS = '''\
"""Functions whose code is wrong, and one that calls a standard tool."""

from baton import StepFailure, WorkflowContext, workflow


@workflow("checked-fetch")
async def fetch(url: str, context: WorkflowContext) -> None:
    """Fetch."""
    try:
        await context.step("std.http", url=url)
    except StepFailure as failure:
        if failure.code == "gone":
            await context.call("checked-ftch")


@workflow("checked-late")
async def late(context: WorkflowContext) -> None:
    """Ask."""
    await context.ask("Ready?", expire="2d")  # type: ignore[call-arg]
'''


@pytest.fixture
def functions(app: Path) -> Iterator[None]:
    """The application with functions."""
    write(app, "wrong.py", FUNCTIONS)
    yield
    for module in ("evenings.wrong", "evenings"):
        sys.modules.pop(module, None)
    for name in ("checked-fetch", "checked-late"):
        define.REGISTRY._tools.pop(name, None)  # no application takes a tool back


@pytest.mark.usefixtures("functions")
def test_the_code_of_functions_is_checked_with_the_standard_tools(baton: Baton, says: Says) -> None:
    result = baton("check", "--quiet", "checked-fetch", "checked-late", "--app", "evenings")
    assert result.exit_code == 1
    says(result.output)
