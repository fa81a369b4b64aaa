"""Any result, config, aggregate or span that a database may hold, as JSON text."""

from __future__ import annotations

import json

from hypothesis import strategies as st

Text = st.SearchStrategy[str]

# What a decoder takes and a renderer may choke on: too large for 64 bits, for a float, or too deep.
ODD_NUMBERS = (
    *("1e400", "-1e400", "1e-400", "-0", "-0.0", "1e308", "1.5", str(2**53), str(2**63), str(-(2**63))),
    *(str(2**64), str(-(2**64)), "9" * 30, "9" * 300, "0", "-1", "7"),
)
ODD_TEXTS = (
    "",
    " ",
    "\x1b[2J",
    "\u202e",
    "\u2028",
    "\x00",
    "`",
    "|",
    "</script>",
    "##[x",
    "::error::x",
    "\n",
    "𝄞",
)


def members(**values: Text) -> Text:
    """An object with some of these members."""
    return st.fixed_dictionaries({}, optional=values).map(_object)


def _object(found: dict[str, str]) -> str:
    return "{%s}" % ", ".join(f"{json.dumps(key)}: {value}" for key, value in found.items())  # noqa: UP031


def array(elements: Text) -> Text:
    """A list of these."""
    return st.lists(elements, max_size=3).map(lambda found: f"[{', '.join(found)}]")


text = (st.sampled_from(ODD_TEXTS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)).map(
    json.dumps
)
ids = st.sampled_from(["c1", "c2", "d1"]).map(json.dumps) | text
number = st.sampled_from(ODD_NUMBERS) | st.integers(0, 9).map(str)
amount = st.sampled_from(["0", "0.5", "1e15", "3", "1e-320"])
flag = st.sampled_from(["true", "false"])
nested = st.sampled_from([1, 60, 200, 700, 800, 850, 900]).map(lambda depth: "[" * depth + "]" * depth)
scalars = st.just("null") | flag | number | text
anything = (
    st.recursive(scalars, lambda inner: array(inner) | members(a=inner, b=inner), max_leaves=4) | nested
)


def or_null(value: Text) -> Text:
    return value | st.just("null")


span = st.builds(
    lambda kind, rest: '{"kind": %s, %s' % (kind, rest[1:]) if rest != "{}" else '{"kind": %s}' % kind,  # noqa: UP031
    st.sampled_from(["line", "code", "page", "region", "time", "caption", "byte", "other"]).map(json.dumps),
    members(
        path=or_null(text),
        section=or_null(text),
        **dict.fromkeys(
            ("start", "end", "line_start", "line_end", "char_start", "x", "w", "start_ms", "end_ms"),
            or_null(number),
        ),
        page=or_null(st.sampled_from(["0", "1", "-1", str(2**63), "9" * 30])),
        lang=anything,
    ),
)
hit = st.builds(
    lambda rank, rest: '{"rank": %s%s' % (rank, "}" if rest == "{}" else f", {rest[1:]}"),  # noqa: UP031
    st.integers(1, 12).map(str) | st.just(str(2**53)),
    members(
        chunk_id=or_null(ids),
        doc_id=or_null(ids),
        doc_path=or_null(text),
        heading_path=or_null(array(text)),
        snippet=or_null(text),
        text=or_null(text),
        citation=or_null(span),
        score=anything,
        retrieval=or_null(members(fusion_score=anything, other=anything) | text | number | array(anything)),
        metadata=anything,
    ),
)
answer = st.builds(
    lambda grounded, rest: '{"grounded": %s%s' % (grounded, "}" if rest == "{}" else f", {rest[1:]}"),  # noqa: UP031
    flag,
    members(
        answer=text | st.just('"say yes, not no"'),
        citations=array(
            members(citation=or_null(span), chunk_id=or_null(ids), marker=anything, other=anything)
        ),
        refusal_reason=anything,
        usage=or_null(members(prompt_tokens=or_null(amount), completion_tokens=or_null(amount))),
        model=anything,
    ),
)
score = st.sampled_from(["0", "2.5", "5", "null"])
judgment = members(groundedness=score, correctness=score)
result = st.builds(
    lambda hits, rest: '{"hits_top_k": %s%s' % (hits, "}" if rest == "{}" else f", {rest[1:]}"),  # noqa: UP031
    array(hit),
    members(
        query=text,
        query_id=text,
        mode=anything,
        answer=or_null(answer),
        error=or_null(text),
        elapsed_ms=or_null(amount),
        timed_out=or_null(flag),
        cost_usd=or_null(amount),
        timings_ms=or_null(members(retrieval=or_null(amount), judge=or_null(amount))),
        scope=or_null(members(mode=or_null(text), folders=or_null(array(text)))),
        judge=or_null(
            members(
                groundedness=score,
                correctness=score,
                model=or_null(text),
                temperature=or_null(number | text),
                second=or_null(judgment),
                unsupported_claims=anything,
            )
        ),
        extra=anything,
    ),
)
table = members(**{"1": anything, "5": anything, "k": anything})
aggregate = members(
    hit_at_k=table | anything,
    recall_at_k_doc=table,
    mrr=anything,
    groundedness=number,
    extra=members(error_rate=number, latency_p95_ms=number, cost_usd=anything, own=anything) | anything,
    golden_sha256=anything,
)
config = members(
    chunker_version=anything,
    embedding=anything,
    llm=anything,
    prompt_template_version=anything,
    index_version=anything,
    eval_k=anything,
    config=anything,
)
