"""`Objects` on S3: named bytes under their tenant's prefix, put only if they are not there.

The names of objects end with the hash of their content, so none ever changes. Blobs of the log are in s3_blobs.py.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from baton.adapters.aws import ConditionFailed, Missing, translated
from baton.ports.outside import StoredObject

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class S3Objects:
    """`Objects` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, name: str, data: bytes, content_type: str) -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        key = _key(tenant, name, digest)
        is_new = True
        try:
            with translated():
                self._client.put_object(
                    Bucket=self._bucket, Key=key, Body=data, ContentType=content_type, IfNoneMatch="*"
                )
        except ConditionFailed:
            is_new = False
        return StoredObject(ref=f"s3://{self._bucket}/{key}", sha256=digest, size=len(data), is_new=is_new)

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        try:
            with translated():
                answer = self._client.get_object(Bucket=self._bucket, Key=_key(tenant, name, sha256))
                return answer["Body"].read()
        except Missing:
            return None

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        with translated():
            self._client.delete_object(Bucket=self._bucket, Key=_key(tenant, name, sha256))


def _key(tenant: str, name: str, digest: str) -> str:
    return f"T/{tenant}/objects/{name}.{digest}"
