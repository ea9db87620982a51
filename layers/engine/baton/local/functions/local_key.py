"""The secret by which functions and the developer's own programs call the local Lambda API: it is their AWS access key id.

So every AWS SDK sends it by itself, and a page in a browser does not know it.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from pathlib import Path

FILE = "local-key"
_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 Credential=([A-Za-z0-9]{1,128})/")


def local_key(folder: Path) -> str:
    """Of the runs that share a folder: made once, in a file that only its owner reads."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / FILE
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if found := file.read_text().strip():
            return found
        handle = os.open(file, os.O_WRONLY | os.O_TRUNC)
    key = f"LOCAL{secrets.token_hex(16).upper()}"
    with os.fdopen(handle, "w") as out:
        out.write(f"{key}\n")
    return key


def is_signed_by(authorization: str, key: str) -> bool:
    """Tell whether the request is signed with this access key id. The signature itself proves no more, and is not checked."""
    found = _CREDENTIAL.match(authorization)
    return found is not None and hmac.compare_digest(found[1], key)
