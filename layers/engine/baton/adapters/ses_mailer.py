"""`Mailer` by Amazon SES. What is sent to whom, and that it is sent once, is decided elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from baton.adapters.aws import translated
from baton.ports.outside import Letter

if TYPE_CHECKING:
    from mypy_boto3_sesv2 import SESV2Client
    from mypy_boto3_sesv2.type_defs import BodyTypeDef


class SesMailer:
    """`Mailer` of one account and region."""

    def __init__(self, client: SESV2Client) -> None:
        self._client = client

    def send(self, letter: Letter) -> str:
        body: BodyTypeDef = {"Text": {"Data": letter.text, "Charset": "UTF-8"}}
        if letter.html:
            body["Html"] = {"Data": letter.html, "Charset": "UTF-8"}
        with translated():
            answer = self._client.send_email(
                FromEmailAddress=letter.sender,
                Destination={"ToAddresses": [letter.to]},
                Content={
                    "Simple": {
                        "Subject": {"Data": letter.subject, "Charset": "UTF-8"},
                        "Body": body,
                        "Headers": [{"Name": name, "Value": value} for name, value in letter.headers.items()],
                    }
                },
            )
        return answer["MessageId"]
