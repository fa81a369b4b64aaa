"""What names a database: the path of an SQLite file, or the address of a PostgreSQL database."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote_to_bytes

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.text import brief, pattern, printable, shown_path, similar

_SCHEME = pattern(r"(?i)\s*postgres(?:ql)?(?:\+\w+)?:/")
_OTHER_SCHEME = pattern(r"\s*([A-Za-z][A-Za-z0-9+.-]+)://")
_ADDRESS = pattern(
    r"(?i)postgres(?:ql)?://(?:(?P<user>[^@/:]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?P<hosts>[^@/?#]*)(?:/(?P<dbname>[^@?#]*))?(?:\?(?P<query>[^@#]*))?"
)
_HOST = pattern(r"(?:\[[0-9A-Fa-f:.%]*\]|[^\[\]:,]*)(?::\d{0,5})?")
_PARAMETER = pattern(r"(?P<name>[a-z_]+)=(?P<value>[^=&]*)")
_SHOWN_PARAMETERS = ("service", "host", "hostaddr", "port", "user", "dbname")


@dataclass(frozen=True)
class PostgresAddress:
    """The address of a PostgreSQL database; only `shown`, which has no password, is ever printed."""

    conninfo: str = field(repr=False)
    shown: str = field(compare=False)

    def __str__(self) -> str:
        return self.shown


Address = Path | PostgresAddress
EXPORT_ENDINGS = (".jsonl", ".jsonl.gz")  # of exported runs; others are SQLite files


def is_export(address: Address) -> bool:
    """Whether an address names an exported run, which is only read."""
    return isinstance(address, Path) and address.name.lower().endswith(EXPORT_ENDINGS)


def to_address(database: str | Address) -> Address:
    """The address, however it is given; an `InputError` if it is not valid, or of another kind.

    Nothing but the scheme of an address is shown: it may have a password.
    """
    if not isinstance(database, str):
        return database
    if _SCHEME.match(database):
        return parse_postgres(database)
    other = _OTHER_SCHEME.match(database)
    if other:
        near = similar(other[1].lower(), ["postgresql", "postgres"])
        hint = "did you mean postgresql://?" if near else "give postgresql://…, or the path of a file"
        raise InputError(f"an address that begins with {brief(other[1], 20)}:// is not known here; {hint}")
    return Path(database)


def parse_postgres(text: str) -> PostgresAddress:
    """An address such as `postgresql://reader@db.example/evals`; the rest of the connection is libpq's.

    Stricter than libpq, which takes a password with an unescaped @ or / apart, and prints the parts. No error
    shows any part of the text: what does not parse may be a password.
    """
    text = text.strip()
    found = _ADDRESS.fullmatch(text)
    if not re.match(r"(?i)postgres(?:ql)?://", text):
        raise _refusal("begins in another way")
    if not found:
        raise _refusal("has a character that must be written as %XX: / as %2F, @ as %40, # as %23")
    if not all(map(_HOST.fullmatch, found["hosts"].split(","))):
        raise _refusal("has a host or port that is none")
    parameters = (found["query"] or "").split("&") if found["query"] else []
    if not all(map(_PARAMETER.fullmatch, parameters)):
        raise _refusal("has a parameter that is not name=value; in a value, write & as %26 and = as %3D")
    if any(not _is_encoded(part) for part in (*found.groupdict().values(), *parameters) if part):
        raise _refusal("has a % that is not followed by two hexadecimal digits, or text that is not UTF-8")
    return PostgresAddress(f"postgresql://{text.partition('://')[2]}", _shown(found))


def _is_encoded(part: str) -> bool:
    """Whether it is percent-encoded text, without a NUL, which would end it."""
    if re.search(r"%(?![0-9A-Fa-f]{2})|[\x00-\x1f\x7f]", part):
        return False
    try:
        return "\0" not in unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        return False


def _shown(found: re.Match[str]) -> str:
    user = f"{found['user']}@" if found["user"] else ""
    database = f"/{found['dbname']}" if found["dbname"] else ""
    kept = [f"{name}={value}" for name, value in parse_qsl(found["query"] or "") if name in _SHOWN_PARAMETERS]
    parameters = f"?{'&'.join(kept)}" if kept else ""
    slash = "/" if parameters and not database else ""
    return printable(f"postgresql://{user}{found['hosts']}{database}{slash}{parameters}")


def _refusal(what: str) -> InputError:
    return InputError(
        f"the address of the PostgreSQL database {what}; it has the form"
        " postgresql://user@host:port/database?name=value (it is not shown here, for the sake of a password)"
    )


def shown_address(address: Address) -> str:
    """The address as messages have it, without a password."""
    return address.shown if isinstance(address, PostgresAddress) else shown_path(address)


def files_of(address: Address) -> tuple[Path, ...]:
    """The file that the database is, which nothing may write over; none on a server."""
    return () if isinstance(address, PostgresAddress) else (address,)


def is_database(path: Path) -> bool:
    """Whether a file is an SQLite database: it begins as they do."""
    if not path.is_file():  # opening a pipe would wait
        return False
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def placed(address: Address, place: Callable[[Path], Path]) -> Address:
    """The address with the path of a file put where `place` has it; that of a server as it is."""
    return address if isinstance(address, PostgresAddress) else place(address)


def same_database(address: Address, other: Address) -> bool:
    """Whether both name one database, as links to a file do."""
    if isinstance(address, PostgresAddress) or isinstance(other, PostgresAddress):
        return address == other
    try:
        return address.samefile(other)
    except OSError:  # one is not there, which is said when it is opened
        return False


def missing_directory(path: Path) -> str:
    """What is wrong with the directory in which a file is to be made, in words; empty if it is there."""
    directory = path.parent
    if directory.is_dir():
        return ""
    what = "is not a directory" if directory.exists() else "does not exist; make it first"
    return f"the directory {shown_path(directory)} {what}"
