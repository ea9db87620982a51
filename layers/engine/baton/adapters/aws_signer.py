"""Headers that sign a request with the caller's AWS credentials:
Signature Version 4, as API Gateway and Bedrock want it.

Finds credentials and region as every AWS tool finds them. Beside aws.py the only
file of this room that imports botocore. No HTTP: the caller sends the request.
"""

from __future__ import annotations

from collections.abc import Mapping

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from baton.errors import Unauthenticated

SERVICE = "execute-api"
# What intermediaries leave alone and a request means something else without.
_SIGNED = frozenset({"content-type", "idempotency-key"})


class Signer:
    """Signer of one caller's requests to one region. Credentials that can expire are renewed when they do."""

    def __init__(self, region: str = "", service: str = SERVICE) -> None:
        """Sign for `region`, empty: that of the environment or profile. Raises `Unauthenticated`."""
        self._service = service
        try:
            session = Session()
            # What the shell says of a session of this process is the shell's business: AWS_PROFILE and the
            # rest of the ordinary chain, SSO and roles included.
            found = session.get_credentials()
            self._region = region or session.get_config_variable("region") or ""
        except (BotoCoreError, ClientError) as error:
            raise Unauthenticated(f"AWS credentials cannot be read: {error}") from error
        if found is None:
            raise Unauthenticated("no AWS credentials were found")
        self._credentials = found
        if not self._region:
            raise Unauthenticated("the AWS region is not known: set AWS_REGION")

    def __call__(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers to add to this request, secrets among them. Raises `Unauthenticated`."""
        signed = {name: value for name, value in headers.items() if name.lower() in _SIGNED}
        request = AWSRequest(method, url, headers=signed, data=body)
        try:
            frozen = self._credentials.get_frozen_credentials()
        except (
            BotoCoreError,
            ClientError,
            RuntimeError,
        ) as error:  # RuntimeError: renewed, and expired still
            raise Unauthenticated(f"the AWS credentials cannot be used: {error}") from error
        SigV4Auth(frozen, self._service, self._region).add_auth(request)
        return {name: value for name, value in request.headers.items() if name.lower() not in _SIGNED}
