"""Schedules that were drawn once and broke a promise: by the engine, or by what the simulation itself expected.

`make test` runs every fifth of them, `make soak` all (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os

import pytest

from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, HANG, LATE, LOST, NO_ANSWER, STALL, THROTTLE
from tests.kit.process import HANGS, INDEX, REFUSES, Outage
from tests.kit.schedule import Schedule, trial

pytestmark = pytest.mark.simulation


def _died(**numbers: int) -> tuple[tuple[str, int, str], ...]:
    return tuple((name.partition("_")[0], number, CRASH_BEFORE) for name, number in numbers.items())


FOUND = {
    "a worker that can neither load a saga nor give it back has not died": Schedule(
        "mapped",
        333220000230,
        outages=(Outage(INDEX, REFUSES, 2, 182),),
        faults=(("read", 11, HANG),),
    ),
    "a poll has the time that it is given, and no outage is as long": Schedule(
        "polled",
        333220001591,
        outages=(Outage("s3", REFUSES, 10, 190),),
        faults=(("read", 54, CRASH_BEFORE),),
    ),
    "a person resumes what three deaths have parked, before its child is called off": Schedule(
        "called-off",
        332220003936,
        gap_s=3,
        faults=(*_died(write=16, read_a=2, read_b=17, read_c=54), ("read", 87, STALL)),
    ),
    "and before its worker has opened the child": Schedule(
        "called-off", 770000297, gap_s=20, faults=(("read", 14, STALL), *_died(read_a=21, read_b=34))
    ),
    "items that end while the store does not answer count together": Schedule(
        "raced", 910000908, faults=(("write", 8, THROTTLE), ("write", 9, NO_ANSWER), ("write", 11, LATE))
    ),
    "a worker that has ended a saga and cannot give it back says nothing behind the end": Schedule(
        "forked", 920002353, slow=(("append", 0.2),), outages=(Outage(INDEX, HANGS, 2, 62),), faults=()
    ),
    "the first entry is under no lease": Schedule(
        "parent",
        940002546,
        gap_s=20,
        faults=(*_died(write=16, read_a=5, read_b=33, read_c=39), ("read", 74, STALL)),
    ),
    "a saga that a node has ended early does not wait for its child": Schedule(
        "early-end",
        950000024,
        start_late_s=4,
        faults=(("write", 18, STALL), *_died(read_a=47, read_b=60, read_c=73), ("message", 1, LOST)),
    ),
    "a person who waits for a question waits for an hour": Schedule(
        "questions",
        950001457,
        outages=(Outage(INDEX, REFUSES, 2, 62),),
        faults=_died(read_a=20, read_b=22),
    ),
    "a request that is slow to end when its invocation does is counted": Schedule(
        "dollars",
        770004170,
        gap_s=60,
        late_s=9,
        stall_s=16,
        budget=12,
        outages=(Outage("sqs", HANGS, 2, 182),),
        faults=(
            ("write", 2, CRASH_BEFORE),
            ("write", 5, HANG),
            ("write", 20, THROTTLE),
            ("write", 26, STALL),
        ),
    ),
    "what the dead have asked models for is in the log although the next workers could not load the saga": Schedule(
        "tokens", 930002867, outages=(Outage("s3", HANGS, 10, 190),), faults=(("read", 13, STALL),)
    ),
    "and so it is where a stored text kept them from it": Schedule(
        "watched",
        960001391,
        start_late_s=4,
        outages=(Outage("s3", REFUSES, 10, 190),),
        faults=_died(read_a=74, read_b=79),
    ),
    "a worker that has read of a newer one in a read that failed appends nothing": Schedule(
        "finds-closed",
        970003101,
        stall_s=22,
        faults=(
            ("write", 12, FREEZE),
            *_died(read_a=8, read_b=34),
            ("read", 43, STALL),
            ("read", 46, HANG),
        ),
    ),
    "a worker whose word of a death comes late does not know that it has said it": Schedule(
        "snapshots",
        512070000370,
        slow=(("append", 0.2),),
        budget=3,
        faults=(("write", 9, CRASH_AFTER), ("write", 11, LATE)),
    ),
    "and neither does that of a child": Schedule(
        "kids",
        901330000699,
        slow=(("append", 0.2),),
        faults=(
            ("write", 16, LATE),
            ("write", 35, LATE),
            ("read", 31, CRASH_BEFORE),
            ("read", 46, STALL),
            ("read", 48, HANG),
        ),
    ),
    "an account that hears late from a worker that stood still has what its request can have cost": Schedule(
        "surveys",
        774190000157,
        gap_s=3,
        late_s=14,
        slow=(("append", 0.2),),
        faults=(
            ("write", 24, THROTTLE),
            ("write", 28, LATE),
            ("write", 31, STALL),
            ("read", 14, CRASH_BEFORE),
        ),
    ),
    "and so has one that is asked late by a worker that has died": Schedule(
        "ponders",
        512070003115,
        late_s=14,
        faults=(
            *(("write", 5, HANG), ("write", 10, NO_ANSWER), ("write", 31, LATE)),
            *_died(read_a=47, read_b=52),
            ("message", 4, LOST),
        ),
    ),
    "and so has one that is asked late twice": Schedule(
        "surveys", 774190003822, faults=(("write", 11, LATE), ("write", 14, LATE))
    ),
    "a worker whose word comes late while the table refuses the rest has not died": Schedule(
        "wired",
        901330002357,
        slow=(("append", 0.2),),
        outages=(Outage("dynamodb", REFUSES, 2, 10),),
        faults=(("write", 10, LATE),),
    ),
    "a worker that dies before its request, and whose death no worker tells of, has its day hold for it": Schedule(
        "surveys",
        774190005868,
        is_warm=True,
        gap_s=20,
        start_late_s=4,
        faults=(("read", 22, THROTTLE), ("read", 30, HANG), *_died(read_a=57, read_b=60)),
    ),
    "how many items have failed when a map ends depends on time": Schedule(
        "mapped", 512070002625, start_late_s=4, faults=(("write", 12, STALL),)
    ),
    "a person who has answered at once waits for an hour, too": Schedule(
        "asked",
        512070007772,
        start_late_s=4,
        faults=(("read", 26, HANG), ("read", 28, HANG), ("message", 3, LOST)),
    ),
    "an account holds what a worker that stood still asks for when another has taken over": Schedule(
        "surveys",
        774190005710,
        is_warm=True,
        slow=(("append", 0.2),),
        faults=(
            *(("write", 8, HANG), ("write", 12, FREEZE), ("write", 13, THROTTLE), ("write", 30, HANG)),
            *(("read", 18, CRASH_BEFORE), ("read", 47, HANG)),
        ),
    ),
    "a worker that neither the index lets go nor the table hears give up has not died": Schedule(
        "spenders",
        774190006358,
        start_late_s=4,
        outages=(Outage(INDEX, HANGS, 10, 190),),
        faults=(
            *(("write", 5, CRASH_AFTER), ("write", 18, NO_ANSWER), ("write", 21, HANG), ("write", 56, HANG)),
            ("read", 19, CRASH_BEFORE),
        ),
    ),
    "the log lacks what a worker has asked models for that had no answer to its last entry": Schedule(
        "dollars", 638170001537, faults=(("write", 8, HANG), ("write", 14, HANG))
    ),
    "a word of a death that lands late is not said again by the next worker, which had missed it": Schedule(
        "dollars",
        911030008684,
        faults=(
            *(("write", 2, CRASH_BEFORE), ("write", 26, STALL), ("write", 28, FREEZE)),
            *_died(read_a=21, read_b=30),
        ),
    ),
    "a worker that writes what an interrupted request may cost is not said to have left it once more": Schedule(
        "ponders",
        552190005463,
        is_warm=True,
        faults=(
            *(("write", 8, THROTTLE), ("write", 11, FREEZE), ("write", 32, STALL), ("write", 38, HANG)),
            *(("read", 15, CRASH_BEFORE), ("read", 38, HANG), ("read", 51, THROTTLE), ("read", 57, HANG)),
            ("read", 63, CRASH_BEFORE),
        ),
    ),
    "nor one that writes what a request in the background may cost": Schedule(
        "ponders",
        959170015722,
        gap_s=60,
        late_s=9,
        stall_s=16,
        start_late_s=4,
        budget=12,
        outages=(Outage("dynamodb", REFUSES, 2, 62),),
        faults=(("write", 9, THROTTLE), ("write", 15, HANG), ("write", 17, FREEZE)),
    ),
    "a worker that leaves takes back what it has asked for over a mark, and had no answer to": Schedule(
        "thinks",
        310130016974,
        gap_s=60,
        late_s=9,
        stall_s=16,
        budget=3,
        faults=(("write", 12, THROTTLE), ("write", 21, LATE)),
    ),
    "nor where a signal has come before its heir": Schedule(
        "forgets",
        400090003575,
        late_s=30,
        stall_s=22,
        start_late_s=4,
        budget=3,
        faults=(("write", 27, LATE), ("write", 30, FREEZE), ("write", 31, CRASH_AFTER)),
    ),
    "a worker whose entry lands late, and whose heir died without one, is asked what it holds": Schedule(
        "dollars",
        800210005824,
        skew_ms=1000,
        gap_s=3,
        stall_s=22,
        faults=(
            *(("write", 3, LATE), ("write", 11, FREEZE), ("read", 113, CRASH_BEFORE)),
            *(("read", 129, CRASH_BEFORE), ("read", 162, CRASH_BEFORE), ("read", 192, CRASH_BEFORE)),
            ("message", 1, LATE),
        ),
    ),
    "a person leaves an inverse in doubt as it is, where no person of the scenario answers": Schedule(
        "just-in-time",
        610010003501,
        gap_s=20,
        faults=(
            *(
                ("write", 19, LATE),
                ("write", 36, CRASH_AFTER),
                ("write", 69, LATE),
                ("write", 71, CRASH_AFTER),
            ),
            *(("read", 19, CRASH_BEFORE), ("read", 63, CRASH_BEFORE), ("read", 98, STALL)),
        ),
    ),
    "the log has the rest of what an account holds for an interrupted request, and not nothing of it": Schedule(
        "thinks",
        713170014297,
        budget=3,
        outages=(Outage(INDEX, HANGS, 2, 62),),
        faults=(("write", 21, FREEZE),),
    ),
    "so it is where an answer to the account is late": Schedule(
        "chosen",
        713170001954,
        skew_ms=3000,
        gap_s=20,
        outages=(Outage("sqs", REFUSES, 10, 18),),
        faults=(
            *(("write", 6, HANG), ("write", 8, FREEZE), ("write", 29, NO_ANSWER), ("write", 33, STALL)),
            ("read", 58, STALL),
        ),
    ),
    "an account that was silent twice to a worker has the most that its request can have cost": Schedule(
        "surveys",
        606110000755,
        faults=(("write", 9, STALL), ("write", 15, FREEZE), ("write", 35, HANG), ("write", 37, HANG)),
    ),
    "an account holds for three requests of a worker that has died with the first": Schedule(
        "surveys",
        1010090000474,
        start_late_s=4,
        faults=(("write", 10, HANG), ("read", 2, THROTTLE), *_died(read_a=32, read_b=35)),
    ),
    "a worker of the release before has all its time for giving back a saga of the newer one": Schedule(
        "just-in-time",
        1020130000152,
        rolls_s=120,
        start_late_s=4,
        faults=(
            *(("write", 1, HANG), ("write", 21, HANG), ("write", 31, STALL), ("write", 32, FREEZE)),
            *(("read", 12, CRASH_BEFORE), ("read", 19, STALL), ("read", 24, CRASH_BEFORE)),
            *(("read", 49, THROTTLE), ("read", 74, HANG)),
        ),
    ),
    "an account is silent from a worker's last cost until its time is over": Schedule(
        "tenants",
        1210010005045,
        gap_s=60,
        late_s=9,
        stall_s=16,
        slow=(("release", 0.04),),
        budget=12,
        outages=(Outage("index", HANGS, 10, 18),),
        faults=(
            *(("write", 40, LATE), ("write", 67, HANG), ("read", 79, HANG)),
            *(("read", at, CRASH_BEFORE) for at in (12, 49, 72, 86, 88, 99)),
        ),
    ),
    "an account is silent until a worker ends, and that of its places is not": Schedule(
        "chosen",
        2060210001988,
        slow=(("append", 0.2),),
        faults=(
            ("write", 16, NO_ANSWER),
            ("write", 31, HANG),
            ("write", 33, THROTTLE),
            ("write", 39, THROTTLE),
        ),
    ),
    "a worker of an older release comes after one that died and had written nothing": Schedule(
        "surveys",
        2140030006877,
        is_warm=True,
        rolls_s=120,
        budget=3,
        faults=(("write", 8, CRASH_BEFORE), ("read", 26, HANG), ("read", 43, CRASH_BEFORE)),
    ),
    "steps ran ahead of an entry that is refused, and a function has gone on with them": Schedule(
        "members",
        2200070000502,
        skew_ms=3_000,
        is_warm=True,
        faults=(
            *(("write", 9, CRASH_BEFORE), ("write", 13, THROTTLE), ("write", 15, THROTTLE)),
            *(("write", 22, LATE), ("read", 37, CRASH_BEFORE)),
        ),
    ),
    "an entry with a unit lands behind the worker that does the unit again": Schedule(
        "journalled", 2180090001907, late_s=6, budget=3, faults=(("write", 11, LATE), ("write", 12, LATE))
    ),
    "the store is out of order longer than between two signs of life": Schedule(
        "promises", 2110010006123, faults=(), outages=(Outage("dynamodb", HANGS, 2, 62),)
    ),
    "a worker has the answer to the request of another, and an account is silent until it ends": Schedule(
        "forgets",
        2120030003388,
        skew_ms=3_000,
        is_warm=False,
        gap_s=20,
        slow=(("append", 0.2),),
        faults=(
            *(
                ("write", 2, THROTTLE),
                ("write", 3, NO_ANSWER),
                ("write", 7, CRASH_AFTER),
                ("write", 31, HANG),
            ),
            *(("read", at, CRASH_BEFORE) for at in (8, 10, 25)),
            *(("read", 33, THROTTLE), ("read", 59, HANG)),
        ),
    ),
    "an answer lands behind a worker that has read the log, and then waits for an account": Schedule(
        "surveys",
        2030110002319,
        faults=(("write", 21, LATE), ("write", 22, LATE), ("read", 20, CRASH_BEFORE), ("read", 33, HANG)),
    ),
    "a worker of the release before hears nothing from the table until its time is over": Schedule(
        "routes",
        2020030005139,
        gap_s=3,
        rolls_s=120,
        slow=(("append", 0.2),),
        budget=12,
        faults=(("write", 5, CRASH_AFTER), ("read", 43, HANG)),
    ),
    "a child that its parent goes on without may be done before it is asked to stop": Schedule(
        "routes",
        1150410001817,
        faults=(("read", 29, THROTTLE), *_died(read_a=31, read_b=33, read_c=37, read_d=45)),
    ),
    "a child that is made cancelled has no step that a dead worker may have begun": Schedule(
        "too-late",
        606110009376,
        skew_ms=3000,
        gap_s=20,
        faults=(
            *(("write", 6, CRASH_BEFORE), ("write", 30, STALL), ("read", 5, CRASH_BEFORE)),
            *(("read", 24, CRASH_BEFORE), ("read", 28, STALL), ("read", 50, CRASH_BEFORE)),
        ),
    ),
    # A saga that was resumed loses its message while the table refuses takes: a sweep finds it.
    "a resumed saga without a message": Schedule(
        "purse",
        729310013024,
        gap_s=60,
        late_s=9,
        stall_s=16,
        budget=0,
        outages=(Outage("index", HANGS, 2, 182),),
    ),
    # A tool without a declared cost has spent something when the table does not answer.
    "a cost before a fault": Schedule(
        "asked",
        118070009623,
        gap_s=60,
        late_s=9,
        stall_s=16,
        budget=3,
        faults=(("write", 1, THROTTLE), ("write", 2, THROTTLE), ("write", 11, HANG)),
    ),
    # Three workers die in a row before the saga has come to its end, which is forked: a person resumes it.
    "a fork of what was parked": Schedule(
        "forked",
        207530003552,
        gap_s=20,
        late_s=9,
        stall_s=16,
        budget=12,
        faults=(
            *(("write", 8, LATE), ("write", 12, FREEZE), ("read", 11, CRASH_BEFORE)),
            *(("read", 17, CRASH_BEFORE), ("read", 26, STALL)),
        ),
    ),
    # An account does not answer what is settled last, and the day keeps the most (docs/money.md).
    "a settlement without an answer": Schedule(
        "thinks",
        207530005451,
        gap_s=60,
        late_s=9,
        stall_s=16,
        slow=(("append", 0.2),),
        budget=12,
        outages=(Outage("index", REFUSES, 10, 18),),
        faults=(("write", 28, HANG), ("message", 1, LATE)),
    ),
    "two days that nothing spends": Schedule(
        "tenants",
        770690001420,
        gap_s=60,
        late_s=9,
        stall_s=16,
        budget=12,
        faults=(
            *(("write", 10, LATE), ("write", 22, CRASH_BEFORE), ("write", 25, CRASH_AFTER)),
            *(("write", 52, LATE), ("write", 53, HANG), ("write", 84, LATE)),
            *(("read", 3, CRASH_BEFORE), ("read", 18, THROTTLE)),
        ),
    ),
    "a settlement that lands too late": Schedule(
        "surveys",
        770690004791,
        gap_s=60,
        late_s=9,
        stall_s=16,
        slow=(("append", 0.2),),
        budget=12,
        outages=(Outage("index", REFUSES, 2, 182),),
        faults=(("write", 11, LATE),),
    ),
    # An heir has no answer about what the dead worker held, and assumes nothing of it (docs/money.md).
    "an heir without an answer": Schedule(
        "surveys",
        409270001641,
        gap_s=3,
        late_s=9,
        stall_s=16,
        start_late_s=4,
        budget=12,
        faults=(("write", 12, CRASH_BEFORE), ("write", 15, HANG), ("write", 18, HANG)),
    ),
    # It stands still while it tells an account of such a cost, and is stopped then.
    "a cost that is told of once": Schedule(
        "asked", 409270005564, gap_s=60, late_s=9, stall_s=16, budget=12, faults=(("write", 10, FREEZE),)
    ),
    # The heir of a worker that stood still has taken its request for spent, and comes to write nothing.
    "a worker that wakes up behind its heir": Schedule(
        "thinks",
        486190010483,
        is_warm=True,
        gap_s=3,
        late_s=9,
        stall_s=16,
        budget=12,
        faults=(
            *(("write", 14, HANG), ("write", 20, FREEZE), ("write", 30, FREEZE), ("read", 30, CRASH_BEFORE)),
            *(("read", number, CRASH_BEFORE) for number in (88, 111, 136, 169)),
            ("read", 222, HANG),
        ),
    ),
    # What a dead invocation has drawn of a tenant's day keeps others waiting until that is over.
    "a day that nothing spends": Schedule(
        "tenants",
        331070002669,
        gap_s=60,
        late_s=9,
        stall_s=16,
        slow=(("append", 0.2),),
        budget=12,
        faults=(
            *(("write", 56, HANG), ("write", 63, THROTTLE), ("write", 78, CRASH_AFTER)),
            *(("read", 46, STALL), ("message", 2, LATE)),
        ),
    ),
    # What was cut off is settled, and its worker dies before the log has it (docs/money.md).
    "a late entry and a worker that stands still": Schedule(
        "dollars",
        606110008669,
        budget=3,
        faults=(("write", 6, CRASH_AFTER), ("write", 8, LATE), ("write", 16, STALL)),
    ),
    "a late take and a death": Schedule(
        "tokens", 240970008173, faults=(("write", 7, LATE), ("write", 14, CRASH_BEFORE))
    ),
    # The bucket hangs when a worker reads the graph that its saga was moved to meanwhile, and then it records what it has done.
    "a changed graph that cannot be loaded": Schedule(
        "migrated",
        2299000006036,
        faults=(("write", 11, NO_ANSWER), *(("read", read, HANG) for read in (1, 26, 39))),
    ),
    # The entry that it puts again is there; so are those of its heir, and it would ask a model once more.
    "a clock that stands still while an entry is put again": Schedule(
        "dollars", 2299000008419, faults=(("write", 28, NO_ANSWER), ("write", 29, FREEZE))
    ),
}


SOME = [*FOUND][:: 1 if os.environ.get("BATON_CRASH_POINTS") else 5]


@pytest.mark.parametrize("what", SOME)
def test_it_breaks_none_any_more(what: str) -> None:
    found = trial(FOUND[what])
    assert found.broken == ()
