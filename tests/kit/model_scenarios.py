"""The scenarios with models, those of what models are for, those with maps and one with a schedule: by their names, how each is driven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.kit import map_scenarios
from tests.kit.cancelling_a_child import called_off
from tests.kit.external_work import handed
from tests.kit.long_transcripts import forgets
from tests.kit.map_scenarios import OF_MAPS
from tests.kit.replanning import chosen, replans
from tests.kit.scheduled_workflow import ticked
from tests.kit.simulated_models import converses, delegates, ponders, surveys, thinks, watched

MODELLED: Mapping[str, Any] = {
    "handed": handed,
    "thinks": thinks,
    "ponders": ponders,
    "forgets": forgets,
    "watched": watched,
    "surveys": surveys,
    "delegates": delegates,
    "converses": converses,
    "replans": replans,
    "chosen": chosen,
    "called-off": called_off,
    **OF_MAPS,
    "ticked": ticked,
}

HASTY = map_scenarios.HASTY | {"converses"}
"""Scenarios whose steps depend on time."""
__all__ = ["HASTY", "MODELLED"]
