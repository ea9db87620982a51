"""Names of secrets: the words that make a name one of a secret, and those that do not. For sanitise.py."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from unicodedata import combining, normalize

REDACTED = "[redacted]"


class Named(IntEnum):
    """Kinds of names of secrets. A password may be any word; `key` is the name of many things."""

    NOTHING = 0
    KEY = 1
    SECRET = 2
    PASSWORD = 3


def words(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())


_PASSWORDS = words("""
    password passwd pwd passphrase passcode passwords passphrases pw psw pswd passwrd passe
    passwort kennwort senha wachtwoord contrasena contrasenya motdepasse mdp haslo heslo jelszo parola losenord passord
    adgangskode salasana sifre lozinka zaporka geslo parool slaptazodis lykilord katasandi matkhau
    """)
_SECRETS = words("""
    pass secret secrets token credential credentials creds apikey authorization auth cookie cookies jwt sig signature otp totp
    mfa cvv cvc pin sessionid sid dsn sas connectionstring accesskey privatekey secretkey accesstoken refreshtoken idtoken
    clientsecret webhook mnemonic psk passkey
    """)
# Two such words, one after the other.
_KEYS = words("""
    api access private secret account shared encryption signing master storage auth service subscription license session
    ssh deploy host admin functions client project app application server consumer publishable model hmac aes des rsa dsa
    ecdsa cipher crypto encrypt decrypt decryption jwt token root team read write instrumentation preshared wrapping
    """)
_PAIRS = frozenset((word, "key") for word in _KEYS) | frozenset(
    tuple(pair.split("_"))
    for pair in words("""
    session_id pass_word pass_phrase connection_string webhook_url backup_code recovery_code seed_phrase pre_shared
    access_code security_code verification_code activation_code unlock_code login_code auth_code device_code pin_code
    mat_khau kata_sandi كلمة_المرور رمز_عبور κωδικος_προσβασης
    """)
)
_SECONDS = frozenset(second for _, second in _PAIRS)
# In scripts without spaces or case, where a name may end with the word.
_FOREIGN = tuple(
    words("""
    пароль пароля парол κωδικος パスワード 暗証番号 密码 密碼 口令 비밀번호 암호 סיסמה كلمةالمرور گذرواژه
    """)
)
# Names that have such a word and are none: `token_type: bearer`, `password_policy: strict`.
_HARMLESS_AFTER = words("""
    type types count counts limit limits budget usage length policy policies url uri endpoint id name names expiry
    expires expiration ttl age field fields hint error errors status valid invalid required missing reset changed
    version algorithm alg method provider size max min kind file path attempts enabled expired
    """)
_HARMLESS_BEFORE = words("max min page next prev previous continuation idempotency csrfless no num total")
_IN_SPITE = ("session_id", "webhook_url", "access_key_id")
_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "token", "cookie")
STEMS = tuple(
    stem
    for stem in sorted({*_PASSWORDS, *_SECRETS, "key", "code", "session", "connection", "phrase", "shared"})
    if not any(other != stem and other in stem for other in (*_PASSWORDS, *_SECRETS, "key"))
)
"""Stems of which each ASCII name of a secret contains one."""

_LONGEST_NAME = 100
# Not possessive, because APIKey is API and Key; names are short.
_PARTS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\\W\\x00-\\x7f]+")


@lru_cache(maxsize=4_096)
def named(name: str) -> Named:
    """Return the kind of a name: `DB_PASSWORD`, `X-Api-Key` and `mot de passe` are names of secrets;
    `max_tokens` is not.
    """
    name = name[-_LONGEST_NAME:]
    if not name.isascii():
        composed = normalize("NFC", name)
        name = _plain(name)
        if any(one.lower().strip("_").endswith(_FOREIGN) for one in (composed, name)):
            return Named.PASSWORD
    parts = [part.lower() for part in _PARTS.findall(name)]
    if parts == ["key"]:
        return Named.KEY
    if len(parts) > 1 and (parts[-1] in _HARMLESS_AFTER or parts[0] in _HARMLESS_BEFORE):
        return Named.SECRET if "_".join(parts).endswith(_IN_SPITE) else Named.NOTHING
    if parts and (parts[-1] in _PASSWORDS or parts[-1].endswith(_ENDINGS[:3])):
        return Named.PASSWORD
    if any(part in _SECRETS or part in _PASSWORDS or part.endswith(_ENDINGS) for part in parts):
        return Named.SECRET
    return Named.NOTHING if _PAIRS.isdisjoint(pairwise(parts)) else Named.SECRET


def is_secret(name: str) -> bool:
    """Return true if a value with this name is a secret, whatever the value."""
    return named(name) >= Named.SECRET


def two_words(first: str, second: str) -> bool:
    """Return true if the words are one name although a space is between them: `api key`."""
    pair = tuple(_plain(word).strip("_").lower() for word in (first, second)) if _is_second(second) else ()
    return pair in _PAIRS


@lru_cache(maxsize=4_096)
def _is_second(word: str) -> bool:
    return _plain(word).strip("_").lower() in _SECONDS


def _plain(name: str) -> str:
    """Return the text without accents."""
    if name.isascii():
        return name
    plain = "".join(one for one in normalize("NFKD", name) if not combining(one))
    return plain.replace("ł", "l").replace("ı", "i").replace("ð", "d")
