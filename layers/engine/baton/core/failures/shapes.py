"""What secrets look like: their shapes, and the names that they stand behind. For sanitise.py.

Every expression takes a time that grows with the text and not faster: it begins at a boundary or a fixed text, and what
repeats is possessive (`++`), so that nothing is read twice.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from unicodedata import combining, normalize

REDACTED = "[redacted]"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A word that is part of a name, and makes it the name of a secret.
WORDS = _words("""
    password passwd pwd pass passphrase passcode secret secrets token credential credentials creds apikey authorization
    auth cookie cookies jwt sig signature otp totp mfa cvv cvc pin sessionid sid dsn sas connectionstring
    accesskey privatekey secretkey accesstoken refreshtoken idtoken clientsecret webhook mnemonic
    passwords passphrases passwort kennwort senha wachtwoord pw psw pswd passwrd psk passkey
    contrasena contrasenya motdepasse mdp haslo heslo jelszo parola losenord passord adgangskode salasana sifre
    """)
# In scripts without spaces or case, where a name may end with the word.
_FOREIGN = (
    "пароль",
    "пароля",
    "парол",
    "κωδικος",
    "パスワード",
    "暗証番号",
    "密码",
    "密碼",
    "口令",
    "비밀번호",
    "암호",
    "סיסמה",
    "كلمةالمرور",
)
# Two such words, one after the other.
PAIRS = frozenset(
    tuple(pair.split("_"))
    for pair in _words("""
    api_key access_key private_key secret_key account_key shared_key encryption_key signing_key master_key storage_key
    auth_key service_key subscription_key license_key session_key session_id ssh_key deploy_key host_key pass_word
    pass_phrase connection_string admin_key functions_key client_key project_key app_key application_key server_key
    consumer_key publishable_key model_key webhook_url backup_code recovery_code seed_phrase
    hmac_key aes_key des_key rsa_key dsa_key ecdsa_key cipher_key crypto_key encrypt_key decrypt_key decryption_key
    jwt_key token_key root_key team_key read_key write_key instrumentation_key pre_shared preshared_key wrapping_key
    access_code security_code verification_code activation_code unlock_code login_code auth_code device_code pin_code
    de_passe
    """)
)
# Names that have such a word and are none: `token_type: bearer`, `password_policy: strict`.
HARMLESS_AFTER = _words("""
    type types count counts limit limits budget usage length policy policies url uri endpoint id name names expiry
    expires expiration ttl age field fields hint error errors status valid invalid required missing reset changed
    version algorithm alg method provider size max min kind file path attempts enabled expired
    """)
HARMLESS_BEFORE = frozenset(
    [
        "max",
        "min",
        "page",
        "next",
        "prev",
        "previous",
        "continuation",
        "idempotency",
        "csrfless",
        "no",
        "num",
        "total",
    ]
)
# What may follow `password is`, `Bearer` and the like in a sentence about secrets in general.
PROSE = _words("""
    a an the is was are be been being of or and to for in on at by with not no never only also too very so as if it
    wrong invalid incorrect correct required missing expired empty null none weak strong unknown unset set needed expected
    longer already still now rejected accepted refused denied allowed valid revoked malformed unsupported supported absent
    present optional mandatory authentication authorization auth scheme schemes token tokens header headers credentials
    realm error errors format type must may can cannot should will has have had that this from which failed failure
    """)

_IN_SPITE = ("session_id", "webhook_url", "access_key_id")

STEM = re.compile(
    "pass|pwd|secret|token|cred|auth|cookie|key|sig|jwt|otp|mfa|cvv|cvc|pin|session|sid|dsn|sas|bearer|connection"
    "|webhook|mnemonic|code|phrase|kennwort|senha|wachtwoord|pw|psw|psk|shared|contrase|mdp|has[lł]o|heslo|jelsz|parol"
    "|l[oö]senord|salasana|[sş]ifre|kode|[^\\x00-\\u0370]",
    re.IGNORECASE,
)
_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "token", "cookie")
_LONGEST_NAME = 100
# Not possessive, because APIKey is API and Key; names are short.
_PARTS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _plain(name: str) -> str:
    """Without accents."""
    return (
        "".join(one for one in normalize("NFKD", name) if not combining(one))
        .replace("ł", "l")
        .replace("ı", "i")
    )


@lru_cache(maxsize=4_096)
def is_secret(name: str) -> bool:
    """Whether a value with this name is a secret: `db_password`, `X-Api-Key`, `clientSecret`; not `max_tokens`."""
    name = name[-_LONGEST_NAME:]
    if not name.isascii():
        if normalize("NFC", name).lower().strip("_").endswith(_FOREIGN):
            return True
        name = _plain(name)
    parts = [part.lower() for part in _PARTS.findall(name)]
    if len(parts) > 1 and (parts[-1] in HARMLESS_AFTER or parts[0] in HARMLESS_BEFORE):
        return "_".join(parts).endswith(_IN_SPITE)
    return (
        not WORDS.isdisjoint(parts)
        or not PAIRS.isdisjoint(pairwise(parts))
        or any(part.endswith(_ENDINGS) for part in parts)
    )


# Not in the middle of a word, nor behind one and a hyphen: so that each word is looked at once.
_START = r"(?<![A-Za-z0-9])(?<![A-Za-z0-9][-_])"
# Shapes that are a secret wherever they stand. No group: all of it goes.
SHAPES: tuple[str, ...] = (
    r"(?<![\w-])eyJ[\w-]{4,}+\.[\w-]{2,}+(?:\.[\w-]*+){0,3}",  # JWT and JWE
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS access keys
    _START + r"(?:sk|rk|pk|whsec|rsk)[-_](?=[\w-]{0,60}?[0-9A-Z])[\w-]{16,}+",  # OpenAI, Anthropic, Stripe
    _START
    + r"(?:gh[pousr]|github_pat|glpat|gldt|glrt|npm|pypi|hf|dop_v1|doo_v1|shp(?:at|ca|pa|ss)|sbp|sntrys?|figd|lin_api|tskey|PMAK|rubygems|dckr_pat|pat|sq0[a-z]{3}|nfp|vercel|tfp|ATATT3x?)[-_](?=[\w-]{0,60}?[0-9A-Z])[\w-]{12,}+",
    r"(?<![A-Za-z0-9])xox[a-z]-[\w-]{8,}+|(?<![A-Za-z0-9])xapp-[\w-]{8,}+",  # Slack
    r"(?<![A-Za-z0-9])AIza[\w-]{30,}+",  # Google
    r"(?<![A-Za-z0-9])ya29\.[\w.-]{8,}+",
    r"(?<![A-Za-z0-9])GOCSPX-[\w-]{8,}+",
    r"(?<![A-Za-z0-9])SG\.[\w-]{8,}+\.[\w-]{8,}+",  # SendGrid
    r"(?<![A-Za-z0-9])hv[sbr]\.[\w-]{8,}+",  # Vault
    r"(?<![A-Za-z0-9])(?:SK|key-|dapi)[0-9a-f]{32}(?![A-Za-z0-9])",  # Twilio, Mailgun, Databricks
    r"(?<![A-Za-z0-9])[0-9]{8,10}:[\w-]{35}(?![\w-])",  # Telegram
    r"(?<![A-Za-z0-9])AGE-SECRET-KEY-1[A-Z0-9]{20,}+",
    r"(?<![A-Za-z0-9+/])(?<!sha512-)[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])",  # Azure's keys of 64 bytes
    r"(?<![A-Za-z0-9])NRAK-[A-Z0-9]{20,}+|(?<![A-Za-z0-9])lsv2_[a-z]{2}_[0-9a-f]{16,}+(?:_[0-9a-f]{6,}+)?",  # New Relic, LangSmith
    r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",  # Airtable
    r"access_token\$[a-z]{4,16}\$[A-Za-z0-9]{8,}+\$[0-9a-f]{32}",  # Braintree
    _START + r"gl(?:cbt|ptt|ft|soat|agent|oas|imt|ffct|rtr|wt)-[\w-]{12,}+",  # GitLab
    r"(?<=:thin:)[^\s/@]{1,64}/[^\s@]{1,128}(?=@)",  # Oracle's way of writing user and password
    r"(?<=hooks\.slack\.com/services/)[\w/]{8,}+|(?<=/api/webhooks/)[\w/-]{8,}+",
)
