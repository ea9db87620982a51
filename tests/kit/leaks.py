"""Texts as the outside writes them, each with a secret in it that no store and no log may hold: the text, and the secret.

Secrets that have a shape of their own are in secrets.py.
"""

from __future__ import annotations

import base64
import json

from tests.kit.secrets import HEX, X

P = "hunter2-Xy7"


def _percent(text: str) -> str:
    return "".join(c if c.isalnum() or c == "-" else f"%{ord(c):02X}" for c in text)


def _full(text: str) -> str:
    """The same in the full-width letters of East Asian fonts."""
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


_PYDANTIC = (
    "1 validation error for Login\nword\n  is not valid [type=value_error, input_value={}, input_type=str]"
)
_JSON = f'{{"password": "{P}"}}'
_HASH = (X * 4)[:86]

VALIDATORS = {
    "pydantic, a text": _PYDANTIC.format(repr(P)),
    "pydantic, an object": _PYDANTIC.format({"user": "ann", "word": P}),
    "pydantic, cut in the middle": _PYDANTIC.format(f"{{'user': 'ann', 'pa...: '{P}'}}"),
    "pydantic, a list": _PYDANTIC.format([P, 1]),
    "pydantic, an instance": _PYDANTIC.format(f"Login(user='ann', word='{P}')"),
    "pydantic, bytes": _PYDANTIC.format(P.encode()),
    "pydantic, cut off": _PYDANTIC.format(repr(P)).partition(", input_type")[0],
    "pydantic, its errors": f"[{{'type': 'value_error', 'loc': ('word',), 'msg': 'no', 'input': '{P}', 'ctx': {{}}}}]",
    "fastapi, its errors": f'{{"detail":[{{"type":"x","loc":["body","word"],"msg":"no","input":{{"a":"{P}"}}}}]}}',
    "jsonschema": f"'{P}' is too short\n\nFailed validating 'minLength' in schema['properties']['password']:\n"
    f"    {{'minLength': 20}}\n\nOn instance['password']:\n    '{P}'",
    "a dataclass": f"Login(user='ann', password='{P}')",
    "a type for secrets": f"Login(password=SecretStr('{P}'))",
}
COMMANDS = {
    "mysql": f"command failed: mysql -u root -p{P} orders",
    "mysqldump, quoted": f"mysqldump -uroot -p'{P}' orders",
    "an option alone": f"exec: -p{P}",
    "sshpass": f"sshpass -p {P} ssh ann@db-7 failed",
    "sshpass, glued": f"sshpass -p{P} ssh ann@db-7 failed",
    "docker login": f"docker login -u ann -p {P} registry.example",
    "redis-cli": f"redis-cli -h cache -a {P} ping",
    "ldapsearch": f"ldapsearch -D cn=admin -w {P} -b dc=x",
    "smbclient": f"smbclient //host/share -U ann%{P}",
    "curl, glued": f"curl -uann:{P} https://x.example",
    "7z": f"7z x -p{P} a.7z",
    "zip": f"zip -P {P} a.zip b",
    "openssl": f"openssl rsa -passin pass:{P} -in k.pem",
    "subprocess": f"Command '['mysql', '-u', 'root', '-p{P}']' returned non-zero exit status 1.",
    "subprocess, an option": f"Command '['tool', '--password', '{P}']' returned non-zero exit status 1.",
    "subprocess, a short option": f"Command '['sshpass', '-p', '{P}', 'ssh']' returned",
    "a slash": f"net use /user:ann /password:{P}",
    "one dash": f"connect -Password {P} -Force",
    "a property": f"java -Ddb.password={P} -jar a.jar",
    "a header": f"curl -H 'X-Api-Key: {P}' https://x",
    "a declaration": f'declare -x DB_PASSWORD="{P}"',
}
FILES = {
    "netrc": f"machine api.example.com login ann password {P}",
    "netrc in lines": f"machine api.example.com\n  login ann\n  password {P}\n",
    "netrc with an account": f"machine x login ann account main password {P}",
    "netrc, the default": f"default login ann password {P}",
    "pgpass": f"db-7:5432:orders:ann:{P}",
    "ini": f"[db]\npassword = {P}\n",
    "toml": f'password = """{P}"""',
    "a block of yaml": f"password: |\n  {P}\nnext: line",
    "a block of yaml in one line": f"x: password: | {P} next: line",
    "a block of yaml, escaped": f"x: password: |\\n  {P}\\nnext: line",
    "a tag of yaml": f"password: !!str {P}",
    "an attribute of xml": f'<user name="ann" password="{P}"/>',
    "soap": f"<wsse:Password Type='x'>{P}</wsse:Password>",
    "a form": f'Content-Disposition: form-data; name="password"\r\n\r\n{P}\r\n--b',
    "odbc": f"Driver={{x}};Server=db;Uid=ann;Pwd={P};",
    "jdbc": f"jdbc:mysql://db/x?user=ann&password={P}",
    "oracle": f"jdbc:oracle:thin:scott/{P}@//db:1521/x",
    "the environment": f"environ({{'DB_PASSWORD': '{P}'}})",
    "go": f"{{User:ann Password:{P}}}",
    "ruby": f':password=>"{P}"',
    "php": f"['password'] => {P}",
    "several": f"passwords: ['{P}', 'x']",
    "json in json": json.dumps({"m": json.dumps({"password": P})}),
}
SENTENCES = {
    "an arrow": f"password -> {P}",
    "an arrow of one sign": f"password → {P}",
    "an arrow, quoted": f"'password' -> '{P}'",
    "a long arrow": f"password --> {P}",
    "a wavy arrow": f"password ~> {P}",
    "a colon after a space": f"password : {P}",
    "two colons": f"password::{P}",
    "a tab": f"password\t{P}",
    "a table": f"| password | {P} |",
    "brackets": f"password [{P}] was refused",
    "parentheses": f"password ({P}) was refused",
    "angles": f"password <{P}> was refused",
    "nothing": f"login with password {P} failed",
    "set to": f"password set to {P}",
    "changed from": f"password changed from {P} to another",
    "equals": f"password equals {P}",
    "is not": f"password != {P}",
    "said twice": f"password={P}; again {P}!",
    "in two words": f"api key = {P}",
    "german": f"Passwort: {P}",
}
PROTOCOLS = {
    "identified by": f"ALTER USER ann IDENTIFIED BY {P}",
    "identified by, quoted": f"ALTER USER ann IDENTIFIED BY '{P}'",
    "with password": f"CREATE ROLE ann WITH PASSWORD '{P}'",
    "password of": f"SET PASSWORD FOR ann = PASSWORD('{P}')",
    "redis": f"ERR redis AUTH {P}",
    "redis with a user": f"AUTH default {P}",
    "redis, its setting": f"CONFIG SET requirepass {P}",
    "ftp": f"USER ann\r\nPASS {P}\r\n530 no",
    "imap": f"a1 LOGIN ann {P}",
    "a pair": f"('Authorization', 'Bearer {P}')",
    "in capitals": f"BEARER {P}",
    "oauth": f"grant_type=password&username=ann&password={P}&scope=x",
    "git": f"git clone https://oauth2:{P}@git.example/x.git",
}
DISGUISED = {
    "percent": f"POST body: password%3D{P}",
    "percent, json": _percent(_JSON),
    "percent, twice": _percent(_percent(f"password={P}")),
    "percent, a header": f"Authorization%3A%20Bearer%20{P}",
    "percent, an address": f"redirect=https%3A%2F%2Fann%3A{P}%40x.example%2F",
    "percent, a letter": f"%70assword={P}",
    "entity": f"password&#61;{P}",
    "entity, hexadecimal": f"password&#x3d;{P}",
    "entity, json": f"{{&quot;password&quot;:&quot;{P}&quot;}}",
    "entity, tags": f"&lt;password&gt;{P}&lt;/password&gt;",
    "entity, a letter": f"&#112;assword={P}",
    "entity, equals": f"password&equals;{P}",
    "entity, twice": f"&amp;quot;password&amp;quot;:&amp;quot;{P}&amp;quot;",
    "escape": f"password\\u003d{P}",
    "escape, json": f"\\u0022password\\u0022:\\u0022{P}\\u0022",
    "escape, hexadecimal": f"password\\x3d{P}",
    "full width": f"{_full('password')}={P}",
    "full width, a sign": f"password\uff1d{P}",
    "no width": f"pass\u200bword={P}",
    "soft hyphen": f"pass\u00adword={P}",
    "byte order mark": f"pass\ufeffword={P}",
    "joiner of graphemes": f"pass\u034fword={P}",
    "other direction": f"pass\u202eword={P}",
    "cyrillic": f"p\u0430ssword={P}",
    "letters of mathematics": "".join(chr(0x1D41A + ord(c) - 97) for c in "password") + f"={P}",
    "space that breaks no line": f"password\u00a0=\u00a0{P}",
}
LEAKS: dict[str, tuple[str, str]] = {
    **{
        kind: (text, P)
        for group in (VALIDATORS, COMMANDS, FILES, SENTENCES, PROTOCOLS, DISGUISED)
        for kind, text in group.items()
    },
    "percent, all of it": ("password=" + "".join(f"%{ord(c):02x}" for c in P), "%68%75%6e"),
    "full width, all of it": (_full(f"password={P}"), _full(P)),
    "full width, a token": (_full(f"ghp_{X}abcd"), _full(X)),
    "no width, in the value": ("password=hun\u200bter2-Xy7", "hun\u200bter2"),
    "no width, in a token": (f"ghp_\u200d{X}abcd", X),
    "no width, everywhere": ("\u2060".join(f"password={P}"), "\u2060".join(P)),
    "base64, json": (
        "body " + base64.b64encode(_JSON.encode()).decode(),
        base64.b64encode(_JSON.encode()).decode()[4:],
    ),
    "smtp": (f"AUTH PLAIN {base64.b64encode(P.encode()).decode()}", base64.b64encode(P.encode()).decode()),
    "a seed": ("seed phrase: abandon ability able about above absent", "ability able"),
    "bcrypt": ("ann:$2b$12$" + _HASH[:53], _HASH[:53]),
    "sha512crypt": (f"root:$6$saltsalt${_HASH}", _HASH),
    "argon": (f"$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ${X}", X),
    "a signature": (f"https://b.s3.example/k?X-Amz-Signature={HEX}{HEX}&X-Amz-Expires=60", HEX),
    "card": ("card 4111111111111111 was refused", "4111111111111111"),
    "card in groups": ("card 4111 1111 1111 1111 was refused", "1111 1111"),
    "card with hyphens": ("card 5500-0000-0000-0004 was refused", "0000-0004"),
    "card with full stops": ("card 4111.1111.1111.1111 was refused", "1111.1111"),
    "card of fifteen digits": ("378282246310005 declined", "378282246310005"),
    "card of fifteen digits, in groups": ("3782 822463 10005 declined", "822463 10005"),
    "card of nineteen digits": ("4000000000000000006 declined", "4000000000000000006"),
    "card, discover": ("pan=6011111111111117", "6011111111111117"),
    "card, jcb": ('{"number":3530111333300000}', "3530111333300000"),
    "card, the second range": ("2223003122003222 declined", "2223003122003222"),
    "card, full width": (_full("4111111111111111"), _full("4111111111111111")),
}

# What looks like one of these and is none.
HARMLESS = [
    "mkdir -p /var/lib/app2 && docker run -p 8080:80 nginx; ssh -p 2222 ann@host; mysql -h db -P 3306",
    "PASS src/app2.test.js; AUTH OAUTH2 is not supported; LOGIN failed",
    "id 1782345678901234567, EAN 4006381333931, at 20261201090000, 4111111111111112, 0.4111111111111111",
    "50 % of 100%25 & more; AT&T; C:\\users\\x41\\new; caf\u00e9 \u2192 \u6771\u4eac \uff12\u3064 \u041f\u0440\u0438\u0432\u0435\u0442",
    "input_type=str; 'input': 5 of 7; block 'input': closed",
    "the password policy has changed to allow 2 more attempts; password (min 8 characters)",
    "app.py:120:orders:load:failed after 3 tries; name=\"file\"",
    "| token | count |\n| a | 7 |; a -> b -> c; machine x has no login",
    "Login(user=None) costs US$15 and $6 more; zip -r a.zip b; curl -s https://x.example -o out",
    "\ud800 is half a character",
]  # fmt: skip
