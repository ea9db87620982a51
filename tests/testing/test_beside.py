"""What goes on beside each other in a test: workers of several sagas, as on Lambda, and what is stopped when a saga ends."""

from __future__ import annotations

from tests.testing.test_running import of


def test_what_waited_when_the_saga_ended_is_stopped_and_waits_no_more() -> None:
    result = of(
        "nodes: {guests: {wait: {signal: guests}}, look: {wait: {for: 5s}}, found: {end: {}, after: look}}"
    )
    assert (result.status, result.steps["guests"].status) == ("completed", "stopped")
    assert "guests: stopped" in repr(result)


def test_a_child_works_beside_the_steps_of_its_parent() -> None:
    """Another worker takes it up, as on Lambda: it does not wait for the invocation of its parent to end."""
    child = "name: child\nnodes: {work: {tool: shop.slow, with: {seconds: 50}}}\n"
    both = "nodes: {own: {tool: shop.slow, with: {seconds: 50}}, its: {workflow: child}}"
    result = of(both, workflows=[child])
    assert (result.status, result.took_s < 60) == ("completed", True)


def test_a_child_that_is_called_off_while_its_step_runs_has_30_seconds_and_not_more() -> None:
    child = "name: child\nnodes: {work: {tool: shop.slow, with: {seconds: 600}}}\n"
    parent = 'nodes: {its: {workflow: child, cancel_on: off}}\noutput: "${ctx.its.output.cancelled}"'
    result = of(parent, workflows=[child], signals=[("30s", "off", "no more")], worker_timeout="15m")
    assert (result.status, result.output, result.took_s) == ("completed", "no more", 60)
