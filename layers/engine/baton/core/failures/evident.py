"""Secrets that are evident without a name: by their shape, or by the command, header or statement around
them.

For sanitise.py. Every expression begins at a fixed text or a boundary, and repetitions are possessive (`++`)
or bounded, so that the time grows linearly with the text.
"""

from __future__ import annotations

import re
from base64 import b64decode
from functools import cache
from itertools import pairwise
from typing import Final

from baton.core.failures.secret_names import REDACTED, words

PROSE: Final = words("""
    a an the is was are be been being of or and to for in on at by with not no never only also too very so as if it
    wrong invalid incorrect correct required missing expired empty null none weak strong unknown unset set needed expected
    longer already still now rejected accepted refused denied allowed valid revoked malformed unsupported supported absent
    present optional mandatory authentication authorization auth scheme schemes token tokens token-based header headers
    credentials realm error errors format type must may can cannot should will has have had that this from which failed
    failure true false yes ok changed reset updated sent created deleted string str bytes
    """)
"""Words of a sentence about secrets: `password is wrong`, `Bearer token`."""

# Not in the middle of a word, nor behind one and a hyphen: so that each word is looked at once.
_WORD, _START, _END = r"(?<![A-Za-z0-9])", r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][-_])", r"(?![A-Za-z0-9])"
_PREFIXES = words("""
    sk rk pk whsec rsk ghp gho ghu ghs ghr github_pat glpat gldt glrt npm pypi hf dop_v1 doo_v1 shpat shpca shppa shpss sbp
    sntrys sntryu figd lin_api tskey PMAK rubygems dckr_pat pat sq0atp sq0csp sq0idp nfp vercel tfp ATATT3x ATATT3 glcbt glptt
    glft glsoat glagent gloas glimt glffct glrtr glwt
    """)
_NEXT = r"""(?:[ \t]{1,4}|["'],[ ]{0,4}["'])"""  # between two arguments: spaces, or `', '` of a list
_QUOTED, _BARE = r"""\\{0,4}["']?""", r"""[^\s"'`,;|&<>()\[\]]"""
_LIKELY = rf"(?={_BARE}{{0,64}}[0-9])(?={_BARE}{{0,64}}[A-Za-z])"  # no word of a language


def _command(names: str, options: str, between: str = f"(?:{_NEXT}|=)?", before: str = "") -> str:
    """Return the expression for the value of an option of these programs, in the same line."""
    return (
        rf"(?<![\w-])(?:{names})(?![\w-])[^\r\n|;&]{{0,200}}?(?<=[\s\"'])(?:{options}){between}"
        rf"{_QUOTED}{before}(?!-)({_BARE}{{1,256}}+)"
    )


