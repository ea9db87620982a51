"""No secret survives, whatever it is and wherever it stands; everything else does."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import product
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from baton.core.failures import quoted, sanitised
from baton.core.failures.secret_names import REDACTED
from tests.core.build import MORE, PROPERTY
from tests.kit.leaks import HARMLESS, LEAKS
from tests.kit.secrets import HEX, SHAPED

SURROUNDINGS = (
    "{}",
    "the service said: {} is not valid",
    '{{"detail": "bad: {}"}}',
    "a,{},b",
    "x=({})\n",
    "GET /v1?q={}&n=1",
)

NAMED = {
    "a word": "hunter2",
    "with signs": "p@ss,w0rd!#x",
    "digits": "48151623",
    "hexadecimal": HEX,
    "base64": "c2VjcmV0LXZhbHVl==",
    "a uuid": "550e8400-e29b-41d4-a716-446655440000",
}
NAMES = ("password", "DB_PASSWORD", "PGPASSWORD", "clientSecret", "x-api-key", "apikey", "AccountKey", "access_token", "AWS_SECRET_ACCESS_KEY", "refreshToken", "private_key", "session_id", "otp")  # fmt: skip
PLACES = (
    "{name}={secret}",
    "failed with {name}={secret} on db-7",
    "{name}: {secret}",
    '{{"user": "ann", "{name}": "{secret}", "n": 1}}',
    "{{'user': 'ann', '{name}': '{secret}', 'n': 1}}",
    '{{\\"{name}\\": \\"{secret}\\", \\"n\\": 1}}',
    "[('{name}', '{secret}'), ('n', '1')]",
    "[(b'{name}', b'{secret}')]",
    "<{name}>{secret}</{name}>",
    '<add key="{name}" value="{secret}" />',
    '{{"name": "{name}", "value": "{secret}"}}',
    "tool --{name} {secret} --verbose",
    "os.environ['{name}'] = '{secret}'",
    "https://x.example/a?{name}={secret}",
    "export {name}='{secret}'",
    "the {name} is '{secret}', they say",
    "Host=db;{name}={secret};Timeout=3",
    "{name}: [{secret}, {secret}]",
)

WHOLE = [
    ("Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    ("{'Authorization': 'Bearer opaque'}", "opaque"),
    ("curl -H 'Authorization: token abcdef' https://x", "abcdef"),
    ("authorization=Basic YW5uOmh1bnRlcjI=", "YW5uOmh1bnRlcjI"),
    ("it sent Basic YW5uOmh1bnRlcjI= again", "YW5uOmh1bnRlcjI"),
    ("it sent bearer opaque-7 again", "opaque-7"),
    ("Cookie: sid=abc; theme=dark", "abc"),
    ("Set-Cookie: session=abc; Path=/; HttpOnly", "abc"),
    ('Authorization: Digest username="ann", response="6629fae4"', "6629fae4"),
    ("https://ann:hunter2@example.com/x", "hunter2"),
    ("postgresql://ann:hun/ter2@db:5432/x", "hun/ter2"),
    ("mongodb+srv://ann:p@ss@cluster.example/x", "p@ss"),
    ("redis://:hunter2@cache:6379/0", "hunter2"),
    ("https://" + HEX + "@sentry.example/4", HEX),
    ("two: ftp://a:b1c2@x and http://d:e3f4@y", "b1c2"),
    ("two: ftp://a:b1c2@x and http://d:e3f4@y", "e3f4"),
    ("ann:hunter2@tcp(db:3306)/x", "hunter2"),
    ("ann:hunter2@10.0.0.7", "hunter2"),
    ("jdbc:oracle:thin:scott/tiger@//db:1521/x", "tiger"),
    ("curl -u ann:hunter2 https://x", "hunter2"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", "MIIE"),
    ("https://hooks.slack.com/services/T000/B000/abcdef", "abcdef"),
    ("https://discord.com/api/webhooks/123456/abcdef", "abcdef"),
    ("password: correct horse battery", "horse battery"),
    ("  - passphrase: correct horse battery\nnext: line", "battery"),
    ("the password was hunter2", "hunter2"),
    ("https://maps.example/?key=AB12cd34EF56gh78", "AB12cd34EF56gh78"),
    ('{"credentials": {"user": "ann", "pass": "hunter2"}}', "hunter2"),
    ('{"password": "hun\\"ter2"}', "ter2"),
    ('{"body": "{\\"password\\": \\"hun\\\\\\"ter2\\"}"}', "ter2"),
    ('{"password": "hunter2', "hunter2"),
    ('{\\"password\\": \\"hunter2', "hunter2"),
    ("<password>hunter2", "hunter2"),
    ("secret=[hunter2", "hunter2"),
    ("https://x?sig=a%2Fb&token=c3d4&se=2026", "c3d4"),
]  # fmt: skip

ORDINARY = [
    "order ord-2026-000123 for ann@example.com: 4 x Riesling at 20:00, total 84.50 EUR",
    "saga 550e8400-e29b-41d4-a716-446655440000, graph cas://sha256/" + HEX + HEX,
    "no answer within 30000 ms; attempt 3 of 5 at 2026-12-01T09:00:00.123Z",
    "used 1200 tokens: prompt_tokens=1000, completion_tokens: 200, max_tokens=4096",
    '{"token_type": "bearer", "expires_in": 3600, "password_policy": "strict"}',
    "the password is required; basic authentication failed; bearer of bad news; token: invalid",
    "idempotency_key=" + HEX + " primary_key: id partition_key=tenant",
    "KeyError: 'key' at key=order-1234-abcd-5678",
    "https://example.com:8443/a/b@c?page=2&next_token=abc#top",
    "http://[::1]:8080/x and https://medium.com/@ann/post",
    "author: Ann; monkey=banana; keyboard: qwerty; passenger=4; compass: north; design=new",
    "arn:aws:dynamodb:eu-central-1:123456789012:table/sagas",
    "git 4b825dc642cb6eb9a060e54bf8d69288fbee4904 on branch feature/BookTableForTwo",
    "TimeoutError: table.hold (book@2.0) in tests/core/failures/test_sanitise.py:12",
    "SerializationFailureWhileUpdatingTheAccountBalances, VV4KQNSO5AEMVJF66Q9ASUAAJG",
    "Order-2026-Q3-Run-12-Abc-4711-Xyz",
    "Basic information about sk-learn",
    "commit message: pass the salt",
    "Basic größere Fehler",
    "-" * 24 + " Captured log " + "_" * 700,
]


def test_there_are_enough_of_them() -> None:
    assert len(SHAPED) + len(NAMED) + len(WHOLE) >= 60
    assert len(LEAKS) >= 100
    assert min(len(SURROUNDINGS), len(PLACES)) >= 3


def leaks_of(told: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The texts that still have their secret, or have nothing in its place, with what became of them."""
    found = [(text, secret, sanitised(text)) for text, secret in told]
    return [
        (text, clean)
        for text, secret, clean in found
        if secret in clean or REDACTED not in clean or sanitised(clean) != clean
    ]


