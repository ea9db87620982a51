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

_REF = re.compile(CAS + "([0-9a-f]{64})")


class S3Blobs:
    """`Blobs` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, data: bytes) -> str:
        ref = reference_of(data)
        # Not If-None-Match: putting it again mends an object that was damaged, and renews its age.
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=_key(tenant, ref), Body=data)
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        if _REF.fullmatch(ref) is None:
            raise CorruptLog(f"not the reference of a blob: {ref[:100]!r}")
        try:
            with translated():
                answer = self._client.get_object(Bucket=self._bucket, Key=_key(tenant, ref))
                data = answer["Body"].read()
        except Missing as error:
            raise CorruptLog(f"blob {ref} is not there") from error
        if reference_of(data) != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data


def _key(tenant: str, ref: str) -> str:
    return f"T/{tenant}/sha256/{ref.removeprefix(CAS)}"
