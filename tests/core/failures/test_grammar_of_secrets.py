"""Name, separator, value: whatever of these stand together, the value is masked, and the name and the marks around it stay."""

from __future__ import annotations

import json
import logging
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.adapters.discreet import SecretFilter
from baton.core.failures import quoted, sanitised
from baton.core.log.questions import visible_arguments as shown_to_a_person
from baton.runtime.invocation.live import live_tail
from baton.web.bodies.requests import AcknowledgeBody, CancelBody, read_body
from tests.core.build import MORE, PROPERTY

NAMES = [
    "password", "db_password", "Password", "ldap_bind_pw", "root_pw", "hmac_key", "access_code", "apiKey", "X-Api-Key", "AWS_SECRET_ACCESS_KEY",
    "client_secret", "security_code", "aes_key", "spring.datasource.password", "mot de passe", "contraseña", "senha", "hasło", "heslo", "lösenord", "jelszó",
    "passwort", "wachtwoord", "salasana", "şifre", "lozinka", "mật khẩu", "κωδικός", "パスワード", "пароль", "密码", "비밀번호", "كلمة المرور", "סיסמה",
]  # fmt: skip
# Between a name and its value, and behind the value.
BETWEEN = [
    # assignments
    ("{}=", ""), ("{}: ", ""), ("{} : ", ""), ("{} => ", ""), ("{} := ", ""), ("{} -> ", ""), ("{}：", ""), ("{} == '", "'"), ("{}: str = '", "'"), ("{}=('", "',)"),
    # markdown and prose
    ("**{}:** `", "`"), ("**{}**: ", ""), ("*{}*: ", ""), ("***{}:*** ", ""), ("__{}__: ", ""), ("- **{}**: `", "`"), ("``{}``: ``", "``"), ("> {}: ", ""),
    ("{}:\n```\n", "\n```"), ("| {} | ", " |"), ("| **{}** | `", "` |"), ("│ {} │ ", " │"), ("### {}\n\n", "\n"), ("“{}”: “", "”"), ("«{}» : «", "»"),
    ("the {} is ", ""), ("your new {} is: ", ""), ("the {} '", "' was refused"), ("wrong {} (", ")"), ("{} — ", ""), ("{}\t", ""), ("{}: expected a string, got '", "'"),
    # JSON, Python and what quotes them
    ('"{}": "', '"'), ('{{"{}":\n  "', '"}}'), ("'{}': '", "'"), ('\\"{}\\": \\"', '\\"'), ("('{}', '", "')"), ("(b'{}', b'", "')"), ("env['{}'] = '", "'"), ("{}=SecretStr('", "')"),
    ('{{"name": "{}", "value": "', '"}}'), ('{{"name": "{}", "type": "String", "value": "', '"}}'), ("name: {}\nvalue: ", "\n"), ("- name: {}\n  value: ", "\n"), ("{}: |\n  ", "\n"), ("{}: &x ", ""),
    # XML and HTML
    ("<td>{}</td><td>", "</td>"), ("<td><b>{}</b></td><td><code>", "</code></td>"), ("<td>{}:</td><td>", "</td>"), ("<dt>{}</dt>\n<dd>", "</dd>"), ("<b>{}:</b> ", ""), ("<strong>{}</strong>: ", ""),
    ('<property name="{}">', "</property>"), ('<entry key="{}"><![CDATA[', "]]></entry>"), ('<input name="{}" class="x" value="', '">'), ("<key>{}</key>\n<string>", "</string>"),
    # environments, options, headers, addresses, forms
    ("export {}='", "'"), ("${{{}}} = \"", '"'), ("Server=db;{}=", ";Timeout=3"), ("curl -H '{}: ", "'"), ("https://x.example/a?b=1&{}=", "&c=2"),
    ('form-data; name="{}"\r\n\r\n', "\r\n--b"),
]  # fmt: skip
IN_ONE_WORD = [
    ("<{}>", "</{}>"), ("<a:{} type='x'>", "</a:{}>"), ("<{}><![CDATA[", "]]></{}>"), ("<{}>\n  <![CDATA[", "]]>\n</{}>"), ("<user {}='", "'/>"),
    ("tool --{} ", " -x"), ("tool --{}='", "'"), ("['tool', '--{}', '", "']"), ("java -D{}=", ""), ("tool /{}:", ""),
]  # fmt: skip
AROUND = ["%s", "the service said: %s", "line\n%s\nline", "({'x': 1}) %s; retry", "ValueError: %s"]
VALUES = st.from_regex("([A-Z][0-9][a-z]){4,6}[0-9]", fullmatch=True)