@pytest.mark.parametrize("kind", SHAPED)
def test_a_secret_is_known_by_its_shape_wherever_it_stands(kind: str) -> None:
    secret = SHAPED[kind]
    texts = [place.format(secret) for place in SURROUNDINGS]
    assert [text for text in texts if secret in sanitised(text)] == []
    assert [text for text in texts if secret[-12:] in sanitised(text)] == []
    assert "is not valid" in sanitised(texts[1])


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_known_by_the_name_before_it(place: str) -> None:
    named = product(NAMES, NAMED.values())
    assert leaks_of((place.format(name=name, secret=secret), secret) for name, secret in named) == []


def test_a_secret_is_known_by_its_place() -> None:
    assert all(secret in text for text, secret in WHOLE)
    assert leaks_of(WHOLE) == []


def test_a_secret_is_known_by_what_is_said_around_it_and_under_any_disguise() -> None:
    assert all(secret in text for text, secret in LEAKS.values())
    assert leaks_of(LEAKS.values()) == []
    assert [text for text, _ in LEAKS.values() if "hunter2" in sanitised(text)] == []


def test_ordinary_text_stays_as_it_is() -> None:
    assert [(text, clean) for text in (*ORDINARY, *HARMLESS) if (clean := sanitised(text)) != text] == []


