"""A document's `events`: what they become in the graph, and what is wrong with them, each with its place."""

from __future__ import annotations

import pytest

from baton.core.conditions.model import Cel
from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Events, SignalRule, StartRule, encode_graph
from baton.errors import InvalidDefinition
from tests.core.build import problems_of
from tests.kit.sentences import Says

HEAD = """name: order
nodes:
  paid: {wait: {signal: paid}}
  ask: {agent: {model: m, prompt: p, signal: hint}}
  child: {workflow: other, cancel_on: stop}
"""
PLAIN = "name: order\nnodes: {a: {value: 1}}\n"
RULE = "type: settled, correlation_key: '${event.data.order}'"


def wrong(events: str, head: str = HEAD) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidDefinition) as refused:
        compile_document(f"{head}events: {events}\n", {})
    return [(one.path, one.message, one.suggestion) for one in refused.value.problems]


def test_rules_are_a_part_of_the_graph_and_none_leave_it_as_it_was() -> None:
    start = f"{{{RULE}, source: shop, when: event.data.n > 0, labels: {{o: '${{event.subject}}'}}}}"
    graph = compile_document(
        f"{HEAD}events: {{start: [{start}], signal: [{{{RULE}, signal: paid, payload: 5}}]}}", {}
    )
    key, data = "${event.data.order}", "${event.data}"
    assert graph.events == Events(
        start=(
            StartRule(
                type="settled",
                source="shop",
                when=Cel(expression="event.data.n > 0"),
                correlation_key=key,
                input=data,
                labels={"o": "${event.subject}"},
            ),
        ),
        signal=(SignalRule(type="settled", correlation_key=key, signal="paid", payload=5),),
    )
    assert graph.events.types == ("settled",)
    assert b"events" not in encode_graph(compile_document(PLAIN, {}))


def test_a_rule_is_for_events_of_its_type_and_of_its_source_or_any() -> None:
    one, of_any = StartRule(type="a", source="s"), StartRule(type="a")
    asked = [("a", "s"), ("a", "t"), ("b", "s")]
    assert [(one.is_for(*each), of_any.is_for(*each)) for each in asked] == [
        (True, True),
        (False, True),
        (False, False),
    ]


def test_short_form() -> None:
    graph = compile_document(PLAIN + "events: {start: [settled]}", {})
    assert graph.events == Events(start=(StartRule(type="settled", input="${event.data}"),))


def test_every_node_that_takes_a_signal_counts() -> None:
    for signal in ("paid", "hint", "stop"):
        compile_document(f"{HEAD}events: {{signal: [{{{RULE}, signal: {signal}}}]}}", {})


@pytest.mark.parametrize(
    ("events", "path"),
    [
        ("{}", "/events"),
        ("[settled]", "/events"),
        (f"{{start: [{', '.join(['a'] * 21)}]}}", "/events/start"),
        ("{start: [{}]}", "/events/start/0/type"),
        ("{start: [{type: a, where: x}]}", "/events/start/0/where"),
        ("{start: [{type: a, signal: paid}]}", "/events/start/0/signal"),
        ("{signal: [{type: a, signal: paid}]}", "/events/signal/0/correlation_key"),
        (f"{{signal: [{{{RULE}, signal: pad}}]}}", "/events/signal/0/signal"),
        (f"{{signal: [{{{RULE}, signal: zzzzzz}}]}}", "/events/signal/0/signal"),
        ("{start: [{type: a, input: '${input.x}'}]}", "/events/start/0/input"),
        ("{start: [{type: a, input: {n: '${evnt}'}}]}", "/events/start/0/input/n"),
        ("{start: [{type: a, input: '${event.data'}]}", "/events/start/0/input"),
        ("{start: [{type: a, correlation_key: '${ctx.paid.output}'}]}", "/events/start/0/correlation_key"),
        ("{start: [{type: a, labels: {'5': x}}]}", "/events/start/0/labels"),
        ("{start: [{type: a, when: input.n > 0}]}", "/events/start/0/when"),
        ("{start: [{type: a, when: 'event.data.n >'}]}", "/events/start/0/when"),
        ("{start: [{type: a, when: {python: 'def evaluate(output, context): return True'}}]}", "/events/start/0/when"),
        (f"{{start: [{{type: a, input: {'x' * 8_200}}}]}}", "/events/start/0/input"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_what_would_be_right(events: str, path: str, says: Says) -> None:
    (found,) = wrong(events)
    assert found[0] == path
    says(found[1:])


def test_a_workflow_without_a_wait_can_get_no_signal(says: Says) -> None:
    ((path, said, suggested),) = wrong(f"{{signal: [{{{RULE}, signal: paid}}]}}", PLAIN)
    assert path == "/events/signal/0/signal"
    says(said)
    says(suggested)


def test_there_are_at_most_ten_labels(says: Says) -> None:
    labels = ", ".join(f"l{number}: '${{event.id}}'" for number in range(11))
    ((path, said, _),) = wrong(f"{{start: [{{type: a, labels: {{{labels}}}}}]}}")
    assert path == "/events/start/0/labels"
    says(said)


def test_a_saga_does_not_know_its_event(says: Says) -> None:
    with says.raised(InvalidDefinition):
        compile_document("name: report\nnodes: {a: {value: '${event.data}'}}", {})


@pytest.mark.parametrize(
    "taker", ["agent: {model: m, prompt: hi, signal: beat}", "workflow: kid, cancel_on: beat"]
)
def test_a_fresh_wait_loses_no_signal_that_another_kind_of_node_takes(taker: str, says: Says) -> None:
    """Messages to an agent are kept until its next turn, and what calls a child off until the child is there."""
    document = f"name: w\nnodes: {{x: {{{taker}}}, w: {{wait: {{signal: beat, fresh: true}}}}}}"
    (problem,) = problems_of(document, {})
    assert problem.path == "/nodes/w/wait/fresh"
    says(problem.message)
    assert not problems_of(document.replace("signal: beat, fresh", "signal: pulse, fresh"), {})
    assert not problems_of(document.replace(", fresh: true", ""), {})


def test_a_start_rule_names_the_user_whose_saga_it_is() -> None:
    graph = compile_document(PLAIN + "events: {start: [{type: settled, user: '${event.data.who}'}]}", {})
    assert graph.events is not None
    assert graph.events.start[0].user == "${event.data.who}"
    assert b"user" not in encode_graph(compile_document(PLAIN + "events: {start: [settled]}", {}))
    compile_document(PLAIN + "events: {start: [{type: settled, user: ada@example.com}]}", {})
    for user, said in (("a b", "`a b` is no user"), ("${ctx.a.output}", "a rule can name `event` alone")):
        (found,) = wrong(f"{{start: [{{type: settled, user: '{user}'}}]}}", PLAIN)
        assert found[0] == "/events/start/0/user"
        assert said in found[1]
