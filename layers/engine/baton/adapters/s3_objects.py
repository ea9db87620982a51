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

_BY = "key"  # in the metadata of an object, that of the call that has written it


class S3Objects:
    """`Objects` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        place = _key(tenant, name, digest)
        try:
            with translated():
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=place,
                    Body=data,
                    ContentType=content_type,
                    IfNoneMatch="*",
                    Metadata={_BY: key} if key else {},
                )
            is_new = True
        except ConditionFailed:
            is_new = bool(key) and self._writer_of(place) == key
        return StoredObject(ref=f"s3://{self._bucket}/{place}", sha256=digest, size=len(data), is_new=is_new)

    def _writer_of(self, place: str) -> str:
        """The key of the call that has written an object; empty where it has none, or is gone."""
        try:
            with translated():
                return self._client.head_object(Bucket=self._bucket, Key=place)["Metadata"].get(_BY, "")
        except Missing:
            return ""

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
