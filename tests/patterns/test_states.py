"""Patterns of instances, states, cancellation, loops, triggers and ends: what is at work at a time, and what is stopped.

The documents are the YAML files beside this one; docs/patterns.md is made of them. How they are run is in run_patterns.py.
"""

from __future__ import annotations

import pytest

from tests.patterns.run_patterns import play

CALLED = ["call 1", "call 2", "call 3"]


# ---- instances -------------------------------------------------------------------------------------------------


def test_wcp12_nothing_waits_for_the_instances() -> None:
    _, diary = play(12, {"guests": ["Ann", "Bo"]})
    assert diary.begun["invite Ann"] == diary.begun["invite Bo"] == diary.begun["cook"]
    assert diary.ended["cook"] < diary.ended["invite Ann"] == diary.ended["invite Bo"]
    assert len(diary.begun) == 4


def test_wcp13_three_instances_run_at_once_and_are_joined() -> None:
    _, diary = play(13)
    assert diary.most_at_once() == 3
    assert diary.begun["file"] == [diary.ended["sign 2"]] == [7]


@pytest.mark.parametrize("takes", [[], [3], [3, 7], [7, 3, 5] * 10])
def test_wcp14_as_many_instances_run_as_the_list_has_items(takes: list[int]) -> None:
    parcels = [{"to": f"P{number}", "takes": seconds} for number, seconds in enumerate(takes)]
    _, diary = play(14, {"parcels": parcels})
    assert diary.begun.keys() == {f"send P{number}" for number in range(len(takes))} | {"bill"}
    assert diary.begun["bill"] == [max(takes, default=0)]
    assert diary.most_at_once() == max(len(takes), 1)


def test_wcp15_further_instances_begin_while_others_run_and_what_follows_waits_for_all() -> None:
    _, diary = play(15, {"boxes": 3})
    assert diary.order == ["pack 3", "pack 2", "pack 1", "bill"]
    assert diary.begun["pack 1"][0] < diary.ended["pack 3"], "it was not known of when the first began"
    assert diary.most_at_once() == 3
    assert diary.begun["bill"][0] >= max(diary.ended[f"pack {box}"] for box in (1, 2, 3))


def test_wcp26_instances_that_have_not_ended_are_withdrawn_and_nothing_follows() -> None:
    result, diary = play(26, signals=[("30s", "enough", None)])
    assert (list(diary.ended), list(diary.stopped)) == (["call 1"], ["call 2", "call 3"])
    assert result.steps["call_1"].output == "call 1"
    assert result.steps["sum_up"].status == "skipped"
    _, diary = play(26)
    assert diary.order == [*CALLED, "sum_up"]


def test_wcp27_instances_that_have_not_ended_are_withdrawn_and_the_saga_goes_on() -> None:
    result, diary = play(27, signals=[("30s", "enough", None)])
    assert list(diary.stopped) == ["call 2", "call 3"]
    assert result.output == ["call 1", None, None]
    assert diary.begun["sum_up"] == [diary.stopped["call 2"]]
    result, _ = play(27)
    assert result.output == CALLED


# ---- states ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signals", "follows"),
    [
        ([("1h", "accepted", None)], "sell"),
        ([("1h", "declined", None)], "thank"),
        ([], "withdraw"),
    ],
)
def test_wcp16_what_comes_first_decides_and_the_other_choices_are_withdrawn(
    signals: list[tuple[str, str, None]], follows: str
) -> None:
    result, diary = play(16, signals=signals)
    assert diary.order == ["offer", follows]
    assert [step.status for step in result.steps.values()].count("skipped") == 4


def test_wcp17_one_task_is_at_work_at_a_time_in_an_order_that_is_allowed() -> None:
    result, diary = play(17)
    assert diary.most_at_once() == 1
    assert diary.order.index("pick") < diary.order.index("pack") < diary.order.index("send") == 3
    assert sorted(result.way) == ["bill", "pack", "pick", "send"]


def test_wcp18_the_task_runs_whenever_it_is_asked_for_while_the_milestone_lasts() -> None:
    """It does not touch the other branch, and no change begins before the milestone is reached or after it is over."""
    signals = [("0s", "change", "early"), ("30s", "change", "it"), ("40s", "change", "again")]
    result, diary = play(18, signals=signals)
    assert diary.begun["rebook early"] == [diary.ended["open"]]
    assert 30 <= diary.begun["rebook it"][0] < 36
    assert 40 <= diary.begun["rebook again"][0] < 46
    assert (diary.begun["close"], diary.stopped, result.steps["over"].output) == ([61], {}, "sell")
    _, never = play(18)
    assert (never.order, never.begun["close"]) == (["open", "sell", "close"], [61])


def test_wcp18_what_comes_when_the_milestone_is_over_finds_its_wait_withdrawn() -> None:
    result, diary = play(18, signals=[("61500ms", "change", "late")])
    assert (diary.order, result.status) == (["open", "sell", "close"], "completed")
    assert result.steps["change"].status == "skipped"


