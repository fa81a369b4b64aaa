"""What random comparisons also contain: gaps, new and removed queries, depths, replicates, shared runs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace

from .case import Case, Entry, Options, Run, marked_partial
from .matching import expected_chunks, target_names

GAPS = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.25, 0.25), (0.7, 0.0), (0.6, 0.2))

Edit = Callable[[Entry], Entry]


class Variations:
    """Changes one comparison at random."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.rng = random.Random(f"variations of {case.seed}")  # noqa: S311

    def chance(self, share: float) -> bool:
        """True in that share of the cases."""
        return self.rng.random() < share

    def make(self) -> Case:
        """The comparison, changed."""
        if self.chance(0.4):
            self._bare_hits()
        if not self.case.chunks and self.chance(0.25):
            self._no_places()
        if self.chance(0.35):
            self._depths()
        if self.chance(0.3):
            self._alternatives()
        if self.chance(0.3):
            golden = [
                {**entry, "metadata": {"team": self.rng.choice(["search", "sales"]), "of": ["us"]}}
                if self.chance(0.6)
                else entry
                for entry in self.case.golden
            ]
            self.case = replace(self.case, golden=golden)
        if self.chance(0.35):
            self._rules()
        self._gaps()
        self._removed()
        if self.chance(0.06):
            self._wrong_query_id()
        if self.case.is_comparison and self.chance(0.25):
            self._replicates()
        self._options()
        return self.case

    def _alternatives(self) -> None:
        """Expected ids of which two are one target; with one chunker, also a further id for one target."""
        hits = self._stored_hits()
        same = len({run.chunker_version for run in self.case.runs}) == 1 and not self.case.locked
        others = sorted({hit["chunk_id"] for hit in hits}) if same else []
        golden = [self._with_alternatives(entry, others) for entry in self.case.golden]
        self.case = replace(self.case, golden=golden)

    def _with_alternatives(self, entry: Entry, others: list[str]) -> Entry:
        if "group" in entry:
            return entry
        changed = dict(entry)
        for field in ("expected_chunk_ids", "expected_doc_ids"):
            ids = list(entry.get(field, []))
            more = [one for one in others if one not in expected_chunks(entry)]
            if field == "expected_chunk_ids" and ids and more and self.chance(0.3):
                changed[field] = [[ids[0], self.rng.choice(more)], *ids[1:]]
            elif len(ids) > 1 and self.chance(0.5):
                changed[field] = [ids[:2], *ids[2:]]
        return changed

    def _stored_hits(self) -> list[Entry]:
        rows = [row for run in self.case.runs for text in run.rows.values() if (row := read_json(text))]
        return [hit for row in rows for hit in row["hits_top_k"]]

    def _rules(self) -> None:
        """Queries with hits that are forbidden, and with a limit for their rank."""
        hits = self._stored_hits()
        docs, chunks = sorted({hit["doc_id"] for hit in hits}), sorted({hit["chunk_id"] for hit in hits})
        self.case = replace(
            self.case, golden=[self._with_rules(entry, docs, chunks) for entry in self.case.golden]
        )

    def _with_rules(self, entry: Entry, docs: list[str], chunks: list[str]) -> Entry:
        rules: Entry = {}
        for name, expected, ids in (
            ("forbidden_doc_ids", target_names(entry, "expected_doc_ids"), docs),
            ("forbidden_chunk_ids", expected_chunks(entry), chunks),
        ):
            others = [one for one in ids if one not in expected]
            if others and self.chance(0.2):
                rules[name] = self.rng.sample(others, min(len(others), self.rng.randint(1, 2)))
        fields = ("expected_chunk_ids", "relevance", "expected_doc_ids", "gold_supports", "expected_spans")
        if any(entry.get(field) for field in fields) and self.chance(0.25):
            rules["must_rank_at_most"] = self.rng.randint(1, 12)
        return {**entry, **rules}

    def _edit(self, side: str, edit: Edit) -> None:
        """Change each row of a run that can be read."""
        run: Run | None = getattr(self.case, side)
        if run is not None:
            rows = {query_id: edited(text, edit) for query_id, text in run.rows.items()}
            self._set(side, replace(run, rows=rows))

    def _set(self, side: str, run: Run) -> None:
        self.case = replace(self.case, run_a=run) if side == "run_a" else replace(self.case, run_b=run)

    def _bare_hits(self) -> None:
        """Hits without path, heading or text, which `documents` and `chunks` may know."""
        known = {chunk.doc_id for chunk in self.case.chunks or ()}

        def strip(hit: Entry) -> Entry:
            fields = [["heading_path"], ["text", "snippet"]]
            if hit["doc_id"] in known or "citation" not in hit:  # whether a citation's path counts is open
                fields.append(["doc_path"])
            dropped = {name for names in fields if self.chance(0.5) for name in names}
            return {name: value for name, value in hit.items() if name not in dropped}

        for side in ("run_a", "run_b"):
            self._edit(side, lambda row: {**row, "hits_top_k": [strip(hit) for hit in row["hits_top_k"]]})

    def _no_places(self) -> None:
        """Hits of which only the document is known."""
        gone = {"citation", "text", "snippet"}

        def strip(hit: Entry) -> Entry:
            return {name: value for name, value in hit.items() if name not in gone}

        for side in ("run_a", "run_b"):
            self._edit(side, lambda row: {**row, "hits_top_k": [strip(hit) for hit in row["hits_top_k"]]})

    def _depths(self) -> None:
        """Both runs without holes in their ranks, one of them stored less deep."""
        shallow, depth = self.rng.choice(["run_a", "run_b"]), self.rng.randint(1, 4)
        for side in ("run_a", "run_b"):
            most = depth if side == shallow else None
            self._edit(side, lambda row, most=most: with_depth(row, most))  # type: ignore[misc]

    def _gaps(self) -> None:
        """Golden queries that a run has no result for; some of those that A lacks error in B."""
        if self.case.run_a is None:
            return
        share_a, share_b = self.rng.choice(GAPS)
        self._set("run_a", self._without(self.case.run_a, share_a))
        self._set("run_b", self._without(self.case.run_b, share_b))
        new = set(self.case.run_b.rows) - set(self.case.run_a.rows)
        erring = {query_id for query_id in sorted(new) if self.chance(0.15)}
        self._edit("run_b", lambda row: errored(row) if row["query_id"] in erring else row)

    def _without(self, run: Run, share: float) -> Run:
        return replace(run, rows={name: text for name, text in run.rows.items() if not self.chance(share)})

    def _removed(self) -> None:
        """Results whose query has left the golden file: of A, and sometimes of B."""
        if self.case.run_a is None or not self.chance(0.3):
            return
        for number in range(self.rng.randint(1, 3)):
            for side, share in (("run_a", 0.9), ("run_b", 0.4)):
                run: Run = getattr(self.case, side)
                if run.rows and self.chance(share):
                    text = self.rng.choice(sorted(run.rows.values()))
                    name = f"gone-{number}"
                    row = edited(text, lambda row, name=name: {**row, "query_id": name})  # type: ignore[misc]
                    self._set(side, replace(run, rows={**run.rows, name: row}))

    def _wrong_query_id(self) -> None:
        """One row that names another query."""
        side = self.rng.choice(["run_a", "run_b"])
        run: Run | None = getattr(self.case, side)
        if run is not None and run.rows:
            name = self.rng.choice(sorted(run.rows))
            text = edited(run.rows[name], lambda row: {**row, "query_id": f"not {name}"})
            self._set(side, replace(run, rows={**run.rows, name: text}))

    def _replicates(self) -> None:
        """Further runs of a side: copies with gaps, one that is broken, or one like the other side."""
        way = self.rng.choice(["copies", "copies", "errors", "empty", "noisy"])
        a, b = self.case.side_a[0], self.case.run_b
        more_a = [self._copy(a, f"further-a{number}") for number in range(self.rng.randint(0, 2))]
        more_b = [self._copy(b, f"further-b{number}") for number in range(self.rng.randint(0, 2))]
        odd_side, odd = self.rng.choice([(more_a, a), (more_b, b)])
        if way == "noisy" and a.config == b.config:
            odd_side.append(replace(b if odd is a else a, run_id="odd"))
        elif way in {"errors", "empty"}:
            edit = errored if way == "errors" else without_hits
            rows = {query_id: edited(text, edit) for query_id, text in odd.rows.items()}
            odd_side.append(Run("odd", odd.config, rows))
        self.case = replace(self.case, more_a=tuple(more_a), more_b=tuple(more_b))

    def _copy(self, run: Run, run_id: str) -> Run:
        return replace(self._without(run, self.rng.choice([0.0, 0.2])), run_id=run_id)

    def _options(self) -> None:
        options = self.case.options
        if self.case.is_comparison:
            options = replace(options, gates=tuple(dict.fromkeys([*options.gates, *self._count_gates()])))
            options = replace(options, allow_documents=self.chance(0.15))
            options = replace(options, if_no_baseline="pass" if self.chance(0.1) else None)
        if self.case.has_replicates:
            options = replace(options, snapshot=None, by_age=False)
        self.case = replace(self.case, options=self._named_twice(options))
        self._partial()

    def _count_gates(self) -> list[str]:
        if not self.chance(0.25):
            return []
        names = [self.rng.choice(["new", "removed"]) for _ in range(2)]
        return [f"{name} {self.rng.choice(['==', '<=', '<'])} {self.rng.randint(0, 3)}" for name in names]

    def _named_twice(self, options: Options) -> Options:
        """The same run on both sides."""
        if options.alone or options.wrong or options.two_databases or self.case.has_replicates:
            return options
        if self.case.run_a is None:
            return replace(options, same_run="latest") if self.chance(0.7) else options
        way = self.rng.choice(["id", "latest", "several"])
        return replace(options, same_run=way) if self.chance(0.04) else options

    def _partial(self) -> None:
        """A newer run, recorded from a selection: it is not what `latest` names."""
        run = self.case.run_b
        config = marked_partial(run.config)
        if config is None or self.case.has_replicates or not self.case.is_comparison or self.chance(0.8):
            return
        rows = dict(list(run.rows.items())[:1])
        self.case = replace(
            self.case, partial=Run("selected", config, rows), options=replace(self.case.options, by_age=True)
        )