def test_an_encoding_is_taken_off_three_times_and_no_more() -> None:
    text = "password=hunter2-Xy7"
    for times in range(4):
        assert (REDACTED in sanitised(text)) is (times < 4)
        text = text.replace("%", "%25").replace("=", "%3D")
    assert sanitised(text) == text


def test_of_a_long_message_what_could_be_half_a_secret_is_not_told() -> None:
    key = f"-----BEGIN PRIVATE KEY-----{'M' * 19_935}-----END PRIVATE KEY-----"
    assert quoted(f"{key} {SHAPED['github']}") == ""
    assert quoted(f"short {key[:900]}") == f"short {REDACTED}"
    assert quoted("a word " * 1_000) == ("a word " * 1_000)[:2_000]
    assert quoted("password=hunter2 " * 10, 30) == (f"password={REDACTED} " * 10)[:30]


def test_what_stands_around_a_secret_stays() -> None:
    text = 'POST https://ann:pw@x/y {"password": "hunter2", "order": 7} failed for ann@example.com'
    assert sanitised(text) == (
        f'POST https://{REDACTED}@x/y {{"password": "{REDACTED}", "order": 7}} failed for ann@example.com'
    )
    assert json.loads(sanitised('{"password": "hun\\"ter2", "n": 1}')) == {"password": REDACTED, "n": 1}


_WORD = st.text("abcdefghijklmnopqrstuvwxyzäöüß", min_size=1, max_size=8).filter(
    lambda word: not re.search("pass|pw|secret|token|cred|auth|cookie|key|sig|jwt|otp|mfa|cv|pin|sid|sess|dsn|sas|bear|basic|conn|hook|mnem", word)
)  # fmt: skip
_ID = st.from_regex(
    r"ord-[0-9]{1,8}|[a-f0-9]{64}|[0-9]{1,12}|[a-z]{2,8}@[a-z]{2,8}\.com", fullmatch=True
) | st.uuids().map(str)


@settings(PROPERTY, max_examples=40 * MORE)
@given(st.lists(_WORD | _ID | st.sampled_from([",", ": ", "=", "(", ")", "\n", '"']), max_size=12))
def test_ordinary_words_and_ids_stay(words: list[str]) -> None:
    text = " ".join(words)
    assert sanitised(text) == text


@settings(PROPERTY, max_examples=40 * MORE)
@given(st.lists(st.sampled_from(['"', "\\", "'", "password", "=", ":", " ", "hunter2", "{", "}", "[", "]", ";", "&", "://", "@", "a", "key", "Bearer", "token", "--", "<", ">", REDACTED, "\n", "is"]), max_size=25).map("".join))  # fmt: skip
@example("password=" + REDACTED + "x")
def test_whatever_the_text_it_is_sanitised_without_an_error(text: str) -> None:
    assert isinstance(sanitised(text), str)


HOSTILE = ["a", "A1b", "://", "://a:b/", "eyJ", "eyJaaaa.", "password=", "password ", '"', "\\", 'password=\\"', "sk-", "ghp_", "-----BEGIN PRIVATE KEY-----", "Basic ", "a:b@", "key=", "secret.", "token&a", "<password>", "x=1;", "\n ", "-u a:", "https://a:b@", "é",
    "-p", "-pa1 ", "AUTH a1 ", "input_value=", "4111 1111 ", "4", "mysql ", "'mysql' ", "login docker login ", "&amp;", "%25", "name='password'\n", "identified by ", "\u200b", "password -> ", "password -> hun2TeR ", "machine x ", "$1$", "curl -u a:", "a:5432:", "USER a\n", "'loc' 'input': [", "password [", "zip ", "ldapx ", "PASSWORD('", "\\u0025", "api key ", "<password a", "password: |\n a", "token f('", "password=\'\'\'"]  # fmt: skip


@pytest.mark.no_cover
def test_the_time_grows_no_faster_than_the_text() -> None:
    def seconds(piece: str, size: int) -> float:
        text = piece * (size // len(piece))
        start = process_time()
        sanitised(text)
        return process_time() - start

    for piece in HOSTILE:
        # Sixteen times the text: were it quadratic, it would be 256 times the time.
        small = max(min(seconds(piece, 1_000) for _ in range(3)), 0.000_5)
        assert any(seconds(piece, 16_000) < 128 * small for _ in range(3)), piece
