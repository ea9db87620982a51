"""Blobs and named objects on S3."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from baton.adapters.aws import ConditionFailed, Missing, translated
from baton.errors import CorruptLog
from baton.ports.log import CAS, reference_of
from baton.ports.outside import StoredObject

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
    """Parse a reference. Raises `CorruptLog`."""
    found = _REF.fullmatch(ref)
    if found is None:
        raise CorruptLog(f"not the reference of a blob: {ref[:100]!r}")
    return found


def _key(tenant: str, ref: re.Match[str]) -> str:
    """Return the key of the object. It begins with its days, for which there is a lifecycle rule."""
    name = f"T/{tenant}/sha256/{ref[1]}"
    return f"{ref[3]}/{ref[4]}/{name}" if ref[2] else name


_BY = "key"  # in the metadata of an object, that of the call that has written it


class S3Objects:
    """`Objects` in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        place = _object_key(tenant, name, digest)
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
        """Return the idempotency key of the call that wrote an object; empty without one."""
        try:
            with translated():
                return self._client.head_object(Bucket=self._bucket, Key=place)["Metadata"].get(_BY, "")
        except Missing:
            return ""

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        try:
            with translated():
                answer = self._client.get_object(Bucket=self._bucket, Key=_object_key(tenant, name, sha256))
                return answer["Body"].read()
        except Missing:
            return None

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        with translated():
            self._client.delete_object(Bucket=self._bucket, Key=_object_key(tenant, name, sha256))


def _object_key(tenant: str, name: str, digest: str) -> str:
    return f"T/{tenant}/objects/{name}.{digest}"
