"""What is taken for a secret, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.text.masking import MASK, changed_secrets, is_secret_key, mask_config, mask_text

# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        *(
            "api_key",
            "apiKey",
            "API-KEY",
            "apikey",
            "OPENAI_API_KEY",
            "openaiApiKey",
            "api_keys",
            "x-api-key",
        ),
        *("openai_key", "qdrantKey", "hf_key", "COHERE_KEY", "azure_openai_keys", "license-key"),
        *("token", "access_token", "hf_token", "authToken", "GITHUB_TOKEN", "api_tokens", "refreshTokens"),
        *("secret", "client_secret", "clientSecret", "secret_access_key", "SECRET_KEY", "secretkey"),
        *("password", "db_password", "dbPassword", "passwd", "pwd", "PGPASSWORD_password", "password2"),
        *("credential", "credentials", "aws_credentials", "authorization", "Authorization", "bearer"),
        *("private_key", "privateKeyPem", "private-key", "access_key", "access_key_id", "AccountKey"),
        *(
            "cookie",
            "session_cookies",
            "connection_string",
            "connectionString",
            "conn_str",
            "passphrase",
            "jwt",
        ),
    ],
)
def test_a_key_that_names_a_secret(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "max_tokens",
            "token_limit",
            "tokenizer",
            "keyword",
            "keywords",
            "tokens",
            "prompt_tokens",
            "maxTokens",
        ),
        *(
            "token_estimate",
            "token_overlap",
            "eos_token",
            "padToken",
            "time_to_first_token",
            "cost_per_token",
        ),
        *("partitionKey", "chunk_key", "metadata_keys", "keys", "public_key"),
        *("primary_key", "foreign_key", "key", "cache_key", "sort-key", "monkey", "author", "authors"),
        *("password_min_length", "api_key_env", "secret_name", "cookie_domain", "passage", "bypass"),
        *(
            "chunker_version",
            "model_id",
            "rrf_k",
            "score_gate",
            "secretary",
            "tokenization",
            "",
            "42",
            "ключ",
        ),
    ],
)
def test_a_key_that_names_none(key: str) -> None:
    assert not is_secret_key(key)


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://me:hunter2@db/x", "postgresql://me:***@db/x"),
        ("postgresql:/me:hunter2@db/x", "postgresql:/me:***@db/x"),
        ("postgresql+psycopg://me:p@ss/w:rd@db:5432/x", "postgresql+psycopg://me:***@db:5432/x"),
        ("https://a:80/x,https://me:hunter2@b/y", "https://a:80/x,https://me:***@b/y"),
        ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
        ("https://me:hunter2@example.org/a?b=c", "https://me:***@example.org/a?b=c"),
        ("https://x.org/v1?api_key=hunter2&k=5", "https://x.org/v1?api_key=***&k=5"),
        ("https://x.org/blob?sv=1&sig=hunter2%3D", "https://x.org/blob?sv=1&sig=***"),
        ("host=db user=me password=hunter2 dbname=x", "host=db user=me password=*** dbname=x"),
        ("host=db password='hunter 2' dbname=x", "host=db password='***' dbname=x"),
        ("Server=s;Password=hunter2;AccountKey=hunter2==", "Server=s;Password=***;AccountKey=***"),
        ('{"api_key": "hunter2", "k": 5}', '{"api_key": "***", "k": 5}'),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("curl -H 'Authorization: Basic aHVudGVyMg=='", "curl -H 'Authorization: Basic ***'"),
        ("index --password=hunter2 --api-key=hunter2", "index --password=*** --api-key=***"),
        ("index --password hunter2 --tokenizer bert", "index --password *** --tokenizer bert"),
        ("PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"),
        ("password: hunter2", "password: ***"),
        ("curl -H 'X-Api-Key: hunter2'", "curl -H 'X-Api-Key: ***'"),
        ("Authorization: Bearer S6SEC", "Authorization: Bearer ***"),
        ("curl -u me:hunter2 https://x.org", "curl -u me:*** https://x.org"),
        ("https://abcdefghijklmnop@x.org/y", "https://***@x.org/y"),
        ("https://hooks.slack.com/services/T0/B0/aBcD", "https://hooks.slack.com/services/***"),
        ("use sk-proj-abc123def456ghi789 here", "use *** here"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "***"),
        ("key AKIAIOSFODNN7EXAMPLE.", "key ***."),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "***"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nx", "***\nx"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut", "***"),
    ],
)
def test_a_secret_in_a_text_is_masked(text: str, masked: str) -> None:
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        *(
            "https://example.org:8080/a@b?email=x@y.org",
            "http://localhost:11434/api",
            "mailto:me@example.org",
        ),
        *("text-embedding-3-small", "gpt-4o-2024-08-06", "risk-assessment-of-the-third-quarter-2024"),
        *("task-specific-instructions-v2", "sk-learn", "a bearer of good news", "basic understanding"),
        *("max_tokens=512 top_k=5", "C:\\data\\a@b", "token: the smallest unit", "git@github.com:a/b.git"),
        *("BAAI/bge-small-en-v1.5", "sentence-transformers/all-MiniLM-L6-v2", "", "12:30"),
    ],
)
def test_a_text_without_a_secret_stays_as_it_is(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "a:/",
        "a:/:@",
        "https://a:b@",
        "sk-",
        "eyJ-",
        "a='",
        "x",
        "authorization:",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_a_long_text_takes_no_longer_than_it_is_long(part: str) -> None:
    mask_text(f"{part * 30_000} @")  # half a minute, if each place looked at all the rest


# -- configurations --------------------------------------------------------------------------------


def masked(config: dict[str, Any], *patterns: str) -> dict[str, Any]:
    return mask_config(config, patterns).config


def test_secrets_are_masked_at_any_depth() -> None:
    config = {"llm": {"model_id": "m", "api_key": "x"}, "hosts": [{"url": "redis://:pw@h", "port": 1}]}
    assert masked(config) == {
        "llm": {"model_id": "m", "api_key": MASK},
        "hosts": [{"url": "redis://:***@h", "port": 1}],
    }


def test_what_a_secret_key_holds_is_masked_whole() -> None:
    assert masked({"credentials": {"user": "me", "n": 1}, "api_keys": ["a", "b"], "password": 1234}) == {
        "credentials": MASK,
        "api_keys": MASK,
        "password": MASK,
    }


def test_nothing_is_no_secret() -> None:
    config: dict[str, Any] = {"password": None, "api_key": "", "secrets": {}, "token": True, "cookies": []}
    assert masked(config) == config
    assert mask_config(config).digests == {}


def test_a_pattern_is_for_a_key_at_any_depth_or_for_a_dotted_one() -> None:
    config = {"host": "a", "db": {"host": "b", "name": "n"}, "llm": {"Endpoint": "e"}}
    assert masked(config, "host") == {
        "host": MASK,
        "db": {"host": MASK, "name": "n"},
        "llm": {"Endpoint": "e"},
    }
    assert masked(config, "db.*") == {
        "host": "a",
        "db": {"host": MASK, "name": MASK},
        "llm": {"Endpoint": "e"},
    }
    assert masked(config, "llm.end*") == {**config, "llm": {"Endpoint": MASK}}
    assert masked(config, "db") == {**config, "db": MASK}


def test_a_key_to_keep_is_not_masked() -> None:
    assert mask_config({"chunker_version": "v1", "x": "y"}, ["*"]).config == {
        "chunker_version": "v1",
        "x": MASK,
    }


@pytest.mark.parametrize("depth", [10, 60, 300, 2000])
def test_a_configuration_that_is_nested_too_deeply_is_masked_there(depth: int) -> None:
    config: dict[str, Any] = {"x": "sk-abcdefgh12345678"}
    for number in range(depth):
        config = {"x": [config]} if number % 2 else {"x": config}
    assert "sk-abc" not in str(masked(config))


def test_a_key_may_be_a_secret_itself() -> None:
    found = mask_config({"users": {"sk-abcdefgh12345678": {"password": "x"}}})
    assert found.config == {"users": {MASK: {"password": MASK}}}
    assert list(found.digests) == ["users.***.password"]


def test_a_key_to_keep_is_searched_all_the_same_if_it_holds_more_than_a_value() -> None:
    config = {"chunker_version": {"name": "v1", "token": "x"}}
    assert mask_config(config).config == {"chunker_version": {"name": "v1", "token": MASK}}


def test_digests_tell_whether_secrets_differ_and_nothing_else() -> None:
    one, same, other = (
        mask_config({"llm": {"api_key": key}, "dsn": "redis://:pw@h"}).digests for key in ("x", "x", "y")
    )
    assert list(changed_secrets(one, same)) == []
    assert list(changed_secrets(one, other)) == ["llm.api_key"]
    assert "x" not in one["llm.api_key"]


def test_masking_does_not_change_what_it_is_given() -> None:
    config = {"llm": {"api_key": "x"}, "list": [1, {"token": "t"}]}
    mask_config(config)
    assert config == {"llm": {"api_key": "x"}, "list": [1, {"token": "t"}]}


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=6,
        ),
    )
)
def test_any_configuration_can_be_masked_and_masking_again_changes_nothing(config: dict[str, Any]) -> None:
    once = mask_config(config)
    assert masked(once.config) == once.config


def test_a_named_value_is_known_by_its_name() -> None:
    env = [{"name": "api_key", "value": "hunter2"}, {"name": "region", "value": "eu"}]
    assert mask_config({"env": env}).config == {
        "env": [{"name": "api_key", "value": "***"}, {"name": "region", "value": "eu"}]
    }


def test_the_value_of_a_flag_in_a_list_is_masked() -> None:
    command = ["index", "--token", "hunter2", "--model", "bert"]
    assert mask_config({"command": command}).config["command"] == [
        "index",
        "--token",
        "***",
        "--model",
        "bert",
    ]