# Texts of which one is in every text with such a secret, in lower case where the expression takes both cases, and the
# expression. Its last group is the secret; without a group all of it is.
_EVIDENT: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("PRIVATE KEY",), r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:(?!-----END [A-Z0-9 ]{0,40}PRIVATE KEY).)*+(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"),
    (("eyJ",), r"(?<![\w-])eyJ[\w-]{4,}+\.[\w-]{2,}+(?:\.[\w-]*+){0,3}"),  # JWT and JWE
    (("AKIA", "ASIA", "ABIA", "ACCA"), rf"{_WORD}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}{_END}"),  # AWS
    (tuple(prefix + sign for prefix in _PREFIXES for sign in "-_"), rf"{_START}(?:{'|'.join(sorted(_PREFIXES))})[-_](?=[\w-]{{0,60}}?[0-9A-Z])[\w-]{{12,}}+"),
    (("xox", "xapp-"), rf"{_WORD}(?:xox[a-z]|xapp)-[\w-]{{8,}}+"),  # Slack
    (("AIza", "ya29.", "GOCSPX-"), rf"{_WORD}(?:AIza[\w-]{{30,}}+|ya29\.[\w.-]{{8,}}+|GOCSPX-[\w-]{{8,}}+)"),  # Google
    (("SG.",), rf"{_WORD}SG\.[\w-]{{8,}}+\.[\w-]{{8,}}+"),  # SendGrid
    (("hvs.", "hvb.", "hvr."), rf"{_WORD}hv[sbr]\.[\w-]{{8,}}+"),  # Vault
    (("SK", "key-", "dapi"), rf"{_WORD}(?:SK|key-|dapi)[0-9a-f]{{32}}{_END}"),  # Twilio, Mailgun, Databricks
    ((":",), rf"{_WORD}[0-9]{{8,10}}:[\w-]{{35}}(?![\w-])"),  # Telegram
    (("AGE-SECRET",), rf"{_WORD}AGE-SECRET-KEY-1[A-Z0-9]{{20,}}+"),
    (("NRAK-", "lsv2_"), rf"{_WORD}(?:NRAK-[A-Z0-9]{{20,}}+|lsv2_[a-z]{{2}}_[0-9a-f]{{16,}}+(?:_[0-9a-f]{{6,}}+)?)"),  # New Relic, LangSmith
    (("pat",), rf"{_WORD}pat[A-Za-z0-9]{{14}}\.[0-9a-f]{{64}}"),  # Airtable
    (("access_token$",), r"access_token\$[a-z]{4,16}\$[A-Za-z0-9]{8,}+\$[0-9a-f]{32}"),  # Braintree
    (("==",), r"(?<![A-Za-z0-9+/])(?<!sha512-)[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])"),  # Azure's keys of 64 bytes
    ((":thin:",), r"(?<=:thin:)[^\s/@]{1,64}/[^\s@]{1,128}(?=@)"),  # Oracle's way of writing user and password
    (("/services/", "/webhooks/"), r"(?<=hooks\.slack\.com/services/)[\w/]{8,}+|(?<=/api/webhooks/)[\w/-]{8,}+"),
    (("$",), r"(?<![\w$])\$(?:1|2[abxy]?|5|6|7|y|apr1|argon2(?:id?|d)|scrypt|pbkdf2[\w-]{0,16})\$[\w./$,=+-]{16,512}+"),  # hashes of passwords
    # What pydantic quotes of a value, whose field may be named anything.
    (("input_value=",), r"input_value=((?s:.{1,200}?)(?=,[ ]input_type=)|[^\r\n]++)"),
    # Command lines.
    (("mysql", "mariadb"), _command(r"mysql\w{0,20}|mariadb[\w-]{0,20}", "-p", "=?")),  # `-p` alone asks for the password
    (("-p",), _command(r"sshpass|mongo\w{0,12}|cqlsh|7za?|7zr|rar|unrar", "-p")),
    (("login",), _command("(?:docker|podman|helm registry|oras|crane|az|cf|oc|nerdctl|buildah)[ ]login", "-p")),
    (("-p",), rf"(?<![^\s\"'])-p{_QUOTED}{_LIKELY}({_BARE}{{6,256}}+)"),
    (("zip",), _command("(?:un)?zip", "-P")),
    (("redis-cli",), _command("redis-cli", "-a")),
    (("ldap",), _command(r"ldap\w{1,12}", "-w")),
    (("smb", "rpcclient"), _command("smbclient|smbmap|rpcclient", "-U|--user", before=r"[^\s%]{1,64}+%")),
    (("-u", "-user"), r"(?<![\w-])(?:-u[ =]{0,2}+|--(?:proxy-)?user[ =]{1,2}+)[\"']?(?=[\w.@+-]{1,64}:)([^\s\"']{3,256}+)"),
    # Files of passwords.
    (("passw",), r"(?i)(?<![\w-])(?:login|account|machine)\s{1,8}\S{1,128}\s{1,16}(?:account\s{1,8}\S{1,128}\s{1,16})?passw(?:or)?d\s{1,8}(\S{1,256}+)"),
    ((":5432:", ":5433:", ":6432:", ":*:"), rf"(?<![\w.:-])[\w.*-]{{1,128}}:(?:5432|5433|6432|\*):[\w.*-]{{1,64}}:[\w.*-]{{1,64}}:({_BARE}{{1,256}}+)"),
    # Statements and protocols.
    (("identified",), rf"(?i)identified\s{{1,8}}(?:with\s{{1,8}}\S{{1,64}}\s{{1,8}})?(?:by|as)\s{{1,8}}(?:password\s{{1,8}})?{_QUOTED}({_BARE}{{1,256}}+)"),
    (("requirepass", "masterauth"), rf"(?i)(?:requirepass|masterauth)\s{{1,8}}{_QUOTED}({_BARE}{{1,256}}+)"),
    (("AUTH ",), rf"(?<![\w-])AUTH[ ](?:(?:PLAIN|LOGIN|X?OAUTH2|OAUTHBEARER|CRAM-MD5|\w{{1,64}}(?=[ ]{_BARE}{{0,64}}[0-9]))[ ])?(?!X?OAUTH|CRAM-|SCRAM-){_LIKELY}({_BARE}{{4,512}}+)"),
    (("PASS ",), rf"(?<![\w-])USER[ ][^\r\n]{{1,128}}[\r\n]{{1,4}}[^\w\r\n]{{0,8}}PASS[ ]({_BARE}{{1,256}}+)"),
    (("LOGIN ",), rf"(?<![\w-])LOGIN[ ]{_QUOTED}[^\s\"']{{1,128}}{_QUOTED}[ ]{_QUOTED}{_LIKELY}({_BARE}{{1,256}}+)"),
    (("@",), r"(?<![\w.%+:-])([\w.%+-]{1,64}+:[^\s@:/\"']{1,128}+)@(?=tcp\(|unix\(|localhost\b|[0-9]{1,3}\.[0-9]{1,3}\.|[\w.-]{1,128}:[0-9])"),
)  # fmt: skip
_CARD = re.compile(
    r"[0-9]{4}(?<![A-Za-z0-9]....)(?<![0-9][.,]....)(?:[0-9]{10,15}|([ .-])(?:[0-9]{4}\1[0-9]{4}\1[0-9]{4}|[0-9]{6}\1[0-9]{4,5}))(?![A-Za-z0-9])"
)
_ISSUED = re.compile(
    "4[0-9]{15}(?:[0-9]{3})?|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    "|3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|35[0-9]{14}|6[0-9]{15,18}"
)
_SCHEME = re.compile(r"(?<![A-Za-z0-9])(bearer|basic)(\s{1,4}+|\s?[:=]\s?)([\w.~+/=-]{6,}+)", re.IGNORECASE)
_LONG = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9_-]{24,}+(?![+/])|[A-Za-z0-9+/]{40}={0,2}(?![A-Za-z0-9+/=_-])|(?<![:=])[A-Za-z0-9+/]{43}=(?![\w+/=:]))"
)
_SEGMENT, _AUTHORITY = re.compile("[A-Za-z0-9]++"), re.compile(r"[^\s\"'`<>/?#\\]*+")
_LONGEST_RANDOM, _SHORTEST_RANDOM, _BASE64, _LONGEST_USERINFO = 512, 16, (40, 43), 512


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)


