"""Content-addressed blobs on S3, one object for each tenant and content.

The name of an object is the hash of its content, so an object never changes and a put can be repeated.
Which data becomes a blob is not decided here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from baton.adapters.aws import Missing, translated
from baton.errors import CorruptLog
from baton.ports.blobs import CAS, reference_of

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_REF = re.compile(CAS + "([0-9a-f]{64})(?:@(([0-9]+d)([0-9]+)))?")


class S3Blobs:
    """`Blobs` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        ref = reference_of(data, period)
        # Not If-None-Match: putting it again mends an object that was damaged, and renews its age.
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=_key(tenant, _parsed(ref)), Body=data)
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        parsed = _parsed(ref)
        try:
            with translated():
                answer = self._client.get_object(Bucket=self._bucket, Key=_key(tenant, parsed))
                data = answer["Body"].read()
        except Missing as error:
            raise CorruptLog(f"blob {ref} is not there") from error
        if reference_of(data, parsed[2] or "") != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data


def _parsed(ref: str) -> re.Match[str]:
    """Raises `CorruptLog`."""
    found = _REF.fullmatch(ref)
    if found is None:
        raise CorruptLog(f"not the reference of a blob: {ref[:100]!r}")
    return found


def _key(tenant: str, ref: re.Match[str]) -> str:
    """The name of the object. What is deleted after so many days begins with them: a lifecycle rule knows a prefix."""
    name = f"T/{tenant}/sha256/{ref[1]}"
    return f"{ref[3]}/{ref[4]}/{name}" if ref[2] else name
