"""The address of a database: which kind it is, when two are one, and that no text shows its password."""

from __future__ import annotations

import pickle
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_kebab_eval import InputError, RunRecorder, compute_aggregate
from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import files_of, open_database, same_database, shown_address, to_address
from pytest_kebab_eval.store.address import PostgresAddress
from tests.integration.conftest import call

WORD = "Pa55"  # what every password of these tests has in it, and nothing else
PASSWORDS = st.builds("{}{}{}".format, st.text(max_size=8), st.just(WORD), st.text(max_size=8))
ADDRESS = "postgresql://gate@db.example:5433/evals"


def test_a_path_is_a_file_and_an_address_is_none() -> None:
    assert to_address("kebab.sqlite") == to_address(Path("kebab.sqlite")) == Path("kebab.sqlite")
    found = to_address("postgres://gate@db.example/evals")
    assert isinstance(found, PostgresAddress)
    assert to_address(found) is found
    assert (files_of(found), files_of(Path("k"))) == ((), (Path("k"),))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "postgressql://boss:Pa55@db.example/evals",
            "postgressql:// is not known here; did you mean postgresql://?",
        ),
        (
            "mysql://boss:Pa55@db.example/evals",
            "mysql:// is not known here; give postgresql://…, or the path of",
        ),
        ("sqlite:///Pa55.sqlite", "sqlite:// is not known here; give postgresql://…, or the path of a file"),
    ],
)
def test_an_address_of_another_kind_is_no_path_and_not_shown(given: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        to_address(given)
    assert said in str(raised.value)
    assert WORD not in str(raised.value)
    called = call("runs", "--db", given)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr.startswith("kebab-eval: --db: an address that begins with ")
    assert WORD not in called.stderr


def test_a_path_with_a_colon_or_of_windows_is_a_path() -> None:
    for path in ("C:/evals/kebab.sqlite", "C://evals/kebab.sqlite", "a:b.sqlite", "runs/x://y"):
        assert to_address(path) == Path(path)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://gate:pw@db.example:5433/evals", ADDRESS),
        ("postgres://gate:pw@db.example:5433/evals?sslmode=require&password=pw", ADDRESS),
        ("PostgreSQL://gate:p%40w:x?y@db.example:5433/evals", ADDRESS),
        (" postgresql://gate@db.example:5433/evals\n", ADDRESS),
        ("postgresql://", "postgresql://"),
        ("postgresql:///evals", "postgresql:///evals"),
        ("postgresql://[::1]:5433,other:1/evals", "postgresql://[::1]:5433,other:1/evals"),
        ("postgresql:///?service=evals&passfile=/x", "postgresql:///?service=evals"),
        (
            "postgresql:///evals?host=/run/pg&user=gate&password=pw&port=1",
            "postgresql:///evals?host=/run/pg&user=gate&port=1",
        ),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, shown: str) -> None:
    address = to_address(given)
    assert (shown_address(address), str(address)) == (shown, shown)
    assert repr(address) == f"PostgresAddress(shown={shown!r})"


def test_addresses_are_compared_with_their_passwords_and_kept_when_they_are_sent() -> None:
    first, other = to_address("postgresql://a:1@h/d"), to_address("postgresql://a:2@h/d")
    assert first == to_address("postgres://a:1@h/d") != other
    assert same_database(first, to_address("postgres://a:1@h/d"))
    assert not same_database(first, other)
    assert not same_database(first, Path("k"))
    assert len({first, other, to_address("postgresql://a:1@h/d")}) == 2
    assert pickle.loads(pickle.dumps(first)) == first


# What libpq takes apart, and would show: the password has a character that ends it, or is no value.
BROKEN = [
    "postgresql://gate:{}@x@db.example/evals",
    "postgresql://gate:{}/x@db.example/evals",
    "postgresql://gate:x/{}@db.example/evals",
    "postgresql://gate:{}",
    "postgresql://gate:{}#x@db.example/evals#{}",
    "postgresql://gate@db.example:{}/evals",
    "postgresql://gate@db.example/evals?password={}&x",
    "postgresql://gate@db.example/evals?password={}&{}",
    "postgresql://gate@db.example/evals?password={}=x",
    "postgresql://gate@db.example/evals?{}",
    "postgresql://gate:%zz{}@db.example/evals",
    "postgresql://gate:%ff{}@db.example/evals",
    "postgresql://gate:%00{}@db.example/evals",
    "postgresql:/gate:{}@db.example/evals",
    "postgresql+psycopg://gate:{}@db.example/evals",
]


@pytest.mark.parametrize("text", BROKEN)
def test_an_address_that_does_not_parse_is_refused_and_none_of_it_is_shown(text: str) -> None:
    with pytest.raises(
        InputError, match=r"^the address of the PostgreSQL database .*; it has the form"
    ) as caught:
        to_address(text.format(*["sesame"] * text.count("{}")))
    assert not any(part in str(caught.value) for part in ("sesame", "gate", "db.example"))


