"""What every function does with its log."""

from __future__ import annotations

import logging

import pytest

from baton.adapters.discreet import SecretFilter
from baton.settings import FUNCTIONS
from baton.tools.output import StepFilter
from tests.handlers.deployment import Deployment

PARAMETERS = {"AppModule": "tests.kit.app.trial"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_log_of_a_function_is_without_secrets(function: str, deployment: Deployment) -> None:
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    try:
        with deployment.function(function):
            of_tools = [StepFilter] if function == "worker" else []
            assert [type(known) for known in handler.filters] == [SecretFilter, *of_tools]
    finally:
        logging.getLogger().removeHandler(handler)