def test_wcp39_one_section_is_entered_at_a_time_and_left_before_the_next() -> None:
    """The sections begin behind different nodes, the second one while the first is at work."""
    _, diary = play(39)
    ready, left = diary.ended["knead"], diary.ended["bake cake"]
    assert diary.begun["heat for cake"] == [diary.ended["mix"]]
    assert diary.begun["heat for cake"][0] < ready < left <= diary.begun["heat for bread"][0]
    assert diary.begun["lay the table"] == diary.begun["mix"], "what is in no section goes on beside it"
    assert diary.begun["serve"] == [diary.ended["bake bread"]]


def test_wcp40_each_task_runs_once_and_alone() -> None:
    _, diary = play(40)
    assert diary.most_at_once() == 1
    assert {what: len(begun) for what, begun in diary.begun.items()} == dict.fromkeys(
        ["arrive", "weigh", "measure", "label", "store"], 1
    )
    assert (diary.order[0], diary.order[-1]) == ("arrive", "store")


# ---- cancellation ----------------------------------------------------------------------------------------------


def test_wcp19_the_signal_stops_the_task_while_its_tool_runs() -> None:
    result, diary = play(19, signals=[("30s", "called_off", None)])
    assert diary.begun["clear the table"] == [diary.stopped["cook"]]
    assert 30 <= diary.stopped["cook"] <= 35
    assert result.way == ["called_off", "served"]
    _, diary = play(19)
    assert (diary.stopped, diary.ended["cook"]) == ({}, 300)


def test_wcp20_a_whole_saga_is_cancelled_and_nothing_of_it_goes_on() -> None:
    result, diary = play(20, signals=[("30s", "called_off", "sorry")])
    (child,) = result.children
    assert (result.output, child["status"], child["active"]) == ("sorry", "cancelled", [])
    assert (list(diary.stopped), diary.order) == (["cook"], ["cook"])


@pytest.mark.parametrize(
    ("when", "begun", "stopped", "closed"),
    [
        ("3s", ["order", "pick", "bill", "label", "close"], ["bill"], 46),
        ("30s", ["order", "pick", "bill", "wrap", "label", "close"], ["wrap", "bill"], 46),
        ("", ["order", "pick", "bill", "wrap", "label", "close"], [], 96),
    ],
)
def test_wcp25_the_nodes_of_the_region_are_withdrawn_and_no_others(
    when: str, begun: list[str], stopped: list[str], closed: float
) -> None:
    """`wrap` and `bill`, on two branches; `pick` before and `label` beside them are at work meanwhile."""
    _, diary = play(25, signals=[(when, "called_off", None)] if when else [])
    assert set(diary.order) == set(begun)
    assert set(diary.stopped) == set(stopped)
    assert diary.begun["close"] == [closed]


# ---- loops and recursion ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "way"),
    [
        ({"good_after": 1, "banned": False}, ["write 0", "write 1", "publish"]),
        ({"good_after": 9, "banned": False}, ["write 0", "write 1", "write 2", "give_up"]),
        ({"good_after": 9, "banned": True}, ["write 0", "reject"]),
    ],
)
def test_wcp10_a_loop_is_left_from_several_of_its_nodes(given: dict[str, object], way: list[str]) -> None:
    assert play(10, given)[1].order == way


def test_wcp21_a_loop_asks_after_each_round_or_before() -> None:
    _, none = play(21, {"pages": 0, "stamps": 0})
    assert none.order == ["print 0", "send"]
    _, some = play(21, {"pages": 3, "stamps": 2})
    assert some.order == ["print 0", "print 1", "print 2", "stamp 0", "stamp 1", "send"]


def test_wcp22_a_workflow_runs_within_itself() -> None:
    result, _ = play(22, {"boxes": 3})
    assert result.output == {"left": 2, "inner": {"left": 1, "inner": {"left": 0, "inner": None}}}
    assert [child["workflow"] for child in result.children].count("recursion") == 2


# ---- triggers and ends -----------------------------------------------------------------------------------------


def test_wcp23_only_a_signal_that_is_waited_for_does_anything() -> None:
    early, first, between, last = ("3s", "a"), ("15s", "b"), ("20s", "c"), ("40s", "d")
    signals = [(at, "alarm", said) for at, said in (early, first, between, last)]
    result, diary = play(23, signals=signals)
    assert result.status == "completed"
    assert {what: at[0] for what, at in diary.begun.items()} == {
        "fill": 0,
        "drain for b": 15,
        "drain for d": 40,
    }


def test_wcp24_signals_that_come_too_early_are_kept_in_their_order() -> None:
    _, diary = play(24, signals=[("1s", "guest", "Ann"), ("2s", "guest", "Bo")])
    assert diary.begun["serve Ann and Bo"] == [diary.ended["cook"]] == [30]


def test_wcp11_the_saga_is_complete_when_nothing_is_left_to_do() -> None:
    result, diary = play(11)
    assert result.status == "completed"
    assert result.took_s == diary.ended["ask_how_it_was"] > 3 * 86_400
    assert diary.stopped == {}


def test_wcp43_the_saga_ends_at_once_and_what_is_left_is_stopped() -> None:
    result, diary = play(43)
    assert (result.status, result.output) == ("completed", "found")
    assert result.took_s == diary.stopped["call"] == 5
    assert result.steps["guests"].status == "stopped"
    assert "cook" not in diary.begun
