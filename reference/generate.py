"""Small comparisons at random, the same for the same seed."""

from __future__ import annotations

import json
import random

from .answers import make_answer, make_rules
from .case import Case, Chunk, Entry, Options, Run
from .matching import expected_chunks
from .random_gates import make_gates
from .variations import Variations
from .world import FIRST, SECOND, TEXT, make_world

ODD_NAMES = ("", "ünï ", "1e3 ", "a/b ", "yes: ", "[x] ", "日本 ", "#", "q::", "'", "%20", "<b>")
RANKS = range(1, 14)
EVERY_QUERY_ERRS, NOTHING_IS_FOUND = 61, 53  # one comparison in as many
WRONG_USE = (
    *("--kebab-fail-on=retreival", "--kebab-fail-on=", "--kebab-gate=hit@5 >= 80", "--kebab-gate=hit@5"),
    *("--kebab-run-b=", "--kebab-run-b=nobody", "--kebab-golden=missing.yaml", "--kebab-db-b=missing.sqlite"),
    *("--kebab-compare-k=0", "--kebab-snapshot=maybe", "--kebab-suite="),
)


class Generator:
    """Makes one comparison from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)  # noqa: S311
        self.world = make_world(self.rng)
        self.is_locked = self._needs_lock() or self.chance(0.15)
        self.versions = self._versions()
        self.has_answers = self.chance(0.6) and self.world.kind != TEXT  # a citation has no text

    def chance(self, share: float) -> bool:
        """True in that share of the cases."""
        return self.rng.random() < share

    def _needs_lock(self) -> bool:
        """Where ids are shared and the table does not have both, only a lock says whose an expected id is."""
        return self.world.ids_used_again and self.world.with_tables != "both"

    def _versions(self) -> tuple[str | None, str | None]:
        """The chunkers of A and B; a version is left out only where no table would say whose rows count."""
        if self.world.ids_used_again and self.world.with_tables == "second":
            return FIRST, SECOND
        if self.is_locked and self.chance(0.2) and not self.world.ids_used_again:
            return SECOND, SECOND
        if self.chance(0.55):
            return FIRST, FIRST
        if self.world.tables or self.is_locked:
            return FIRST, SECOND
        return self.rng.choice([(FIRST, SECOND), (None, None), (None, SECOND), (FIRST, None)])

    def make(self) -> Case:
        """The comparison."""
        golden = [self._entry(number) for number in range(self.rng.randint(1, 14))]
        golden = [*golden, *self._paraphrases(golden)]
        if self.seed % NOTHING_IS_FOUND == 0:
            golden = [self._unfindable(entry) for entry in golden]
        run_a = self._run("base", self.versions[0], golden)
        run_b = self._run("cand", self.versions[1], golden, run_a)
        options = self._options(golden)
        stored_a = None if options.if_no_baseline else run_a
        ending = self.rng.choices(["yaml", "json", "jsonl"], [4, 1, 1])[0]
        name, locked = f"golden_queries.{ending}", self._locked(golden)
        case = Case(self.seed, golden, stored_a, run_b, self.world.tables, options, name, locked)
        return Variations(case).make()

    def _unfindable(self, entry: Entry) -> Entry:
        """The same query, looking for a chunk that no run returns."""
        fields = (
            "relevance",
            "expected_spans",
            "expected_texts",
            "gold_supports",
            "required_support_groups",
            "expected_doc_ids",
        )
        rest = {name: value for name, value in entry.items() if name not in fields}
        return {**rest, "expected_chunk_ids": [f"nowhere-{entry['id']}"]}

    def _locked(self, golden: list[Entry]) -> tuple[Chunk, ...]:
        """What was locked: the expected chunks, as the first chunker cut them."""
        expected = {chunk_id for entry in golden for chunk_id in expected_chunks(entry)}
        return tuple(chunk for chunk in self.world.first if self.is_locked and chunk.chunk_id in expected)

    def _entry(self, number: int) -> Entry:
        odd = self.rng.choice(ODD_NAMES) if self.chance(0.15) else ""
        entry: Entry = {"id": f"{odd}zq{number}z", "query": f"What is number {number}?"}
        entry.update(self._expected())
        if self.has_answers:
            entry.update(make_rules(self.rng, only_forbidden=entry.get("expected_doc_ids") == []))
        if self.chance(0.15):
            entry["xfail"] = self._xfail()
        if self.chance(0.5):
            entry["difficulty"] = self.rng.choice(["easy", "hard"])
        if self.chance(0.15):
            entry["require"] = self.rng.choice(["all", "all", "any"])
        if self.chance(0.15):
            entry["k"] = self.rng.randint(1, 6)
        if self.chance(0.06):
            entry["answerable"] = self.chance(0.5)
        return entry

    def _xfail(self) -> Entry:
        until = self.rng.choice([None, None, None, "2020-01-31", "2999-12-31"])
        return {"reason": "known"} if until is None else {"reason": "known", "until": until}

    def _paraphrases(self, golden: list[Entry]) -> list[Entry]:
        """A second wording of the first query, in one group with it."""
        if not self.chance(0.1):
            return []
        golden[0]["group"] = "wordings"
        return [{**golden[0], "id": "zq90z", "query": "Put otherwise?"}]

    def _expected(self) -> Entry:
        """What a query looks for."""
        way = self.rng.choices(
            ["chunk", "document", "anchor", "span", "refuse", "both", "nothing"], [9, 2, 2, 1, 2, 1, 1]
        )[0]
        if way == "nothing":
            return {}
        if way == "refuse":
            return {"expected_doc_ids": []}
        chunks = self._some_chunks()
        if way == "document":
            return {"expected_doc_ids": sorted({chunk.doc_id for chunk in chunks})}
        if way == "anchor":
            return {**self._anchors(chunks), **self._groups(len(chunks))}
        if way == "span" and self.world.kind != TEXT:
            return {"expected_spans": [{"doc_id": chunk.doc_id, **chunk.spans[0]} for chunk in chunks]}
        entry = self._expected_chunks(chunks)
        return {**entry, **self._anchors(chunks)} if way == "both" else entry

    def _some_chunks(self) -> list[Chunk]:
        """One expected chunk where only stored hits may know its span, since two might be known by halves."""
        same = self.versions[0] == self.versions[1]
        most = 3 if same or self.world.with_tables in {"first", "both"} else 1
        return self.rng.sample(self.world.first, min(len(self.world.first), self.rng.randint(1, most)))

    def _expected_chunks(self, chunks: list[Chunk]) -> Entry:
        ids = [chunk.chunk_id for chunk in chunks]
        entry: Entry = {"expected_chunk_ids": ids}
        if self.chance(0.2):
            entry = {"relevance": {chunk_id: self.rng.randint(1, 3) for chunk_id in ids}}
            others = [chunk.chunk_id for chunk in self.world.first if chunk.chunk_id not in ids]
            entry["relevance"] |= dict.fromkeys(others[:1], 0) if self.chance(0.4) else {}
        if self.chance(0.4):
            entry["expected_doc_ids"] = sorted({chunk.doc_id for chunk in chunks})
        if self.world.kind == TEXT:
            known = {chunk.chunk_id: chunk.text for chunk in chunks}
            return {**entry, "expected_texts": known} if self.chance(0.3) else entry
        if self.chance(0.2):
            spans = [
                {"doc_id": chunk.doc_id, "chunk_id": chunk.chunk_id, **chunk.spans[0]} for chunk in chunks
            ]
            entry["expected_spans"] = spans
        return entry

    def _anchors(self, chunks: list[Chunk]) -> Entry:
        return {"gold_supports": [self._anchor(chunk) for chunk in chunks]}

    def _groups(self, supports: int) -> Entry:
        if not self.chance(0.3):
            return {}
        numbers = self.rng.sample(range(supports), supports)
        cut = self.rng.randint(1, supports)
        return {"required_support_groups": [group for group in (numbers[:cut], numbers[cut:]) if group]}

    def _anchor(self, chunk: Chunk) -> Entry:
        heading = self.rng.choice([" > ", ">", "  >  ", " > ## "]).join(
            chunk.heading[: self.rng.randint(1, 3)]
        )
        support: Entry = {"path": chunk.path, "heading": self.rng.choice(["", "# "]) + heading}
        if self.chance(0.2):
            del support["heading"]
        if self.chance(0.5):
            words = chunk.text.split(". ")[0]
            support["snippets"] = self.rng.choice([[words], [words.upper()], ["nowhere", words], ["nowhere"]])
        return support

    def _run(self, run_id: str, version: str | None, golden: list[Entry], before: Run | None = None) -> Run:
        """A run: each row is close to that of the run before, so that every kind occurs."""
        config = {} if version is None else {"chunker_version": version}
        rows = {}
        for entry in golden:
            old = None if before is None else before.rows.get(entry["id"])
            row = old if old and self._can_repeat() and self.chance(0.25) else self._row(entry, version)
            if not self.chance(0.06):
                rows[entry["id"]] = row
        if self.chance(0.1):
            rows["unknown"] = self._row({"id": "unknown"}, version)
        return Run(run_id, config, rows)

    def _can_repeat(self) -> bool:
        return self.versions[0] == self.versions[1]

    def _row(self, entry: Entry, version: str | None) -> str:
        hits = self._hits(entry, version)
        error = "timeout" if self.chance(1.0 if self.seed % EVERY_QUERY_ERRS == 0 else 0.08) else None
        if error and (self._needs_stored_hits() or self.chance(0.5)):
            hits = []
        row: Entry = {
            "query_id": entry["id"],
            "query": "?",
            "mode": "hybrid",
            "hits_top_k": hits,
            "elapsed_ms": 3,
        }
        row.update(error=error, answer=None)
        if self.has_answers and self.chance(0.9):
            row["answer"] = make_answer(self.rng, entry, self._citable(hits, version))
        return self._spoiled(row) if self.chance(0.015) else json.dumps(row)

    def _needs_stored_hits(self) -> bool:
        return self.versions[0] != self.versions[1] and self.world.with_tables not in {"first", "both"}

    def _hits(self, entry: Entry, version: str | None) -> list[Entry]:
        chunks = self.world.chunks(version)
        expected = {*entry.get("expected_chunk_ids", []), *entry.get("relevance", {})}
        wanted = [chunk for chunk in chunks if chunk.chunk_id in expected] if self.chance(0.7) else []
        others = self.rng.sample(chunks, min(len(chunks), self.rng.randint(0, 5)))
        found = list({chunk.chunk_id: chunk for chunk in [*wanted, *others]}.values())[:6]
        self.rng.shuffle(found)
        ranks = range(1, 7) if self.chance(0.6) else self.rng.sample(RANKS, 6)
        hits = [self.world.hit(chunk, rank) for chunk, rank in zip(found, ranks, strict=False)]
        if hits and self.chance(0.05):
            hits.append({**hits[0], "rank": 20})
        return hits

    def _citable(self, hits: list[Entry], version: str | None) -> list[Entry]:
        """Citations of hits, of chunks that were not retrieved, and of places that do not exist."""
        chunks = {chunk.chunk_id: chunk for chunk in self.world.chunks(version)}
        retrieved = [chunks[hit["chunk_id"]] for hit in hits]
        spans: list[Entry] = [{"chunk_id": chunk.chunk_id} for chunk in retrieved]
        spans += [{"citation": {**chunk.spans[0], "path": chunk.path}} for chunk in retrieved]
        chunk = self.rng.choice(list(chunks.values()))
        stray: list[Entry] = [
            {"chunk_id": "nowhere"},
            {"citation": {**chunk.spans[0], "path": "notes/nowhere.md"}},
        ]
        return spans * 3 + [{"chunk_id": chunk.chunk_id}] + stray

    def _spoiled(self, row: Entry) -> str:
        """A row that cannot be read; one with an error needs no hits."""
        hits = row["hits_top_k"]
        ways = ["text", *([] if row["error"] else ["no hits"])]
        ways += ["list", "rank 0", "no rank", "twice"] if hits else []
        way = self.rng.choice(ways)
        if way == "no hits":
            del row["hits_top_k"]
        elif way == "rank 0":
            hits[-1]["rank"] = 0
        elif way == "no rank":
            del hits[-1]["rank"]
        elif way == "twice":
            hits.append({**hits[0], "chunk_id": "another"})
        return {"text": "{not json", "list": "[]"}.get(way) or json.dumps(row)

    def _options(self, golden: list[Entry]) -> Options:
        every = [
            "retrieval",
            "answer",
            "refusal",
            "citation",
            "error",
            "loss",
            "attribution",
            "miss",
            "loss>2",
            "coverage",
        ]
        fail_on = None
        if self.chance(0.4):
            plus = "+" if self.chance(0.3) else ""
            fail_on = tuple(plus + word for word in self.rng.sample(every, self.rng.randint(1, 7)))
        elif self.chance(0.1):
            fail_on = ("none",)
        is_comparison = self.world.ids_used_again and bool(self.world.tables)  # else whose ids count is open
        alone = not is_comparison and self.chance(0.06)
        missing = not is_comparison and not alone and self.chance(0.03)
        return Options(
            fail_on=fail_on,
            compare_k=self.rng.randint(1, 12) if self.chance(0.2) else None,
            k=self.rng.randint(1, 6) if self.chance(0.15) else None,
            require=self.rng.choice(["all", "any"]) if self.chance(0.15) else None,
            span_overlap=self.rng.choice([0.2, 0.5, 0.75, 1.0]) if self.chance(0.2) else None,
            strict=self.chance(0.04),
            gates=make_gates(self.rng, golden, alone=alone),
            alone=alone,
            if_no_baseline=self.rng.choice(["pass", "fail"]) if missing else None,
            in_ini=self.chance(0.2),
            two_databases=not alone and not missing and self.chance(0.1),
            by_age=self.chance(0.1),
            snapshot=self.rng.choice(["off", "auto", "require"]) if self.chance(0.1) else None,
            wrong=self.rng.choice(WRONG_USE) if self.chance(0.02) else None,
        )
