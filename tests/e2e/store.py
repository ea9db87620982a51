"""Table, bucket and queues on MiniStack, and the engine over its real adapters, in the tests' own process.

Building, running one invocation, looking; what must hold is in the tests.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from msgspec.structs import replace as replaced

from baton import wiring
from baton.adapters.aws import Aws
from baton.core.events import Entry, Event, decode_entry
from baton.ports import Clock, Head, SagaRef
from baton.runtime.lease import Invocation
from baton.runtime.parts import Engine
from baton.runtime.service import Caller, Service
from baton.runtime.worker import Delivery, Worker
from tests.kit.app.books import VARIABLE, Books
from tests.kit.table import create_table

TENANT = "acme"
REGION = "eu-central-1"
_numbers = itertools.count(1)