def without_evident(text: str) -> str:
    """Return the text without evident secrets."""
    lower = text.lower()
    for marks, expression in _EVIDENT:
        where = lower if expression.startswith("(?i)") else text
        for mark in marks:
            if mark in where:
                text = _compiled(expression).sub(_last_group, text)
                break
    if "://" in text:
        text = _without_userinfo(text)
    if "bearer" in lower or "basic" in lower:
        text = _SCHEME.sub(_credentials, text)
    text = _CARD.sub(lambda match: REDACTED if _is_card(match[0]) else match[0], text)
    return _LONG.sub(lambda match: REDACTED if is_random(match[0]) else match[0], text)


def is_key(value: str) -> bool:
    """Return true if the value has the shape of a key, and is not an id that resembles one:
    `pat-000123456789` may be a patient.
    """
    return any(
        _has_all(found[0])
        for marks, expression in _EVIDENT
        if any(mark in value for mark in marks)
        for found in _compiled(expression).finditer(value)
    )


def _last_group(match: re.Match[str]) -> str:
    if match.lastindex is None:
        return REDACTED
    start, end = (at - match.start() for at in match.span(match.lastindex))
    return match[0][:start] + REDACTED + match[0][end:]


def _without_userinfo(text: str) -> str:
    """Return the text without the part before the `@` of a URL.

    The password may hold a `/` that is not escaped.
    """
    parts, position, found = [], 0, text.find("://")
    while found >= 0:
        start = found + 3
        authority = _AUTHORITY.match(text, start)
        assert authority is not None
        end = text.rfind("@", start, authority.end())
        if end < 0 and _has_password(authority[0]):
            window = text[start : start + _LONGEST_USERINFO].split(None, 1)
            end = start + window[0].rfind("@") if window and "@" in window[0] else -1
        if end >= 0:
            parts += [text[position:start], REDACTED]
            position = end
        found = text.find("://", max(authority.end(), end))
    return "".join((*parts, text[position:]))


def _has_password(authority: str) -> bool:
    """Return true if the authority of a URL has a password: a text behind its colon that is not a port."""
    _, colon, port = authority.partition(":")
    return bool(colon and port) and not port.isdecimal() and "[" not in authority


def _credentials(match: re.Match[str]) -> str:
    scheme, space, value = match.groups()
    if value.rstrip(".").lower() in PROSE or (scheme.lower() == "basic" and not _is_login(value)):
        return match[0]
    return f"{scheme}{space}{REDACTED}"


def _is_login(value: str) -> bool:
    """Return true if the value is `user:password` in base64."""
    try:
        return b":" in b64decode(value.rstrip(".=") + "=" * (-len(value.rstrip(".=")) % 4))
    except ValueError:
        return False


def _is_card(text: str) -> bool:
    """Return true if the text begins as the numbers of cards do, and its last digit is their check digit."""
    number = "".join(filter(str.isdigit, text))
    if not _ISSUED.fullmatch(number):
        return False
    digits = [int(digit) for digit in reversed(number)]
    return (sum(digits[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0


def is_random(value: str, shortest: int = _SHORTEST_RANDOM) -> bool:
    """Return true if a word looks random: letters of both cases and digits, one kind hardly ever after the
    same.

    Hashes and UUIDs have letters of one case only, and names in camel case change less often.
    """
    if not _SEGMENT.fullmatch(value[: _BASE64[0]]) and len(value.rstrip("=")) in _BASE64 and _has_all(value):
        return True  # the secret keys of AWS and of Azure's buses: 30 or 32 bytes in base64
    segments = _SEGMENT.findall(value[:_LONGEST_RANDOM])
    longest = max(segments, key=len, default="")
    if len(longest) < shortest or not _has_all(longest):
        return False
    pairs = [pair for segment in segments for pair in pairwise(map(_kind, segment))]
    return 100 * sum(one != other for one, other in pairs) >= 45 * len(pairs)


def _has_all(value: str) -> bool:
    return {"a", "A", "0"} <= set(map(_kind, value))


def _kind(character: str) -> str:
    return "a" if character.islower() else "A" if character.isupper() else "0"