def read_json(text: str) -> Entry | None:
    """A row that can be read as far as its hits' ids."""
    try:
        row: Entry = json.loads(text)
        return row if all({"doc_id", "chunk_id"} <= set(hit) for hit in row["hits_top_k"]) else None
    except (ValueError, TypeError, KeyError):
        return None


def edited(text: str, edit: Edit) -> str:
    """A row after a change; one that cannot be read stays as it is."""
    try:
        row = json.loads(text)
        return json.dumps(edit(row))
    except (ValueError, TypeError, KeyError):
        return text


def errored(row: Entry) -> Entry:
    """The row of a query that errored."""
    return {**row, "hits_top_k": [], "answer": None, "error": "timeout"}


def without_hits(row: Entry) -> Entry:
    """The row of a query that found nothing."""
    return {**row, "hits_top_k": [], "answer": None, "error": None}


def with_depth(row: Entry, most: int | None) -> Entry:
    """A row whose ranks have no holes, cut to a depth; one whose ranks are wrong stays as it is."""
    ranks = [hit["rank"] for hit in row["hits_top_k"]]
    if len(set(ranks)) != len(ranks) or 0 in ranks:
        return row
    hits = sorted(row["hits_top_k"], key=lambda hit: int(hit["rank"]))[:most]
    return {**row, "hits_top_k": [{**hit, "rank": rank} for rank, hit in enumerate(hits, start=1)]}
