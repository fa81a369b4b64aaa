"""What looks like a secret in a configuration or a text, replaced by `***`.

A secret is known by its key (`api_key`, `clientSecret`), by where it stands in a text (`user:password@host`,
`?sig=…`), or by its own shape (`sk-…`, a JWT, a private key).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any, NamedTuple

from pytest_kebab_eval.limits import MASKED_DEPTH
from pytest_kebab_eval.text import pattern

MASK = "***"
_KEPT = ("chunker_version",)  # a plain value of these keys, whatever the patterns are

# -- by its key --------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS = _words(
    "password passwords passwd pwd passphrase secret secrets jwt bearer credential credentials authorization"
    " cookie cookies connstr connectionstring apikey apikeys accesskey secretkey privatekey accountkey"
    " apitoken authtoken"
)
_SECRET_ENDINGS = ("password", "passwd", "apikey", "secretkey")  # `PGPASSWORD`
_OTHER_KEYS = _words(  # `openai_key` is a secret, `primary_key` is none
    "cache chunk config dedup dedupe dict doc document field foreign group hash idempotency index join json"
    " lookup map metadata object partition primary public range row routing shard sort text unique value"
)
_OWNED_KEYS = _words("access account api private secret")  # also of `access_key_id`
_TOKENS = _words(  # of a text and not of a user: `eos_token`, `cost_per_token`
    "additional bos by cls doc each end eos first image last mask max min next pad per prompt query sep"
    " special start stop unk"
)
_OWNED_TOKENS = _words("access api auth bearer refresh secret session user")
_ABOUT_SECRETS = _words(  # `password_min_length` and `api_key_env` are about a secret, and are none
    "column count domain enabled env expires expiry field len length limit name policy required timeout ttl"
    " type var"
)


def is_secret_key(key: str) -> bool:
    """Whether a key names a secret, by its whole words in snake, camel or kebab case."""
    words = [word.lower() for word in _WORD.findall(key)]
    if not words or words[-1] in _ABOUT_SECRETS:
        return False
    pairs = list(pairwise(words))
    return (
        not _SECRET_WORDS.isdisjoint(words)
        or any(word.endswith(_SECRET_ENDINGS) for word in words)
        or words[-1] in ("pass", "pat", "pw")
        or words == ["auth"]
        or (words[-1] in ("key", "keys") and len(words) > 1 and words[-2] not in _OTHER_KEYS)
        or any(second in ("key", "keys") and first in _OWNED_KEYS for first, second in pairs)
        or any(pair in (("connection", "string"), ("conn", "string"), ("conn", "str")) for pair in pairs)
        or (words[-1] == "token" and (len(words) == 1 or words[-2] not in _TOKENS))
        or (words[-1] == "tokens" and len(words) > 1 and words[-2] in _OWNED_TOKENS)
    )


# -- in a text ---------------------------------------------------------------------------------------

# None of these takes longer than the text is long, whatever it is.
_MISTYPED = pattern(r"(?i)(\bpostgres\w*:?/+[^\s:@/]*):[^\s\"'<>]*@")  # postgresql//me:secret@host
_WITHOUT_SPACE = pattern(r"[^\s\"'<>]+")
_LOGIN = pattern(r"(?i)([a-z][a-z0-9+.-]{0,30}):/{1,3}[^/?#:@]*:")  # up to where a password would start
_WEB = ("http", "https", "ws", "wss", "ftp")
_PATH = pattern(r"[/?#]|\Z")
_ASSIGNED = pattern(
    r"""(?<![\w.-])(-{0,2}[A-Za-z][\w.-]{0,200})(["']?\s?=\s?|["']\s?:\s?)("[^"]*"|'[^']*'|[^\s;&,"'<>]+)"""
)
_LABELLED = pattern(  # `X-Api-Key: …`; `token: …` may be a sentence
    r"(?i)(?<![\w.-])(\w{1,50}[-_][\w-]{1,100}|password|passwd|pwd|passphrase)(\s?:\s?)([^\s;&,\"'<>]+)"
)
_FLAG = pattern(r"(?<!\S)(--?[A-Za-z][\w-]{0,100})(\s{1,3})([^\s\"'<>-][^\s\"'<>]*)")
_USER_FLAG = pattern(r"(?<!\S)((?:-u|--user)\s{1,3}[^\s:]{1,100}:)\S+")
_TOKEN_AS_USER = pattern(r"(?i)(\b(?:https?|wss?)://)[^\s/?#:@]{16,}(?=@)")
_IN_ADDRESS = pattern(r"(?i)([?&](?:key|sig|signature|code|auth|x-amz-[a-z-]{1,30})=)[^\s&\"'<>]+")
_HEADER = pattern(
    r"(?i)\b(authorization\s?[:=]\s?(?:(?:bearer|basic|token)\s{1,3})?|bearer\s(?=[^\s\"',;]{6}\S{0,60}\d))"
    r"[^\s\"',;]+"
)
_SHAPES = pattern(
    r"(?s)-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"(?:sk|rk|pk|gsk|xai|pcsk|lsv2|glpat|pypi|dop_v1|npm|hf|r8)[-_](?=[\w-]{0,40}\d)[\w-]{16,}"
    r"|gh[pousr]_\w{16,}|github_pat_\w{16,}|xox[a-z]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w-]{16,}|SG\.[\w-]{16,80}\.[\w-]{16,}"
    r"|eyJ[\w.-]{20,}"
    r")"
    r"|(?<=hooks\.slack\.com/services/)[\w/]+"
)


def mask_addresses(text: str) -> str:
    """The text without passwords in addresses, also in one of PostgreSQL that is not typed right."""
    text = _WITHOUT_SPACE.sub(lambda found: _mask_login(found[0]), text)
    return _MISTYPED.sub(rf"\1:{MASK}@", text)


def mask_text(text: str) -> str:
    """The text without passwords in addresses, assigned secrets and well-known tokens."""
    text = _SHAPES.sub(MASK, text)
    if "-" in text:
        text = _FLAG.sub(_mask_assigned, _USER_FLAG.sub(rf"\1{MASK}", text))
    if ":" not in text and "=" not in text:
        return text
    text = _TOKEN_AS_USER.sub(rf"\1{MASK}", text)
    text = mask_addresses(text) if "@" in text else text
    text = _HEADER.sub(rf"\1{MASK}", text)
    text = _IN_ADDRESS.sub(rf"\1{MASK}", text)
    return _LABELLED.sub(_mask_assigned, _ASSIGNED.sub(_mask_assigned, text))


def _mask_login(address: str) -> str:
    """The address without passwords; one ends at the last `@`, in a web address before its path."""
    if ":/" not in address or "@" not in address:
        return address
    shown, done = [], 0
    for login in _LOGIN.finditer(address):
        path = _PATH.search(address, login.end()) if login[1].lower() in _WEB else None
        at = address.rfind("@", login.end(), path.start() if path else len(address))
        if login.end() >= done and at > login.end():
            shown += [address[done : login.end()], MASK]
            done = at
    return "".join([*shown, address[done:]])


def _mask_assigned(found: re.Match[str]) -> str:
    if not is_secret_key(found[1].rpartition(".")[2]):
        return found[0]
    quote = found[3][0] if found[3][0] in "\"'" else ""
    return f"{found[1]}{found[2]}{quote}{MASK}{quote}"


# -- in a configuration ------------------------------------------------------------------------------


class Masked(NamedTuple):
    """A configuration without its secrets, and a digest of each of them by its dotted key.

    The digests are of this process alone: they tell whether two secrets differ, and nothing else.
    """

    config: dict[str, Any]
    digests: dict[str, str]


def mask_config(config: Mapping[str, Any], patterns: Sequence[str] = ()) -> Masked:
    """Mask what looks like a secret, and what a pattern matches; results are matched by the chunker version.

    A pattern is that of a file name (`*`, `?`), for a key at any depth or for a whole dotted key.
    """
    masker = _Masker(tuple(pattern.lower() for pattern in patterns), {})
    kept = {key: config[key] for key in _KEPT if isinstance(config.get(key), (str, int, float))}
    return Masked(masker.entries(config) | kept, masker.digests)


class _Masker(NamedTuple):
    """Masks values, and keeps a digest of each that it masks."""

    patterns: tuple[str, ...]
    digests: dict[str, str]

    def entries(self, config: Mapping[str, Any], prefix: str = "", depth: int = 1) -> dict[str, Any]:
        """All entries of a mapping; a key may be a secret itself."""
        names = {name: mask_text(str(name)) for name in config}
        return {
            shown: self.value(config[name], _key_of(name, config), f"{prefix}{shown}", depth)
            for name, shown in names.items()
        }

    def value(self, value: Any, key: str, path: str, depth: int) -> Any:
        """The value of a key; a number counts only where the key is that of a secret."""
        if value is None or isinstance(value, bool) or value in ("", [], {}, MASK):
            return value
        if depth > MASKED_DEPTH or is_secret_key(key) or self._is_listed(key, path):
            return self._hide(value, MASK, path)
        if isinstance(value, Mapping):
            return self.entries(value, f"{path}.", depth + 1)
        if isinstance(value, (list, tuple)):
            keys = ["", *map(_flag_in, value)]  # `--token` is the key of what follows it
            return [self.value(inner, keys[at], f"{path}.{at}", depth + 1) for at, inner in enumerate(value)]
        masked = mask_text(value) if isinstance(value, str) else value
        return self._hide(value, masked, path) if masked != value else value

    def _is_listed(self, key: str, path: str) -> bool:
        names = (key.lower(), path.lower())
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.patterns)

    def _hide(self, value: Any, masked: str, path: str) -> str:
        self.digests[path] = _digest(value)
        return masked


def _flag_in(part: Any) -> str:
    return part if isinstance(part, str) and part.startswith("-") and "=" not in part else ""


def _key_of(name: Any, config: Mapping[str, Any]) -> str:
    """The key of an entry; of `{"name": "api_key", "value": …}`, that of the value is its name."""
    named = config.get("name", config.get("key")) if name == "value" else None
    return named if isinstance(named, str) else str(name)


_DIGEST_KEY = os.urandom(16)


def _digest(value: Any) -> str:
    import hashlib

    try:
        text = repr(value)
    except RecursionError:
        text = "nested too deeply"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_DIGEST_KEY, digest_size=16).hexdigest()


def changed_secrets(a: Mapping[str, str], b: Mapping[str, str]) -> Iterator[str]:
    """The dotted keys whose secrets differ, by their digests, in order."""
    return (key for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key))