@st.composite
def told(draw: st.DrawFn) -> tuple[str, str, str]:
    """A name, its value, and a text with both."""
    name, value = draw(st.sampled_from(NAMES)), draw(VALUES)
    before, after = draw(st.sampled_from(BETWEEN if " " in name else [*BETWEEN, *IN_ONE_WORD]))
    return (
        name,
        value,
        draw(st.sampled_from(AROUND)).replace("%s", f"{before.format(name)}{value}{after.format(name)}"),
    )


@settings(PROPERTY, max_examples=30 * MORE)
@given(told())
def test_a_value_beside_its_name_is_masked(one: tuple[str, str, str]) -> None:
    name, value, text = one
    clean = sanitised(text)
    assert value not in clean
    assert "[redacted]" in clean
    assert name.split()[0] in clean
    assert sanitised(clean) == clean


@pytest.mark.no_cover
def test_it_is_so_for_all_of_them() -> None:
    """Each name with each separator, in one of the surroundings in turn; in `make soak` in all of them."""
    value = "Zq7Rt9Kp2Lm4Wx"
    told = [
        f"{before.format(name)}{value}{after.format(name)}"
        for name in NAMES
        for before, after in (BETWEEN if " " in name else [*BETWEEN, *IN_ONE_WORD])
    ]
    texts = [
        around.replace("%s", one)
        for number, one in enumerate(told)
        for around in (AROUND if MORE > 1 else [AROUND[number % len(AROUND)]])
    ]
    assert [text for text in texts if value in sanitised(text)] == []


@settings(PROPERTY, max_examples=6 * MORE)
@given(told())
def test_it_is_so_in_all_that_is_kept_and_shown(one: tuple[str, str, str]) -> None:
    _, value, text = one
    record = logging.makeLogRecord({"msg": "%s", "args": (text,), "levelno": logging.ERROR, "name": "tool"})
    assert SecretFilter().filter(record)
    body = read_body(CancelBody, json.dumps({"reason": text}))
    note = read_body(AcknowledgeBody, json.dumps({"note": text}))
    entry = shown_to_a_person({"any": text})
    draft = live_tail(f"{text} and so on ", 8_192)
    kept = (record.getMessage(), quoted(text), body.reason, note.note, entry["any"], draft)
    assert [place for place in kept if value in place] == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("**Password:** `nFcEX4nuEXaSqs`", "**Password:** `[redacted]`"),
        ("**Password:** nFcEX4nuEXaSqs", "**Password:** [redacted]"),
        ("password: <![CDATA[KCrZqMIliN3x]]>", "password: <![CDATA[[redacted]]]>"),
        ("<password><![CDATA[KCrZqMIliN3x]]></password>", "<password><![CDATA[[redacted]]]></password>"),
        ("assert 'f4npFXtC5IAI' == 'x' (password)", "assert '[redacted]' == '[redacted]' (password)"),
        ("'W7AQwKAOkp8O' is too long\n\nFailed validating 'maxLength' in schema['properties']['password']",
         "'[redacted]' is too long\n\nFailed validating 'maxLength' in schema['properties']['password']"),
        ("RuntimeError: password: expected string of 20, got 'DAUmSZRUff'", "RuntimeError: password: expected string of 20, got '[redacted]'"),
        ("key AHEOVezxZuJPWvHogU5nGYVHWVsUQk4DwgLGNOaeCtL31Ugq+DfcgaTMnTC0MrAU8urbFt5misIZHbhS4/Fvaf==", "key [redacted]"),
        ("key 3q2+7wAAqZ1uPp/GmT0vXk4Yb8sNcJ5hLd6rEo9iWf2=", "key [redacted]"),
        ("set_password('swordfish'); ('webhook secret', 'tuna')", "set_password('[redacted]'); ('webhook secret', '[redacted]')"),
        ("NRAK-VRZUJGPWGQCXOVDRDINHEPPRBPO", "[redacted]"),
        ("java -Dpw=hunter2 -Dcolour=red", "java -Dpw=[redacted] -Dcolour=red"),
        ("пароль: hunter2", "пароль: [redacted]"),
        ("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", "[redacted]"),
        ("patCSXqLoivDP4SpG.689447ab57a683536c4499d863386ce10cd79e048c07dd7753eda83d7c58dfe0", "[redacted]"),
        ("access_token$production$TyRqBRlEaZUZrwpP$9affd2b49c12a4b0062983475eb46c52", "[redacted]"),
        ("glcbt-64_MqXXQ8agOMTNwncxvjcn", "[redacted]"),
    ],
)  # fmt: skip
def test_the_value_is_masked_and_not_the_marks_around_it(text: str, clean: str) -> None:
    assert sanitised(text) == clean


