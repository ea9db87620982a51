"""Content-addressed blobs on S3, one object for each tenant and content.

The name of an object is the hash of its content, so an object never changes and a put can be repeated.
Which data becomes a blob is not decided here.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from baton.adapters.aws import Missing, translated
from baton.errors import CorruptLog

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SCHEME = "cas://sha256/"
_REF = re.compile(r"cas://sha256/([0-9a-f]{64})")


class S3Blobs:
    """`Blobs` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        # Not If-None-Match: putting it again mends an object that was damaged, and renews its age.
        with translated():
            self._client.put_object(Bucket=self._bucket, Key=_key(tenant, digest), Body=data)
        return _SCHEME + digest

    def get(self, tenant: str, ref: str) -> bytes:
        named = _REF.fullmatch(ref)
        if named is None:
            raise CorruptLog(f"not the reference of a blob: {ref[:100]!r}")
        try:
            with translated():
                answer = self._client.get_object(Bucket=self._bucket, Key=_key(tenant, named[1]))
                data = answer["Body"].read()
        except Missing as error:
            raise CorruptLog(f"blob {ref} is not there") from error
        if hashlib.sha256(data).hexdigest() != named[1]:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data


def _key(tenant: str, digest: str) -> str:
    return f"T/{tenant}/sha256/{digest}"
