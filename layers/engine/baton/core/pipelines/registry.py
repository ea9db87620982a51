"""All primitives, by name: the one list."""

from __future__ import annotations

from collections.abc import Mapping

from baton.core.pipelines.base import Primitive
from baton.core.pipelines.filters import FILTER
from baton.core.pipelines.groups import GROUPBY
from baton.core.pipelines.joins import JOIN
from baton.core.pipelines.requests import REQUEST
from baton.core.pipelines.tables import SELECT, SORT, TOP_K
from baton.core.pipelines.texts import DATE, EXTRACT
from baton.core.pipelines.transform import TRANSFORM

PRIMITIVES: Mapping[str, Primitive] = {
    one.op: one for one in (REQUEST, SORT, FILTER, SELECT, TOP_K, GROUPBY, JOIN, TRANSFORM, EXTRACT, DATE)
}
