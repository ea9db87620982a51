"""Patterns of splits, merges and joins: which nodes run, when, and how often a join fires.

The documents are the YAML files beside this one; docs/patterns.md is made of them. How they are run is in run_patterns.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.patterns.run_patterns import play


def test_wcp01_each_node_begins_when_the_one_before_it_has_ended() -> None:
    result, diary = play(1)
    assert result.way == diary.order == ["pick", "pack", "send"]
    assert diary.begun["pack"] == [diary.ended["pick"]]
    assert diary.begun["send"] == [diary.ended["pack"]]


def test_wcp02_both_branches_begin_at_once() -> None:
    _, diary = play(2)
    assert diary.begun["charge"] == diary.begun["pack"] == [diary.ended["order"]]
    assert diary.most_at_once() == 2


def test_wcp03_the_join_fires_once_and_with_the_last_of_its_branches() -> None:
    _, diary = play(3)
    assert diary.begun["send"] == [max(diary.ended["charge"], diary.ended["pack"])] == [9]


@pytest.mark.parametrize(
    ("cents", "way"), [(60_000, "by_courier"), (50_000, "by_parcel"), (5_000, "by_letter")]
)
def test_wcp04_one_way_is_taken_and_the_others_are_skipped(cents: int, way: str) -> None:
    result, diary = play(4, {"cents": cents})
    assert diary.order == [way]
    assert sorted(node for node, step in result.steps.items() if step.status == "skipped") == sorted(
        {"by_courier", "by_parcel", "by_letter"} - {way}
    )


@pytest.mark.parametrize(("card", "way"), [(True, "by_card"), (False, "in_cash")])
def test_wcp05_the_merge_goes_on_with_whichever_way_was_taken(card: bool, way: str) -> None:
    _, diary = play(5, {"card": card})
    assert diary.order == [way, "receipt"]
    assert diary.begun["receipt"] == [diary.ended[way]]


@pytest.mark.parametrize("gift", [True, False])
@pytest.mark.parametrize("fragile", [True, False])
def test_wcp06_each_way_is_chosen_by_itself(gift: bool, fragile: bool) -> None:
    _, diary = play(6, {"gift": gift, "fragile": fragile})
    assert ("wrap" in diary.begun, "pad" in diary.begun) == (gift, fragile)
    assert all(begun == [diary.ended["order"]] for what, begun in diary.begun.items() if what != "order")


@pytest.mark.parametrize(("extras", "begins"), [(["wrap", "pad"], 8), (["wrap"], 3), (["pad"], 8), ([], 1)])
def test_wcp07_the_merge_waits_for_all_that_were_chosen_and_fires_once(
    extras: list[str], begins: int
) -> None:
    _, diary = play(7, {"extras": extras})
    assert diary.begun["send"] == [begins]
    assert diary.begun.keys() - {"send"} == set(extras or ["plain"])


def test_wcp08_what_comes_behind_the_merge_runs_for_each_branch_as_soon_as_it_arrives() -> None:
    _, diary = play(8, {"gift": True, "fragile": True})
    assert diary.begun["look at the wrapping"] == [diary.ended["wrap"]]
    assert diary.begun["look at the padding"] == [diary.ended["pad"]]
    assert diary.ended["note the wrapping"] < diary.begun["look at the padding"][0]
    _, diary = play(8, {"gift": True, "fragile": False})
    assert diary.order == ["wrap", "look at the wrapping", "note the wrapping"]


def test_wcp09_the_first_branch_goes_on_and_the_other_runs_to_its_end_without_effect() -> None:
    result, diary = play(9)
    assert diary.begun["book"] == [diary.ended["ask_south"]]
    assert diary.ended["ask_north"] > diary.ended["book"]
    assert (diary.stopped, result.way.count("book")) == ({}, 1)


def test_wcp28_no_branch_begins_again_before_all_have_arrived() -> None:
    result, diary = play(28)
    for number in (0, 1):
        assert diary.begun[f"book {number}"] == [diary.ended[f"ask south {number}"]]
        assert diary.ended[f"ask north {number}"] > diary.ended[f"book {number}"]
    assert diary.begun["ask south 1"] == diary.begun["ask north 1"] == [diary.ended["ask north 0"]]
    assert (diary.stopped, result.way.count("book@0"), result.way.count("book@1")) == ({}, 1, 1)


def test_wcp29_the_first_branch_goes_on_and_the_other_is_stopped() -> None:
    result, diary = play(29)
    assert diary.begun["book"] == [diary.ended["ask_south"]] == [diary.stopped["ask_north"]]
    assert result.way == ["ask_south", "book"]


def test_wcp30_the_second_branch_goes_on_and_the_last_runs_to_its_end_without_effect() -> None:
    result, diary = play(30)
    assert diary.begun["decide"] == [diary.ended["ask_eve"]] == [9]
    assert diary.ended["ask_bob"] == 20
    assert (diary.stopped, result.way.count("decide")) == ({}, 1)


def test_wcp31_no_branch_begins_again_before_all_have_arrived() -> None:
    _, diary = play(31)
    for number in (0, 1):
        assert diary.begun[f"decide {number}"] == [diary.ended[f"ask eve {number}"]]
    begins = [diary.begun[f"ask {whom} 1"] for whom in ("ann", "bob", "eve")]
    assert begins == [[diary.ended["ask bob 0"]]] * 3
    assert diary.stopped == {}


def test_wcp32_the_second_branch_goes_on_and_the_last_is_stopped() -> None:
    result, diary = play(32)
    assert diary.begun["decide"] == [diary.ended["ask_eve"]] == [diary.stopped["ask_bob"]]
    assert result.way == ["ask_ann", "ask_eve", "decide"]


def test_wcp33_what_arrives_too_often_is_kept_for_later_rounds() -> None:
    signals = [("1s", "frame", "F1"), ("2s", "frame", "F2"), ("3s", "wheel", "W1"), ("9s", "wheel", "W2")]
    _, diary = play(33, signals=signals)
    assert diary.begun == {"F1 with W1": [3], "F2 with W2": [9]}


def test_wcp34_two_of_as_many_as_the_input_has_go_on_and_the_others_run_to_their_ends() -> None:
    offers = [{"name": "north", "takes": 20}, {"name": "south", "takes": 4}, {"name": "east", "takes": 9}]
    result, diary = play(34, {"offers": offers})
    assert diary.begun["decide"] == [diary.ended["ask east"]] == [9]
    assert (diary.ended["ask north"], diary.stopped, result.status) == (20, {}, "completed")
    assert len(diary.begun["decide"]) == 1
    many = [{"name": str(number), "takes": 100 + number} for number in range(20)]
    _, diary = play(34, {"offers": many})
    assert (diary.begun["decide"], len(diary.ended)) == ([101], 21)


def test_wcp35_two_of_as_many_as_the_list_has_go_on_and_the_others_are_stopped() -> None:
    offers = [{"of": "north", "takes": 20}, {"of": "south", "takes": 4}, {"of": "east", "takes": 9}]
    _, diary = play(35, {"offers": offers})
    assert diary.begun["decide"] == [diary.ended["ask east"]]
    assert list(diary.stopped) == ["ask north"]
    _, diary = play(35, {"offers": offers[:2]})
    assert diary.begun["decide"] == [diary.ended["ask north"]]


CHOICES: list[tuple[dict[str, bool], list[str], float]] = [
    ({"gift": True, "fragile": True, "insured": True}, ["wrap", "pad", "insure", "box"], 24),
    ({"gift": True, "fragile": False, "insured": True}, ["wrap", "box"], 11),
    ({"gift": False, "fragile": True, "insured": False}, ["pad", "box"], 5),
    ({"gift": False, "fragile": False, "insured": True}, [], 1),
]


@pytest.mark.parametrize(("given", "done", "sent_at"), CHOICES)
def test_wcp37_the_merge_of_a_graph_that_is_not_nested_waits_for_the_ways_that_are_taken(
    given: dict[str, bool], done: list[str], sent_at: float
) -> None:
    _, diary = play(37, given)
    assert diary.begun.keys() == {"order", *done, "send"}
    assert diary.begun["send"] == [sent_at]


@pytest.mark.parametrize(
    ("given", "before", "bakes"),
    [
        ({"rounds": 3, "spoilt": False, "gift": True}, "cake", 3),
        ({"rounds": 3, "spoilt": True, "gift": True}, "throw_away", 2),
        ({"rounds": 1, "spoilt": True, "gift": False}, "cake", 1),
    ],
)
def test_wcp38_the_merge_waits_until_the_loop_is_left_whichever_way(
    given: dict[str, Any], before: str, bakes: int
) -> None:
    _, diary = play(38, given)
    assert len([what for what in diary.begun if what.startswith("bake")]) == bakes
    assert diary.begun["send"] == [diary.ended[before]]
    assert ("wrap" in diary.begun) == given["gift"]


def test_wcp41_three_threads_run_through_the_same_nodes_and_what_follows_begins_once() -> None:
    result, diary = play(41)
    assert [diary.begun[f"enter {number}"][0] - diary.ended[f"check {number}"] for number in (1, 2, 3)] == [
        0,
        0,
        0,
    ]
    assert diary.begun["check 1"] == diary.begun["check 3"], "they do not wait for each other"
    assert (len(diary.begun["file"]), len(result.children)) == (1, 3)
    assert diary.begun["file"][0] >= max(diary.ended[f"enter {number}"] for number in (1, 2, 3))


def test_wcp42_three_threads_run_through_the_same_nodes_independently_of_each_other() -> None:
    result, diary = play(42)
    assert diary.begun["rate 1"][0] < diary.ended["read 3"]
    assert diary.order.count("receive") == 1
    assert (len(diary.begun), result.status) == (7, "completed")
