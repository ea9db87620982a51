"""Which requests and how much of Lambda's time a saga used, counted and estimated from its log."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.read.costs import BillingSettings
from baton.core.read.usage import Ledger
from tests.core.build import T0, Saga, chain, child, done, interrupted, program, wait
from tests.core.nodes.handing import MINUTE, beat, handing
from tests.core.spending import (
    BARE,
    START,
    next_turn,
    run,
    used,
)

# ---- requests


def test_a_yield_and_a_start_are_messages_and_pass_the_relay() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    next_turn(saga)
    run(saga, "n1")
    usage = used(saga, 2)
    assert usage.http_requests == 1
    assert usage.sqs_requests == 2 * 3
    assert usage.lambda_requests == 1 + 2 + 2


@pytest.mark.parametrize(("ms", "relays"), [(60_000, 2), (3_600_000, 1)])
def test_a_timer_is_a_message_sent_by_the_relay_or_when_far_by_the_reconciler(ms: int, relays: int) -> None:
    saga = Saga(program(wait("w", ms=ms)))
    saga.go()
    usage = used(saga, 1)
    assert usage.sqs_requests == 2 * 3
    assert usage.lambda_requests == 1 + relays + 2


def test_waiting_without_a_timer_sends_nothing() -> None:
    saga = Saga(program(wait("w", signal="s")))
    saga.go()
    assert used(saga, 1).sqs_requests == 3


def test_a_request_to_the_api_is_a_signal_a_cancel_a_resume_and_a_fork() -> None:
    saga = Saga(program(wait("w", signal="s"), wait("v", signal="t")))
    saga.go()
    saga.signal("s")
    saga.put(ev.Resumed(by="ada", at=T0), epoch=0, invocation="api")
    saga.cancel()
    assert used(saga, 1).http_requests == 1 + 3


def test_a_heartbeat_is_a_request_that_sends_no_message() -> None:
    saga = handing()
    before = used(saga, 1)
    saga.now += MINUTE
    beat(saga)
    after = used(saga, 1)
    assert (after.http_requests, after.sqs_requests) == (before.http_requests + 1, before.sqs_requests)
    assert after.write_units == before.write_units + 1, "the entry"


def test_a_child_is_started_told_and_cancelled_without_the_api_and_tells_the_relay_its_end() -> None:
    saga = Saga(chain(1), parent="T#acme#SAGA#p", slot="c", depth=1)
    saga.put(ev.CancelRequested(reason="", by="T#acme#SAGA#p", at=T0, grace_ms=0), epoch=0, invocation="p")
    saga.go()
    usage = used(saga, 1)
    assert usage.http_requests == 0
    assert usage.lambda_requests == (2 + 1) + 2, "two wakes and the end pass the relay; two messages"


def test_a_parent_asks_its_open_children_whenever_it_is_taken() -> None:
    saga = Saga(program(child("c")))
    saga.go()
    first = used(saga, 1).read_units
    assert used(saga, 2).read_units == first + (1 + 1) + 2


def test_a_report_sets_its_parent_going_which_looks_into_its_inbox_and_asks_that_child_alone() -> None:
    saga = Saga(program(child("c"), child("d")))
    saga.go()
    before, opened = used(saga, 1), saga.state.children["c"]
    next_turn(saga)
    saga.put(ev.ChildReported(slot="c", child=opened.saga, status="completed"))
    told = used(saga, 2)
    assert told.read_units == before.read_units + (1 + 1) + 3
    assert told.write_units == before.write_units + (1 + 2) + 1 + 1 + (1 + 2), (
        "a take, the count, the entry, a release"
    )
    assert told.sqs_requests == before.sqs_requests + 3
    assert told.http_requests == 1


def test_a_start_reads_the_definition_and_before_it_the_head_where_that_may_be_there() -> None:
    assert used(Saga(chain(1))).read_units == 1 + 1
    assert used(Saga(chain(1), saga="k1")).read_units == 2 + 1
    assert used(Saga(chain(1), parent="T#acme#SAGA#p")).read_units == 2 + 1


def test_a_large_value_is_put_once_and_read_once_however_often_it_is_named() -> None:
    saga = Saga(chain(3), ev.Value(ref="cas://sha256/1", size=9))
    saga.go(done("n0", ref="cas://sha256/2"))
    saga.go(done("n1", ref="cas://sha256/2"))
    usage = used(saga, 1)
    assert (usage.blob_puts, usage.blob_gets) == (2, 2)


def test_a_holder_that_waits_looks_at_the_log_now_and_then() -> None:
    saga = Saga(chain(2))
    run(saga, "n0", "n1")
    quick = used(saga, 1).read_units
    saga = Saga(chain(2))
    run(saga, "n0", "n1", each_ms=12_000)
    assert used(saga, 1).read_units == quick + 2 * 2


# ---- Lambda's time


def worker_ms(saga: Saga, takes: int, *, held: bool = False, **deployment: Any) -> float:
    return (
        used(saga, takes, held=held, deployment=msgspec.structs.replace(BARE, **deployment)).gb_seconds
        * 1_000
    )


def test_an_invocation_lasts_from_its_first_step_to_its_last_entry() -> None:
    saga = Saga(chain(3))
    run(saga, "n0", "n1", each_ms=700)
    saga.now += 3_600_000
    next_turn(saga)
    saga.put(
        ev.StepSucceeded(
            node="n2",
            attempt=1,
            output=ev.Value(),
            started_at=saga.now - 40,
            ended_at=saga.now,
            tool="t",
            tool_version="1",
            schema_hash="",
        )
    )
    assert worker_ms(saga, 2) == 1_400 + 40, "the hour between them costs nothing"
    assert worker_ms(saga, 2, worker_mb=512) == 720
    assert worker_ms(saga, 2, handover=50, init=800) == 1_440 + 2 * 50 + 2 * 800
    assert worker_ms(saga, 3, handover=50) == 1_440 + 3 * 50, "a look costs the hand-over"
    assert worker_ms(saga, 2, held=True, handover=50) == 1_440 + 50


def test_the_api_and_the_relay_take_their_time_too() -> None:
    assert worker_ms(Saga(chain(1)), 0, api_mb=2_048, request=30, relay_mb=512, passing=10) == 60 + 5


def test_a_dead_invocation_lasted_to_the_end_of_its_lease_at_most() -> None:
    saga = Saga(chain(2))
    run(saga, "n0")
    saga.now += 30_000
    saga.die()
    assert worker_ms(saga, 2) == 30_000 - 1_000 + saga.entries[1].at - T0 - 0


def test_one_that_died_without_a_word_lasted_since_the_entry_before_it_and_no_longer_than_lambda_lets_it() -> (
    None
):
    saga = Saga(chain(2))
    saga.now += 8_000
    saga.die()
    assert worker_ms(saga, 2) == 8_000 - 1_000
    saga = Saga(chain(2))
    saga.now += 10**9
    saga.die()
    assert worker_ms(saga, 2) == 900_000


def test_clocks_that_disagree_cost_nothing() -> None:
    saga = Saga(chain(2))
    saga.now -= 60_000
    run(saga, "n0")
    assert worker_ms(saga, 1) == 0
    assert worker_ms(saga, 1, held=True) == 0


def test_an_interrupted_step_is_paid_as_the_time_it_took() -> None:
    saga = Saga(chain(1))
    saga.go(interrupted("n0"), after_ms=4_000)
    assert worker_ms(saga, 1) == 4_000


def test_an_entry_of_a_writer_that_had_nothing_to_say_is_paid_like_any_other() -> None:
    saga = Saga(chain(1))
    ledger = Ledger(saga.program, BARE)
    for entry in [*saga.entries, ev.Entry(version=2, at=T0, invocation="api", events=())]:
        ledger.add(entry, b"{}", 50)
    assert ledger.total(0, is_held=False).write_units == START + 1


def test_the_deployment_is_as_the_engine_is_set_up() -> None:
    limits = Limits(worker_memory_mb=256, snapshot_tail_bytes=4_096, news_every_ms=700, lease_grace_ms=300)
    deployment = BillingSettings.of(limits)
    assert deployment.worker_mb == 256
    assert (deployment.snapshot_tail, deployment.news_every, deployment.lease_grace) == (4_096, 700, 300)