@pytest.mark.parametrize(
    "parameter", ["nosuch=sesame", "sesame=1", "port=sesame", "sslmode=sesame", "keepalives=sesame"]
)
def test_what_libpq_refuses_is_one_sentence(parameter: str) -> None:
    pytest.importorskip("psycopg")
    called = call("runs", "--db", f"postgresql://gate@127.0.0.1:1/evals?{parameter}")
    assert called.code == 2
    (line,) = called.stderr.splitlines()
    assert line.startswith(
        ("kebab-eval: cannot connect to", "kebab-eval: postgresql://gate@127.0.0.1:1/evals")
    )


def test_of_several_hosts_the_last_one_says_why() -> None:
    pytest.importorskip("psycopg")
    called = call("runs", "--db", "postgresql://gate:Pa55@127.0.0.1:1,127.0.0.1:2/evals")
    assert called.stderr == (
        "kebab-eval: cannot connect to postgresql://gate@127.0.0.1:1,127.0.0.1:2/evals:"
        ' connection to server at "127.0.0.1", port 2 failed: Connection refused; check the address,'
        " and that the server runs and can be reached\n"
    )


# -- no text has the password ----------------------------------------------------------------------


def said(db: str) -> str:
    """All that this package says of a database that cannot be reached."""
    texts = []
    for action in (_shown, _read, _record, _score):
        try:
            texts.append(action(db))
        except KebabEvalError as error:
            texts += [str(error), repr(error), repr(error.__cause__), str(error.__context__ and "")]
    for arguments in (("runs",), ("compare", "a", "b")):
        called = call(*arguments, "--db", db)
        texts += [called.stdout, called.stderr]
    return "\n".join(texts)


def _shown(db: str) -> str:
    address = to_address(db)
    if isinstance(address, Path):
        return shown_address(address)
    settings = Settings(run_a="a", run_b="b", db_a=address, db_b=address, golden=Path("g"))
    return f"{address} {address!r} {shown_address(address)} {settings} {settings!r}"


def _read(db: str) -> str:
    with open_database(to_address(db)):
        return "opened"


def _record(db: str) -> str:
    with RunRecorder(db, run_id="r", commit_hash=""):
        return "opened"


def _score(db: str) -> str:
    golden = Path(__file__).parents[3] / "examples/quickstart/golden_queries.yaml"
    return repr(compute_aggregate("a", db=db, golden=golden))


WAYS = {
    "percent-encoded": lambda password: f"postgresql://gate:{quote(password, safe='')}@127.0.0.1:1/evals",
    "as it is": lambda password: f"postgresql://gate:{password}@127.0.0.1:1/evals",
    "as a parameter": lambda password: (
        f"postgresql://gate@127.0.0.1:1/evals?password={quote(password, safe='')}"
    ),
    "as a parameter as it is": lambda password: f"postgresql://gate@127.0.0.1:1/evals?password={password}",
    "of a key": lambda password: (
        f"postgresql://gate@127.0.0.1:1/evals?sslpassword={quote(password, safe='')}"
    ),
}


@pytest.mark.parametrize("way", WAYS)
@given(password=PASSWORDS)
@example("Pa55@x/y")
@example("x/Pa55")
@example("x@Pa55")
@example("x&Pa55")
@example("x Pa55'\"\\")
@example("Pa55 host=elsewhere password=Pa55")
@example("x#Pa55?Pa55=Pa55&Pa55")
def test_a_password_is_in_nothing_that_is_said(way: str, password: str) -> None:
    pytest.importorskip("psycopg")
    try:
        db = WAYS[way](password)
    except UnicodeEncodeError:  # a lone surrogate, which cannot be percent-encoded
        return
    assert WORD not in said(db)


@pytest.mark.parametrize(
    "given_as", ["host=h password='Pa55 x'", "dbname=evals password=Pa55", "user=u password = Pa55"]
)
def test_a_password_of_the_keyword_form_which_is_a_file_name_is_masked(given_as: str) -> None:
    assert WORD not in said(given_as)


def test_a_password_of_the_environment_is_not_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    service = tmp_path / "services.conf"
    service.write_text("[evals]\nhost=127.0.0.1\nport=1\nuser=gate\npassword=Pa55-of-service\n")
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.setenv("PGPASSWORD", "Pa55-of-variable")
    text = said("postgresql:///?service=evals")
    assert WORD not in text
    assert "cannot connect to postgresql:///?service=evals: connection to server at" in text


# -- psycopg is not there --------------------------------------------------------------------------


def test_without_psycopg_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_kebab_eval.store import postgres

    monkeypatch.setattr(postgres, "psycopg", None)
    expected = (
        "postgresql://gate@db.example:5433/evals is read with psycopg 3, which is not installed here;"
        " install it with: pip install 'pytest-kebab-eval[postgres]'"
    )
    called = call("runs", "--db", ADDRESS)
    assert (called.code, called.stderr) == (2, f"kebab-eval: {expected}\n")
    with pytest.raises(InputError) as caught, RunRecorder(ADDRESS, run_id="r"):
        pass
    assert str(caught.value) == expected
