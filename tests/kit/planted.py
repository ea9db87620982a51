"""Where each planted bug of bugs.py is searched for, and the oracle whose word it must be found by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.kit import (
    bugs,
    callback_bugs,
    function_bugs,
    journal_bugs,
    lease_bugs,
    map_bugs,
    model_bugs,
    money_bugs,
    patch_bugs,
    polls_and_children,
    question_bugs,
    remote_tools,
    report_bugs,
    tree_bugs,
    undo_bugs,
)
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, HANG, LATE, NO_ANSWER, STALL
from tests.kit.found_at import first
from tests.kit.function_scenarios import FUNCTIONS, UPDATES
from tests.kit.journal_scenarios import JOURNAL
from tests.kit.map_bugs import MAPS
from tests.kit.oracles import (
    ACKNOWLEDGED,
    APPROVALS,
    ASKED,
    CALLBACKS,
    CHILDREN,
    DEATHS,
    DEEDS,
    FENCE,
    LATENESS,
    LIVENESS,
    LOG,
    MODELS,
    MONEY,
    RESULT,
    ROLES,
    TOLD,
)
from tests.kit.order_scenarios import ORDERS
from tests.kit.polls_and_children import AGAIN
from tests.kit.process import HANGS, INDEX, REFUSES, RENEWALS, Outage
from tests.kit.races import fork_race, race
from tests.kit.reports import report_race
from tests.kit.schedule import SCENARIOS, Schedule, trial, undisturbed
from tests.kit.undo_before_approval import in_deaths
from tests.kit.undoable_tools import UNDOING

SLOWEST_S = 5
MOMENTS = [step / 1_000 for step in range(160)]
REPORTS = [0.9 + step / 400 for step in range(100)]
STILL_INSIDE = Schedule("stubborn", 31, killed_late_s=0.9, faults=(("write", 7, LATE), ("read", 13, STALL)))
"""A process stands still in a tool that it began so late that its lease is over before it acts; its heir has looked by then."""
CLASSIC = (CRASH_BEFORE, CRASH_AFTER, STALL, FREEZE)
Run = Callable[[], tuple[str, ...]]
"""One run of the simulation; it returns what it breaks."""
Search = Callable[[], Iterator[Run]]
"""The runs in which a bug is searched for, in order."""


def _breaks(schedule: Schedule) -> Run:
    return lambda: trial(schedule).broken


def in_schedules(*schedules: Schedule) -> Search:
    """What is broken in any of these, one schedule after the other."""

    return lambda: map(_breaks, schedules)


def everywhere(scenario: str, fates: tuple[str, ...] = CLASSIC, drawn: int = 60, **world: Any) -> Search:
    """One fault at every write of a scenario, then schedules drawn from seeds."""

    def search() -> Iterator[Run]:
        plain = Schedule(scenario, 0, **world)
        yield _breaks(replace(plain, faults=()))
        for number, _ in enumerate(undisturbed(SCENARIOS[scenario]).writes, 1):
            for fate in fates:
                yield _breaks(replace(plain, faults=(("write", number, fate),)))
        for seed in range(drawn):
            yield _breaks(replace(Schedule.drawn(seed), scenario=scenario, **world))

    return search


def unrenewed(scenario: str, **world: Any) -> Search:
    """A time in which no lease can be renewed, at many moments of a scenario. A wake comes each second."""
    outages = (
        Outage(RENEWALS, how, begin / 2, begin / 2 + 20) for begin in range(1, 30) for how in (HANGS, REFUSES)
    )
    return in_schedules(
        *(Schedule(scenario, 0, faults=(), gap_s=1, outages=(one,), **world) for one in outages)
    )


def at_reads(scenario: str, *fates: str, **world: Any) -> Search:
    """One fault at every one of the first reads of a scenario."""
    return in_schedules(
        *(
            Schedule(scenario, 0, faults=(("read", number, fate),), **world)
            for number in range(1, 30)
            for fate in fates
        )
    )


def seeds(scenario: str, count: int, **world: Any) -> Search:
    """A scenario without faults, in worlds of many seeds."""
    return in_schedules(*(Schedule(scenario, seed, faults=(), **world) for seed in range(count)))


def clicks(count: int) -> Search:
    """Links that are shown in many moments; in every other world appends take a while, so that much comes in between."""
    worlds = ((), (("append", 0.2),))
    return in_schedules(
        *(Schedule("confirmed", seed, faults=(), slow=slow) for seed in range(count) for slow in worlds)
    )


def _two_crashes(scenario: str, first: int, second: int) -> Schedule:
    return Schedule(scenario, 0, faults=(("write", first, CRASH_AFTER), ("write", second, CRASH_BEFORE)))


def _crash_while_slow(scenario: str, write: int) -> Schedule:
    return Schedule(scenario, 0, faults=(("write", write, CRASH_AFTER),), slow=(("append", 0.2),))


def at_answers(*fates: str) -> Search:
    """One fault at each of the first reads of an agent's saga: those of its model are among them."""
    return at_reads("thinks", *fates)


