"""How botocore reads its descriptions of the services: without looking through the four hundred it brings.

What makes a client cheap to create, and why it may. The clients are in aws.py.
"""

from __future__ import annotations

import gc
import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import msgspec
from botocore.loaders import JSONFileLoader, Loader

# How a file's forms are named and unpacked, in botocore's order.
_FORMS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {".json": bytes, ".json.gz": gzip.decompress}
)


class _Files(JSONFileLoader):
    """The same data as botocore's own, parsed in a quarter of the time: ordinary dicts keep their order."""

    def load_file(self, file_path: str) -> object:
        for suffix, unpack in _FORMS.items():
            try:
                data = Path(file_path + suffix).read_bytes()
            except FileNotFoundError:
                continue
            return msgspec.json.decode(unpack(data))
        return None


class Models(Loader):
    """Knows the services it is made for, and finds their descriptions where botocore's own loader does.

    That one lists the folder of every service there is, twice, to find out whether one of them exists.
    """

    def __init__(self, *services: str) -> None:
        super().__init__(file_loader=_Files())
        self._services = sorted(services)

    def list_available_services(self, type_name: str) -> list[str]:
        return self._services


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps the garbage collector still: a description is ten thousand objects that all stay.

    With the collector on, it looks at them again and again while they become more.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
