"""What a kind of node is called, and what it opens, is known where the kind is: in core/nodes/ and core/documents/nodes/.

The law: no other file asks `node.kind == "wait"`, `isinstance(event, WaitOpened)` or `event["kind"] == "wait_opened"`. What reads documents, draws them or serves them
does not even have a kind's word as a literal: it asks the registry. Which file may import a kind is in law.py.

The lists of exceptions may get shorter, and nothing is added to them but words that mean no kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.log.events import ChildReported, Closing, Moving, NodePassed, Opening, StepSucceeded
from baton.core.log.work import Open
from tests.architecture.law import nodes_of

PACKAGE = Path(__file__).parents[2] / "layers/engine/baton"
KINDS = ("core/nodes/", "core/documents/nodes/", "core/log/records.py", "core/log/work.py")
READERS = ("core/documents/", "builder/", "cli/", "client/", "web/", "testing/", "words/")
NAMES = frozenset(kind.kind for kind in NODE_TYPES)
WORDS = NAMES | {kind.key for kind in NODE_TYPES}
_EVENTS = {*(event for union in (Opening, Closing, Moving) for event in get_args(union)), ChildReported}
STRUCTS = {struct.__name__ for struct in (*_EVENTS, *get_args(Open))}
# Of every kind that calls tools: a step may hand its work over, and a model may be asked for another way.
STRUCTS -= {"StepSucceeded", "AlternativeBegan", "Callback", "CallbackOpened", "Replanning"}
"""The events of one kind each, and its open work."""
TAGS = frozenset(str(event.__struct_config__.tag) for event in _EVENTS - {StepSucceeded, NodePassed})

# What still knows kinds, and how often. The folds of the events themselves; whose models' tokens and conversations they are; what an
# item is; what a report of a child costs, and who performs children; and readers that name calls and items of one entry. Maps that have gone on
# while their items run: what closes a node leaves these, and nothing follows from their end. The reply that an event of functions has.
LEFT = {
    "core/decide/unknown_outcomes.py": 2,
    "core/decide/scheduling.py": 1,
    "core/log/functions.py": 1,
    "core/log/folding/fold.py": 4,
    "core/log/folding/open_folds.py": 10,
    "core/log/folding/workflow_limits.py": 1,
    "core/decide/context.py": 1,
    "core/recovery.py": 1,
    "core/read/metrics.py": 1,  # a figure of the Lambda function, not of the kind
    "core/read/story.py": 3,
    "core/read/usage.py": 3,
    "runtime/models/sessions.py": 2,  # the transcript of an agent, from its log
    "runtime/models/model_caller.py": 1,
    "runtime/requests/messages.py": 1,  # the turns that take messages
    "runtime/money/holds.py": 1,
    "runtime/worker/children.py": 1,
}
# What tells of events by their tags: sentences about each, the conversation of an agent, the figures of the demonstration.
TOLD: Mapping[str, set[str]] = {
    "console/conversations.py": {
        "agent_began",
        "turn_began",
        "calls_began",
        "agent_closed",
        "function_closed",
        "question_opened",
    },
    "demo/evidence.py": {"child_opened"},
    "demo/figures.py": {"question_opened", "calls_began"},
    "demo/scenario.py": {"child_opened"},
    "testing/result.py": {"calls_began", "callback_opened"},
    "words/event_words.py": {
        "agent_began",
        "turn_began",
        "calls_began",
        "message_awaited",
        "agent_closed",
        "question_opened",
        "callback_opened",
        "map_began",
        "items_began",
        "items_gathered",
        "map_stopped",
        "map_closed",
        "map_ended",
        "function_began",
        "operations_began",
        "function_closed",
    },
    # Its replay reads a log as the API shows it.
    "cli/documents/against.py": {"function_began", "operations_began", "function_closed"},
}
# The literals of readers that have another meaning there.
OTHER_MEANINGS: Mapping[str, set[str]] = {
    # a method for each kind
    "builder/workflow.py": {
        "tool",
        "wait",
        "workflow",
        "graph",
        "value",
        "fail",
        "end",
        "human",
        "model",
        "agent",
        "function",
    },
    # An argument of the step, a field of the graph.
    "core/documents/parts/node.py": {"model", "tool", "value"},
    "core/documents/familiar.py": {"model"},
    "core/documents/changes.py": {"tool", "workflow", "graph", "function"},
    "cli/text/graph.py": {"model", "tool", "graph", "workflow"},
    # Who speaks in a message to a model.
    "testing/models.py": {"tool", "function"},
    # The word of another engine for all nodes.
    "core/documents/compile/expressions.py": {"task"},
    # The field that names a graph of the document; the graph of a version.
    "core/documents/compile/__init__.py": {"graph"},
    "web/handlers.py": {"graph", "tool"},
    # What a node or a failure handler starts.
    # The definition of any JSON value.
    "core/documents/parts/fields.py": {"value"},
    # A tool: of a policy, of a hint, of an event, in a list of tools; a part of an example.
    "builder/control.py": {"tool"},
    "testing/result.py": {"tool", "workflow", "fail"},
    "cli/deployment/catalog.py": {"tool", "workflow"},
    "core/documents/models.py": {"workflow", "graph", "tool"},
    "core/documents/parts/failing.py": {"tool"},
    # Fields of events: the tool of a step, the model that an answer is of.
    "words/event_words.py": {"tool", "model", "graph", "workflow"},
    # The workflow of a saga, or of a request.
    "cli/machine/project.py": {"workflow"},
    "cli/machine/running.py": {"workflow"},
    "cli/text/render.py": {"end", "workflow", "graph", "tool", "model"},  # of a line
    "cli/terminal/completion.py": {"workflow", "fail"},  # what a person answers
    "cli/documents/check.py": {"workflow", "function"},
    # as in event_words.py
    "cli/deployment/steering.py": {"workflow"},
    "cli/deployment/travel.py": {"workflow"},
    "cli/deployment/sagas.py": {"workflow"},
    "cli/deployment/operations.py": {"tool"},
    "cli/text/tables.py": {"workflow", "graph", "tool"},
    "cli/documents/workflows.py": {"workflow"},
    "cli/documents/against.py": {"function", "graph", "tool", "workflow"},
    "client/calls.py": {"workflow", "value", "tool"},
    "client/connection.py": {"workflow"},
    "web/routes.py": {"workflow", "tool"},
    # the end of a ladder
    # A value that a condition compares with.
    "builder/conditions.py": {"value"},
}


def words_in(source: str) -> Iterator[str]:
    """The words of kinds that stand in a file as literals."""
    for node in nodes_of(source):
        if isinstance(node, ast.Constant) and node.value in WORDS:
            yield str(node.value)


def tags_in(source: str) -> set[str]:
    """The tags of events of one kind that a file names, other than where it declares them."""
    nodes = nodes_of(source)
    declared = {node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "tag"}
    return {
        str(node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and node.value in TAGS and node not in declared
    }


def known_kinds(source: str) -> Iterator[str]:
    """Every place in a source where the name of a kind is compared, or a struct of one is asked for."""
    for node in nodes_of(source):
        if isinstance(node, ast.Compare) and any(map(_is_kind, (node.left, *node.comparators))):
            if NAMES & _texts(node):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Dict) and len(NAMES & _keys(node)) > 1:
            yield f"{node.lineno}: a table by kinds"
        elif isinstance(node, ast.keyword) and node.arg == "kind" and NAMES & _texts(node.value):
            yield f"{node.value.lineno}: kind={ast.unparse(node.value)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            if STRUCTS & _names(node.args[1]):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.MatchClass) and STRUCTS & _names(node.cls):
            yield f"{node.lineno}: case {ast.unparse(node.cls)}"


def _is_kind(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "kind") or (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == "kind"
    )


def _texts(node: ast.AST) -> set[str]:
    return {
        one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def _keys(node: ast.Dict) -> set[str]:
    return {one.value for one in node.keys if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def _names(node: ast.AST) -> set[str]:
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def test_nothing_else_knows_the_kinds() -> None:
    places, words, tags = {}, {}, {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name, source = file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")
        if name.startswith(KINDS):
            continue
        if found := list(known_kinds(source)):
            places[name] = found
        if told := tags_in(source):
            tags[name] = told
        if name.startswith(READERS) and (literals := set(words_in(source))):
            words[name] = literals
    assert {name: len(found) for name, found in places.items()} == LEFT, places
    assert words == dict(OTHER_MEANINGS)
    assert tags == dict(TOLD)


def test_a_literal_is_found() -> None:
    assert set(words_in("if node['kind'] == 'wait' or x in {'pass': 1}: pass")) == {"wait", "pass"}


def test_a_tag_is_found_where_it_is_not_declared() -> None:
    assert tags_in(
        "class A(Event, tag='wait_opened'): pass\nmarks = {'child_opened': 1, 'step_failed': 2}"
    ) == {"child_opened"}


def test_a_planted_question_about_a_kind_is_found() -> None:
    planted = """
if node.kind == "wait" or shown["kind"] in ("pass", "task"):
    isinstance(event, ev.WaitOpened | ev.Parked)
marks = {"task": 1, "wait": 2, "other": 3}
Node(name="a", kind="task")
match work:
    case Child(): pass
"""
    lines = sorted(place.partition(":")[0] for place in known_kinds(planted))
    assert lines == ["2", "2", "3", "4", "5", "7"]


def test_what_only_sounds_like_a_kind_is_not_taken_for_one() -> None:
    assert not list(known_kinds('{"workflow": name}; notice.kind == "high"; isinstance(x, Waiter)'))