def at_rest(*scenarios: str) -> Search:
    """Scenarios in which nothing else goes wrong."""
    return in_schedules(*(Schedule(scenario, 0, faults=()) for scenario in scenarios))


def in_races() -> Iterator[Run]:
    def broken(moment: float) -> tuple[str, ...]:
        is_late = race(moment, "signal").seconds > SLOWEST_S
        return (f"{LATENESS}: a signal at {moment} s",) if is_late else ()

    return (partial(broken, moment) for moment in MOMENTS)


def in_fork_races() -> Iterator[Run]:
    def broken(moment: float) -> tuple[str, ...]:
        return tuple(filter(None, [fork_race(moment)]))

    return (partial(broken, moment) for moment in MOMENTS)


def in_report_races() -> Iterator[Run]:
    def broken(moment: float) -> tuple[str, ...]:
        is_late = report_race(moment) > 1
        return (f"{LATENESS}: a report to a parent that is busy for {moment} s",) if is_late else ()

    return (partial(broken, moment) for moment in REPORTS)


@dataclass(frozen=True)
class Planted:
    """A bug, the oracle that names what it breaks, and where it is searched for."""

    bug: Callable[[], Any]
    oracle: str
    search: Search


PLANTED: Mapping[str, Planted] = {
    one.bug.__name__: one
    for one in (
        Planted(bugs.release_ignores_the_nudge, LATENESS, in_races),
        Planted(
            bugs.a_refused_release_is_a_death,
            DEATHS,
            in_schedules(Schedule("chain", 0, outages=(Outage(INDEX, REFUSES, 0.1, 60),), faults=())),
        ),
        Planted(bugs.an_expired_lease_is_never_taken, LIVENESS, everywhere("chain")),
        Planted(bugs.a_yield_leaves_the_due_index, LIVENESS, everywhere("chain")),
        Planted(bugs.a_stale_invocation_appends, FENCE, everywhere("chain")),
        Planted(lease_bugs.a_renewal_names_no_epoch, FENCE, everywhere("held", (LATE,), gap_s=1)),
        Planted(
            lease_bugs.a_late_take_ends_a_renewed_lease,
            FENCE,
            everywhere("held", (LATE,), drawn=0, gap_s=1, late_s=23, lease_ms=18_000),
        ),
        Planted(
            lease_bugs.a_lease_without_an_answer_is_not_watched,
            FENCE,
            everywhere("held", (LATE,), drawn=0, gap_s=1),
        ),
        Planted(lease_bugs.no_watchdog_ends_the_process, FENCE, unrenewed("held")),
        Planted(lease_bugs.the_first_release_ends_the_watch, DEATHS, unrenewed("held")),
        Planted(lease_bugs.a_claim_lasts_as_long_as_a_lease_that_is_not_renewed, DEEDS, at_rest("tables")),
        Planted(bugs.an_orphan_head_is_not_rolled_forward, LIVENESS, everywhere("parent")),
        Planted(bugs.a_fork_does_not_arm, LIVENESS, in_fork_races),
        Planted(bugs.an_append_overwrites, LOG, everywhere("chain")),
        Planted(bugs.consumed_tokens_stay, LIVENESS, everywhere("fan")),
        Planted(bugs.any_entry_of_the_same_lease_is_its_own, ACKNOWLEDGED, seeds("crowd", 3)),
        Planted(
            bugs.a_lease_has_no_grace,
            DEEDS,
            seeds("stubborn", 30, skew_ms=3_000, gap_s=0.1, killed_late_s=0.9),
        ),
        Planted(bugs.release_ignores_the_arming, LIVENESS, in_fork_races),
        Planted(report_bugs.release_ignores_the_inbox, LATENESS, in_report_races),
        Planted(report_bugs.a_report_is_announced_before_it_is_left, LATENESS, in_report_races),
        Planted(bugs.the_arming_is_not_read_again, LATENESS, in_fork_races),
        Planted(bugs.a_load_does_not_look_at_the_epoch, FENCE, at_reads("chain", FREEZE)),
        Planted(
            bugs.a_missing_child_is_not_started_before_it_is_cancelled,
            CHILDREN,
            everywhere("cancelled-early", (STALL, FREEZE, LATE)),
        ),
        Planted(bugs.a_hand_over_forgets_the_retries, RESULT, at_rest("retried")),
        Planted(bugs.any_claim_is_freed_without_force, DEEDS, at_rest("freed")),
        Planted(remote_tools.a_cut_answer_is_asked_for_again, DEEDS, at_rest("remote")),
        Planted(remote_tools.a_call_goes_without_its_key, DEEDS, everywhere("remote", drawn=0)),
        Planted(money_bugs.a_failed_settlement_is_not_tried_again, MONEY, everywhere("effects", (HANG,))),
        Planted(
            money_bugs.a_change_that_is_made_again_counts_again,
            MONEY,
            everywhere("effects", (NO_ANSWER,), drawn=0),
        ),
        Planted(
            bugs.the_fence_of_a_revival_is_tried_once,
            FENCE,
            in_schedules(*(_crash_while_slow("chatter", write) for write in range(15, 21))),
        ),
        Planted(bugs.the_lease_is_not_checked_right_before_an_append, FENCE, everywhere("big", (STALL,))),
        Planted(bugs.a_cut_off_throws_away_what_has_just_finished, RESULT, everywhere("polite", (), drawn=0)),
        Planted(bugs.clocks_are_believed, DEEDS, seeds("chatter", 14, skew_ms=3_000, gap_s=1)),
        Planted(model_bugs.a_request_dies_with_its_caller, MONEY, at_answers(CRASH_AFTER, CRASH_BEFORE)),
        Planted(model_bugs.what_is_given_up_costs_nothing, MONEY, at_answers(HANG)),
        Planted(model_bugs.a_second_request_goes_out_beside_the_first, MODELS, at_rest("thinks")),
        Planted(model_bugs.what_is_held_too_late_is_spent, MONEY, everywhere("thinks", (LATE,), drawn=0)),
        Planted(model_bugs.what_was_held_is_lost, MONEY, at_rest("ponders")),
        Planted(model_bugs.a_request_is_given_back_and_not_paid, MONEY, at_rest("ponders")),
        Planted(model_bugs.what_was_held_is_paid_beside_the_answer, MODELS, at_rest("ponders")),
        Planted(model_bugs.a_transcript_says_when_it_was_made, MODELS, at_rest("thinks")),
        Planted(model_bugs.the_calls_of_a_turn_share_a_child, AGAIN, at_rest("delegates")),
        Planted(model_bugs.of_messages_that_come_together_one_is_heard, RESULT, at_rest("converses")),
        Planted(model_bugs.a_message_is_heard_by_two_turns, RESULT, at_rest("converses")),
        Planted(model_bugs.a_cut_is_forgotten_with_its_request, MODELS, at_rest("forgets")),
        Planted(model_bugs.what_is_not_announced_is_not_looked_at, LIVENESS, at_rest("ponders")),
        Planted(model_bugs.a_plan_forgets_what_was_done, DEEDS, at_rest("replans")),
        Planted(model_bugs.requests_do_not_see_each_other, MODELS, at_rest("tokens", "dollars")),
        Planted(model_bugs.a_hold_is_free_before_its_request_is_over, MODELS, at_rest("dollars", "tokens")),
        Planted(
            model_bugs.a_resumed_invocation_forgets_what_was_counted,
            MODELS,
            everywhere("dollars", (CRASH_AFTER,), drawn=0),
        ),
        Planted(
            model_bugs.what_the_dead_have_asked_for_does_not_count,
            MODELS,
            at_reads("tokens", CRASH_AFTER),
        ),
        Planted(money_bugs.a_result_is_gone_when_its_window_is_over, DEEDS, everywhere("rented", drawn=0)),
        Planted(
            money_bugs.a_retry_covers_every_claim,
            DEEDS,
            in_schedules(*(_two_crashes("asked", 8, later) for later in range(12, 30))),
        ),
        Planted(money_bugs.an_attempt_may_outlast_its_lease, DEEDS, at_reads("wired", STALL)),
        Planted(money_bugs.an_approval_is_for_the_step_and_whatever_it_does, APPROVALS, at_rest("approved")),
        Planted(money_bugs.an_orphaned_claim_is_taken_without_a_look, DEEDS, in_schedules(STILL_INSIDE)),
        Planted(
            money_bugs.money_is_free_by_any_clock,
            MONEY,
            seeds("spenders", 12, skew_ms=3_000, gap_s=1, start_late_s=4),
        ),
        Planted(money_bugs.a_reservation_does_not_ask_what_was_drawn, MONEY, seeds("tenants", 4)),
        Planted(money_bugs.half_a_draw_is_lost, MONEY, seeds("tenants", 4)),
        Planted(tree_bugs.each_saga_has_the_whole_limit, MONEY, at_rest("purse")),
        Planted(tree_bugs.a_child_is_not_told_of_its_tree, MONEY, at_rest("family")),
        Planted(tree_bugs.a_tree_counts_what_it_has_spent_twice, MONEY, at_rest("purse")),
        Planted(tree_bugs.what_waits_for_its_tree_keeps_what_it_holds, MONEY, at_rest("purse")),
        Planted(tree_bugs.what_waits_for_money_is_not_woken, LIVENESS, at_rest("purse")),
        Planted(
            tree_bugs.what_the_dead_held_for_a_tree_is_free,
            MONEY,
            everywhere("family", (CRASH_BEFORE,), drawn=0),
        ),
        Planted(money_bugs.what_is_left_behind_owes_nothing, MONEY, seeds("losers", 1)),
        Planted(callback_bugs.an_old_attempts_token_is_accepted, RESULT, at_rest("handed")),
        Planted(callback_bugs.a_callback_before_the_return_is_lost, RESULT, at_rest("handed")),
        Planted(callback_bugs.a_callback_outlives_its_time, CALLBACKS, at_rest("handed")),
        Planted(callback_bugs.what_comes_after_the_end_is_accepted, CALLBACKS, at_rest("handed")),
        Planted(callback_bugs.a_heartbeat_is_answered_and_not_recorded, CALLBACKS, at_rest("handed")),
        Planted(callback_bugs.a_failure_is_recorded_as_a_success, CALLBACKS, at_rest("handed")),
        Planted(callback_bugs.work_elsewhere_holds_up_no_end, CALLBACKS, at_rest("handed")),
        Planted(
            undo_bugs.an_undo_has_another_key_in_each_invocation,
            UNDOING,
            everywhere("lends", (CRASH_BEFORE,), drawn=0),
        ),
        Planted(undo_bugs.steps_are_undone_side_by_side, UNDOING, at_rest("lends", "lends-again")),
        Planted(
            undo_bugs.a_revival_forgets_what_is_left, UNDOING, everywhere("lends", (CRASH_BEFORE,), drawn=0)
        ),
        Planted(polls_and_children.a_late_result_is_thrown_away, AGAIN, everywhere("just-in-time")),
        Planted(polls_and_children.a_handler_has_another_id_in_each_invocation, AGAIN, everywhere("handled")),
        Planted(polls_and_children.a_graph_is_looked_for_in_the_newest_version, AGAIN, at_rest("handled")),
        Planted(
            polls_and_children.a_lost_child_is_taken_for_one_that_failed, AGAIN, everywhere("just-in-time")
        ),
        Planted(map_bugs.an_item_is_counted_twice, MAPS, at_rest("mapped")),
        Planted(map_bugs.an_item_that_ends_frees_no_place, LIVENESS, at_rest("kids")),
        Planted(map_bugs.a_late_result_of_a_stopped_item_counts, MAPS, at_rest("raced")),
        Planted(map_bugs.a_share_of_the_items_is_rounded_up, RESULT, at_rest("raced")),
        Planted(map_bugs.each_try_of_a_poll_has_its_own_deadline, AGAIN, at_rest("polled")),
        Planted(map_bugs.a_poll_does_not_rest, AGAIN, everywhere("polled", (), drawn=3)),
        Planted(map_bugs.the_second_child_has_the_id_of_the_first, AGAIN, at_rest("tried")),
        Planted(
            function_bugs.results_are_heard_again_in_another_order,
            RESULT,
            everywhere("side-by-side", (CRASH_AFTER,), drawn=0),
        ),
        Planted(
            function_bugs.what_was_asked_for_is_asked_for_again, FUNCTIONS, everywhere("in-turn", drawn=0)
        ),
        Planted(function_bugs.other_code_is_as_good, RESULT, at_rest("changes")),
        Planted(function_bugs.the_last_result_is_not_kept, RESULT, at_rest("in-turn")),
        Planted(function_bugs.what_is_left_goes_on, RESULT, at_rest("races")),
        Planted(
            function_bugs.a_second_result_of_an_entry_is_dropped,
            LIVENESS,
            everywhere("side-by-side", drawn=0),
        ),
        Planted(function_bugs.what_a_function_has_done_is_not_undone, ORDERS, at_rest("order-cancelled")),
        Planted(
            function_bugs.an_agent_has_another_name_each_time_that_it_is_asked,
            RESULT,
            everywhere("assisted", (CRASH_AFTER,), drawn=0),
        ),
        Planted(
            function_bugs.operations_of_tasks_are_named_as_if_there_were_no_tasks,
            RESULT,
            everywhere("members", (CRASH_AFTER,), drawn=0),
        ),
        Planted(
            function_bugs.the_code_of_a_step_is_taken_for_there,
            RESULT,
            everywhere("durable", (CRASH_AFTER,), drawn=0),
        ),
        Planted(journal_bugs.the_cost_of_a_unit_is_not_in_its_entry, JOURNAL, at_rest("journalled")),
        Planted(journal_bugs.a_unit_is_paid_with_its_attempt_too, JOURNAL, at_rest("journalled")),
        Planted(function_bugs.an_answer_goes_to_the_newest_update, UPDATES, at_rest("moves")),
        Planted(journal_bugs.recorded_units_are_not_read, JOURNAL, at_rest("journalled")),
        Planted(journal_bugs.a_unit_forgets_those_before_it, JOURNAL, at_rest("journalled")),
        Planted(journal_bugs.a_unit_has_the_key_of_another_step, JOURNAL, at_rest("journalled")),
        Planted(
            journal_bugs.a_tool_goes_on_before_its_unit_is_in_the_log,
            JOURNAL,
            everywhere("journalled", (HANG,), drawn=0),
        ),
        Planted(undo_bugs.an_unapproved_look_says_nothing, LIVENESS, in_deaths),
        Planted(undo_bugs.a_fork_loses_the_list, UNDOING, at_rest("lends-again")),
        Planted(undo_bugs.the_first_of_an_entry_is_the_only_one, UNDOING, at_rest("lends-again")),
        Planted(bugs.a_take_names_no_epoch, DEATHS, everywhere("waiting", (LATE,), drawn=0)),
        Planted(bugs.a_call_ends_with_its_invocation_and_no_sooner, DEATHS, at_reads("asked", HANG)),
        Planted(bugs.a_saga_is_parked_and_on_call_is_not_told, TOLD, at_rest("killer", "overlong")),
        Planted(bugs.on_call_is_told_of_the_first_parking_only, TOLD, at_rest("resumed")),
        Planted(patch_bugs.a_worker_goes_on_with_the_graph_it_has_loaded, RESULT, at_rest("patched")),
        Planted(
            patch_bugs.a_patch_is_not_known_by_its_key, RESULT, everywhere("patched", (CRASH_AFTER,), drawn=0)
        ),
        Planted(patch_bugs.a_patch_is_not_made_anew_for_another_graph, RESULT, at_rest("patched")),
        Planted(patch_bugs.what_is_undone_is_undone_by_the_newest_graph, RESULT, at_rest("patched-undone")),
        Planted(patch_bugs.a_fork_forgets_its_changes, RESULT, at_rest("forked-changed")),
        Planted(patch_bugs.what_a_fork_repeats_has_its_old_keys, ROLES, at_rest("forked-changed")),
        Planted(
            question_bugs.the_end_of_a_question_beats_its_answer,
            ASKED,
            everywhere("escalated", (CRASH_AFTER,), drawn=0),
        ),
        Planted(question_bugs.a_link_is_looked_at_once, ASKED, clicks(20)),
        Planted(question_bugs.an_answer_is_known_by_its_key_alone, ASKED, clicks(4)),
        Planted(question_bugs.a_link_of_those_before_counts, ASKED, clicks(20)),
        Planted(question_bugs.a_link_answers_after_the_end, ASKED, clicks(20)),
    )
}


def found_in(planted: Planted) -> list[Run]:
    """The runs of its search up to the one in which its oracle names the bug, that one being the last; none if it never does.

    Whatever is raised is the harness's own mistake, and found nothing.
    """
    for scenario in SCENARIOS.values():
        undisturbed(scenario)  # as it is without the bug
    runs = [*planted.search()]

    def names(run: Run) -> bool:
        return any(text.startswith(f"{planted.oracle}: ") for text in run())

    with planted.bug():
        number = first(planted.bug.__name__, runs, names)
    return runs[: number + 1]