ORDINARY = [
    # what is said of secrets
    "token count: 1200", "password reset link was sent", "the password was changed on Monday", "the token is used by 3 services", "your session cookie has expired",
    '<a href="password">Forgotten?</a>',
    "the secret was stored in the vault", "credentials are checked at sign-in", "password (min 8 characters)", "wrong password", "invalid token", "Password:", "password:\nuser: ann",
    "enter the security code we sent you", "the signature is wrong", "a cookie is set", "api key is missing", "usage: login <user> <password> [--force]", "password=None, token=null",
    "the fields `password` and `token_id` are required", "required: ['password', 'email', 'name']", "keys: [\"access_key\", \"region\", \"profile\"]", "set `client_secret` in settings",
    "| token | count |\n|---|---|\n| a | 7 |", "| webhook | `WebhookUrl` and its key |", "the token ``span`` of the tree", "the bearer of this letter; basic income; a token of thanks",
    "secretary: Ann; keyboard: qwerty; monkey=banana; passenger=4; compass: north; tokenizer=bpe; author: Bob; design: flat",
    # code
    "def check(token: str) -> bool:\n    return False", "credentials['region'] is missing", 'token.split(".")', "password.encode('utf-8')", "class Auth(Base): ...",
    "KeyError: 'password'", "TypeError: login() missing 1 required argument: 'password'", "AttributeError: 'Session' object has no attribute 'token'",
    "def sign(key):\n    signature:\n    \"\"\"Sign it.\"\"\"", "isinstance(key, (Ed25519PrivateKey, Ed448PublicKey))", "mkdir -p /var/lib/app2; ssh -p 2222 ann@host", "npm-run-all2 build; task-runner-9; sk-learn",
    # prices, ids, times, log lines
    "total 84.50 EUR, tax 16.90 EUR, 4 x 19.90", "order ord-2026-000123, saga 550e8400-e29b-41d4-a716-446655440000", "2026-12-01T09:00:00.123Z INFO worker took 12 steps in 340 ms",
    "primary_key=orders_pk, partition_key: tenant, public_key: ssh-ed25519", "country_code: AT, error_code=E1234x, zip code: 1010, key: order-1234", "max_tokens=4096 prompt_tokens=1000 token_type: bearer",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "GET /v1/orders?page=2&next_token=abc 200 in 12 ms", "https://medium.com/@ann/post, http://[::1]:8080/x, ann@example.com",
    "-------- >8 --------\n" + "=" * 60 + "\n" + "_" * 40 + "\n" + "*" * 40, "**Note:** the order `A-4711` is late", "<td>order</td><td>A-4711</td>", "name: order\nvalue: A-4711",
    '<label for="user">User</label><input type="text" name="user" value="ann">', "{'loc': ('body', 'size'), 'msg': 'too big', 'type': 'int'}",
    "assert 'A-4711' == 'A-4712' (order)", "'A-4711' is too long\n\nFailed validating 'maxLength' in schema['properties']['order']",
    "integrity sha512-AHEOVezxZuJPWvHogU5nGYVHWVsUQk4DwgLGNOaeCtL31Ugq+DfcgaTMnTC0MrAU8urbFt5misIZHbhS4/Fvaf==", "integrity sha256-3q2+7wAAqZ1uPp/GmT0vXk4Yb8sNcJ5hLd6rEo9iWf2=",
    "Straße: Hauptstraße 5, 名前：山田太郎, имя: Анна", "RuntimeError: password: expected string", "the shared key figures of Q3: 12 and 14", "commit message: pass the salt to table 7b",
]  # fmt: skip


def test_what_only_resembles_a_secret_stays() -> None:
    assert [(text, clean) for text in ORDINARY if (clean := sanitised(text)) != text] == []


HOSTILE = [
    *"a_-. \n\t\"'`\\=:;,&%|*~<>()[]{}@$/é", "password ", "password{", "(password)", "**password", "<td>password</td>", "<password ", "password: expected ", "password\n", "pw ", "assert '",
    "パスワード", "name: password\n", "['password']", "é_", "name='password'\n", "'password', 'a', ", "password=a1 ", "password: a ", "token ", "secret (aB1", "-----BEGIN PRIVATE KEY-----", "eyJaaaa.", "://a:b/", "\"password\" a='b' ",
]  # fmt: skip


@pytest.mark.no_cover
def test_the_time_grows_with_the_length_and_not_faster() -> None:
    def seconds(piece: str, size: int) -> float:
        text = (piece * size)[:size]
        begin = time.process_time()
        sanitised(text)
        return time.process_time() - begin

    for piece in HOSTILE:
        # Eight times the text: were it quadratic, it would be 64 times the time.
        small = max(min(seconds(piece, 2_000) for _ in range(2)), 0.0005)
        assert any(seconds(piece, 16_000) < 32 * small for _ in range(3)), piece


def test_a_tag_without_an_end_has_no_content() -> None:
    assert sanitised("<password without its end") == "<password without its end"
