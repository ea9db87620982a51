"""The tables of scale.md, made by the model in benchmarks/: what gives way first, what one sets, what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from benchmarks import asking, quotas, scale
from benchmarks.ceilings import Ceiling, Load, Setup, ceilings, of_one_user
from benchmarks.counts import TABLE_ITSELF, Use, counted
from benchmarks.figures import Figure
from benchmarks.quotas import ACCOUNT
from benchmarks.scale import LOADS, TIGHT, Waiting
from docs.settings_table import template


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(header), *map(list, rows)]
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def _n(value: float) -> str:
    """A number with three digits that count."""
    if value == float("inf"):
        return "—"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _usd(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def scale_counts() -> str:
    """What the engine itself does, as counted."""
    counts = counted()
    rows: list[tuple[str, Use]] = [
        ("a saga without its steps: start, one invocation, end", counts.saga),
        ("each step", counts.step),
        ("each further invocation", counts.further),
        ("a look at a saga that waits", counts.look),
    ]
    indexes = ("DueIndex", "StatusIndex")
    return _table(
        ("what", "write units", "of them the table", *indexes, "read units", "wakes in the stream"),
        (
            (
                what,
                _n(use.units),
                *(_n(use.writes.get(name, 0)) for name in (TABLE_ITSELF, *indexes)),
                _n(use.reads),
                _n(use.relayed),
            )
            for what, use in rows
        ),
    )


def scale_goals() -> str:
    """What was aimed at, and what the model says."""
    found = scale.measure()
    rows = [
        (
            figure.name,
            f"{'≤' if figure.at_most else '≥'} {_n(figure.target)} {figure.unit}",
            _n(round(found[key], 1)),
            _met(figure, found[key]),
        )
        for key, figure in scale.BENCH.figures.items()
        if figure.target is not None and not key.startswith("set ")
    ]
    return _table(("goal", "", "the model says", ""), rows)


def _met(figure: Figure, value: float) -> str:
    assert figure.target is not None
    is_met = value <= figure.target if figure.at_most else value >= figure.target
    return (
        "met"
        if is_met
        else f"missed by a factor of {_n(max(value, figure.target) / min(value, figure.target))}"
    )


def scale_first() -> str:
    """What gives way on the way to a load, with the defaults."""
    counts = counted()
    rows = []
    for starts in LOADS:
        below = [one for one in ceilings(Load(starts), Setup(), counts) if one.per_s < starts]
        rows.append((f"{starts:,} starts/s", ", ".join(f"{one.what} at {_n(one.per_s)}" for one in below)))
    return _table(("load", "what gives way with the defaults, in this order"), rows)


def scale_ceilings() -> str:
    """All ceilings: with the defaults, and with the parameters for the greatest load."""
    counts, load = counted(), Load(LOADS[-1])
    setup = scale.setup_for(load, counts)
    raised = {one.what: one.per_s for one in ceilings(load, setup, counts)}
    return _table(
        ("ceiling, starts/s", "defaults", f"set for {LOADS[-1]:,}", "it is", "raised by"),
        (
            (one.what, _n(one.per_s), _n(raised[one.what]), one.holds_for, _raised_by(one))
            for one in ceilings(load, Setup(), counts)
        ),
    )


def _raised_by(ceiling: Ceiling) -> str:
    return ", ".join(_raising(ceiling)) or "more workflows, or cells"


def _raising(ceiling: Ceiling) -> list[str]:
    names = [f"`{name}`" for name in ceiling.raise_by if name in template()["Parameters"]]
    return names + ["Service Quotas"] * (ceiling.holds_for == ACCOUNT)


def scale_settings() -> str:
    """What one sets for each load."""
    counts = counted()
    setups = [scale.setup_for(Load(starts), counts) for starts in LOADS]
    parameters = [name for name in template()["Parameters"] if any(name in setup.given for setup in setups)]
    raised = [
        one
        for one in quotas.QUOTAS
        if one.holds_for == ACCOUNT and any(one.what in setup.raised for setup in setups)
    ]
    rows = [
        (
            f"`{name}`",
            _n(Setup()[name]),
            *(_n(setup[name]) if name in setup.given else "" for setup in setups),
        )
        for name in parameters
    ]
    rows += [
        (
            f"*quota:* {one.what}, {one.unit}",
            _n(one.value),
            *(_n(setup.quota(one)) if one.what in setup.raised else "" for setup in setups),
        )
        for one in raised
    ]
    if "ApiRateLimit" in parameters:
        most = float(template()["Parameters"]["ApiBurstLimit"]["MaxValue"])
        bursts = [min(most, 2 * setup["ApiRateLimit"]) for setup in setups]
        rows.insert(
            parameters.index("ApiRateLimit") + 1,
            (
                "`ApiBurstLimit`",
                _n(Setup()["ApiBurstLimit"]),
                *(_n(burst) if burst > Setup()["ApiBurstLimit"] else "" for burst in bursts),
            ),
        )
    rows.append(
        (
            "each start, and each further invocation, later by at most",
            f"{Setup()['WakeWindow']:g} s",
            *(f"{setup['WakeWindow']:g} s" for setup in setups),
        )
    )
    rows.append(
        (
            "minutes until the queue's workers have grown to it",
            "",
            *(f"{scale.grown_s(Load(s), setup) / 60:.1f}" for s, setup in zip(LOADS, setups, strict=True)),
        )
    )
    rows.append(
        (
            "**what gives way first then**",
            "",
            *(_first(Load(starts), setup) for starts, setup in zip(LOADS, setups, strict=True)),
        )
    )
    return _table(("", "default", *(f"{starts:,} starts/s" for starts in LOADS)), rows)


def _first(load: Load, setup: Setup) -> str:
    one = scale.first(load, setup, counted())
    return f"{one.what}, at {_n(one.per_s)}"


def scale_cost() -> str:
    """What a day costs, by item."""
    counts = counted()
    days = []
    for starts in LOADS:
        load = Load(starts)
        setup = scale.setup_for(load, counts)
        days.append(scale.a_day(load, replace(setup, given={**setup.given, **TIGHT}), counts))
    rows = [(item, *(_usd(day[item]) for day in days)) for item in days[0]]
    rows.append(("**together**", *(f"**{_usd(sum(day.values()))}**" for day in days)))
    defaults = [scale.a_day(Load(starts), scale.setup_for(Load(starts), counts), counts) for starts in LOADS]
    rows.append(
        (
            f"storage, kept for {_n(scale.kept_days(Setup()))} days, as by default",
            *(_usd(day["storage"]) for day in defaults),
        )
    )
    busy = []
    for starts in LOADS:
        load, setup = Load(starts), scale.setup_for(Load(starts), counts)
        busy.append(scale.a_day(load, setup, counts, scale.least_sharing(load, setup)))
    rows.append(
        (
            "Lambda's time, with all of `WorkerConcurrency` busy all day",
            *(_usd(day["Lambda's time"]) for day in busy),
        )
    )
    rows.append(
        ("stored in a day, TB", *(f"{scale.stored_gb(Load(starts), counts) / 1_000:.2g}" for starts in LOADS))
    )
    return _table(("dollars a day", *(f"{starts:,} starts/s" for starts in LOADS)), rows)


def scale_money() -> str:
    """How many sagas of one user that spend in each step can be started."""
    loads = [Load(step_s=step_s, is_spending=True) for step_s in (1.0, 10.0, 30.0)]
    return _table(
        ("sagas of one user, each step costs", "attempts/s", "starts/s"),
        (
            (f"10 steps of {load.step_s:g} s", _n(round(load.steps * most)), _n(most))
            for load in loads
            for most in [of_one_user(load, Setup())]
        ),
    )


def scale_asked() -> str:
    """How many questions a second people can be asked."""
    of = asking.counted()
    setup = scale.setup_for(Load(LOADS[-1]), counted())
    raised = {one.what: one.per_s for one in asking.ceilings(setup, of)}
    rows = [
        (one.what, _n(one.per_s), _n(raised[one.what]), one.holds_for, ", ".join(_raising(one)) or "–")
        for one in asking.ceilings(Setup(), of)
    ]
    pages = _n(asking.pages_per_s())
    rows.append(("full pages of the list of one of them", pages, pages, quotas.AWS, "–"))
    header = ("ceiling, questions/s", "defaults", f"set for {LOADS[-1]:,} starts/s", "it is", "raised by")
    return _table(header, rows)


def scale_waiting() -> str:
    """What looks at waiting sagas come to."""
    counts = counted()
    rows = []
    for waiting in (Waiting(1e6, 1), Waiting(100e6, 1), Waiting(1e6, 30), Waiting(100e6, 30)):
        for name, setup in (("defaults", Setup()), ("two days, then up to a week", scale.CALM)):
            day = scale.waiting_a_day(waiting, setup, counts)
            per_s = scale.looks_per_s(waiting, setup)
            rows.append(
                (
                    f"{waiting.sagas / 1e6:,.0f} M, {waiting.days:g} day{'s' * (waiting.days != 1)} each",
                    name,
                    f"{scale.looks(setup, waiting.days)}",
                    _n(per_s),
                    _percent(per_s / setup.wakes_per_s),
                    f"{per_s * counts.look.hottest('DueIndex') / setup['Shards']:,.0f}",
                    _usd(sum(day.values())),
                )
            )
    return _table(
        (
            "waiting",
            "sweeps",
            "looks each",
            "looks/s",
            f"of what the reconciler wakes with {_n(Setup()['Shards'])} shards",
            "write units/s of a shard, of 1,000",
            "$ a day",
        ),
        rows,
    )


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %") if share >= 0.1 else f"{100 * share:.1g} %"


def scale_outage() -> str:
    """What an hour without the relay comes to."""
    counts = counted()
    setups = [(Load(starts), scale.setup_for(Load(starts), counts)) for starts in LOADS]
    found = [scale.outage(load, setup, counts, 60) for load, setup in setups]
    rows = [
        ("the reconciler can wake, a second", [_n(setup.wakes_per_s) for _, setup in setups]),
        ("and there are workers for", [_n(one.woken_per_s) for one in found]),
        ("a saga begins later by", [f"{one.late_s:g} s" for one in found]),
        ("not begun when the hour is over", [_n(one.behind) for one in found]),
        ("**all have begun after**", [f"**{_minutes(one.over_s)}**" for one in found]),
        ("the queue is rid of old wakes after", [_minutes(one.stale_s) for one in found]),
        (
            "Lambda's quota with which none is left over",
            [_n(scale.quota_for_outage(load)) for load, _ in setups],
        ),
        (
            "all have begun, had the reconciler been out as well, after",
            [_minutes(scale.backlog_s(load, setup, load.starts * 3_600)) for load, setup in setups],
        ),
    ]
    header = ("an hour without the relay", *(f"{starts:,} starts/s" for starts in LOADS))
    return _table(header, ((what, *cells) for what, cells in rows))


def _minutes(seconds: float) -> str:
    return "never" if seconds == float("inf") else f"{seconds / 60:,.0f} min"


def scale_quotas() -> str:
    """Every figure of AWS's that the model uses."""
    return _table(
        ("what", "value", "unit", "it is of", "seen"),
        (
            (
                f"[{one.what}]({one.page})",
                _n(one.value) if one.value >= 1 else f"{one.value:g}",
                one.unit,
                one.holds_for,
                one.confirmed,
            )
            for one in quotas.QUOTAS
        ),
    )
