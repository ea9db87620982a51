"""Name, separator, value: whatever of these stand together, the value is masked, and the name and the marks around it stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.core.failures import sanitised

NAMES = [
    "password", "db_password", "Password", "ldap_bind_pw", "root_pw", "hmac_key", "access_code", "apiKey", "X-Api-Key",
    "client_secret", "security_code", "aes_key", "mot de passe", "contraseña", "senha", "hasło", "heslo", "lösenord", "jelszó",
    "passwort", "wachtwoord", "salasana", "şifre", "パスワード", "пароль", "密码", "비밀번호",
]  # fmt: skip
BETWEEN = [
    ("{}=", ""), ("{}: ", ""), ("{} : ", ""), ("{} => ", ""), ("{} := ", ""), ("{}：", ""), ("**{}:** `", "`"), ("**{}**: ", ""), ("*{}*: ", ""),
    ("__{}__: ", ""), ('"{}": "', '"'), ("'{}': '", "'"), ('\\"{}\\": \\"', '\\"'), ("<td>{}</td><td>", "</td>"), ("<dt>{}</dt>\n<dd>", "</dd>"),
    ("name: {}\nvalue: ", "\n"), ("- name: {}\n  value: ", "\n"),
]  # fmt: skip
AROUND = ["%s", "the service said: %s", "line\n%s\nline", "({'x': 1}) %s; retry", "ValueError: %s"]
VALUES = st.from_regex("[A-Za-z][A-Za-z0-9]{11,18}[0-9]", fullmatch=True)


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(NAMES), st.sampled_from(BETWEEN), VALUES, st.sampled_from(AROUND))
def test_a_value_beside_its_name_is_masked(
    name: str, between: tuple[str, str], value: str, around: str
) -> None:
    before, after = between
    text = around % f"{before.format(name)}{value}{after}"
    clean = sanitised(text)
    assert value not in clean
    assert "[redacted]" in clean
    assert name.split()[0] in clean


def test_it_is_so_for_all_of_them() -> None:
    value = "Zq7Rt9Kp2Lm4Wx"
    texts = [
        around % f"{before.format(name)}{value}{after}"
        for name in NAMES
        for before, after in BETWEEN
        for around in AROUND
    ]
    assert [text for text in texts if value in sanitised(text)] == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("**Password:** `nFcEX4nuEXaSqs`", "**Password:** `[redacted]`"),
        ("**Password:** nFcEX4nuEXaSqs", "**Password:** [redacted]"),
        ("<password><![CDATA[KCrZqMIliN3x]]></password>", "<password><![CDATA[[redacted]]]></password>"),
        ("assert 'f4npFXtC5IAI' == 'x' (password)", "assert '[redacted]' == '[redacted]' (password)"),
        ("'W7AQwKAOkp8O' is too long\n\nFailed validating 'maxLength' in schema['properties']['password']",
         "'[redacted]' is too long\n\nFailed validating 'maxLength' in schema['properties']['password']"),
        ("RuntimeError: password: expected string of 20, got 'DAUmSZRUff'", "RuntimeError: password: expected string of 20, got '[redacted]'"),
        ("key AHEOVezxZuJPWvHogU5nGYVHWVsUQk4DwgLGNOaeCtL31Ugq+DfcgaTMnTC0MrAU8urbFt5misIZHbhS4/Fvaf==", "key [redacted]"),
        ("NRAK-VRZUJGPWGQCXOVDRDINHEPPRBPO", "[redacted]"),
        ("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", "[redacted]"),
        ("patCSXqLoivDP4SpG.689447ab57a683536c4499d863386ce10cd79e048c07dd7753eda83d7c58dfe0", "[redacted]"),
        ("access_token$production$TyRqBRlEaZUZrwpP$9affd2b49c12a4b0062983475eb46c52", "[redacted]"),
        ("glcbt-64_MqXXQ8agOMTNwncxvjcn", "[redacted]"),
    ],
)  # fmt: skip
def test_the_value_is_masked_and_not_the_marks_around_it(text: str, clean: str) -> None:
    assert sanitised(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "primary_key=orders_pk, partition_key: tenant, public_key: ssh-ed25519", "country_code: AT, error_code=E1234x",
        "**Note:** the order `A-4711` is late", "<td>order</td><td>A-4711</td>", "name: order\nvalue: A-4711",
        "assert 'A-4711' == 'A-4712' (order)", "'A-4711' is too long\n\nFailed validating 'maxLength' in schema['properties']['order']",
        "integrity sha512-AHEOVezxZuJPWvHogU5nGYVHWVsUQk4DwgLGNOaeCtL31Ugq+DfcgaTMnTC0MrAU8urbFt5misIZHbhS4/Fvaf==",
        "Straße: Hauptstraße 5, 名前：山田太郎, имя: Анна", "RuntimeError: password: expected string", "the shared key figures of Q3: 12 and 14",
    ],
)  # fmt: skip
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert sanitised(text) == text


@pytest.mark.parametrize(
    "part",
    ["password ", "**password", "<td>password</td>", "password: expected ", "assert '", "(password)", "パスワード", "name: password\n", "['password']", "é_"],
)  # fmt: skip
def test_the_time_grows_with_the_length_and_not_faster(part: str) -> None:
    text = (part * 30_000)[:60_000]
    begin = time.process_time()
    sanitised(text)
    assert time.process_time() - begin < 10
