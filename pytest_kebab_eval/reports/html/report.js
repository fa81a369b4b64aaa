"use strict";
(() => {
  const PAGE = 1000; // rows are cheap while they are out of sight, and the browser's search finds them
  const NOT_UNPACKED = "not shown, since this browser cannot unpack them (it has no DecompressionStream)";
  const parse = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = parse("index");
  const form = document.getElementById("filters");
  const list = document.getElementById("rows");
  const more = document.getElementById("more");
  const status = document.getElementById("status");
  const canUnpack = typeof DecompressionStream === "function";
  const ABOUT_ANSWERS = new Set(["answer", "refusal", "citation", "attribution"]);
  const unpacked = new Map();
  let found = [];
  let drawn = 0;
  let flow = null;

  // Everything foreign becomes a text node: strings are appended, never parsed.
  function el(tag, className, ...children) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }
  function titled(title, className, ...children) {
    const node = el("span", className, ...children);
    node.title = title;
    return node;
  }
  const number = (value) => value.toLocaleString("en-US");
  const queries = (count) => `${number(count)} ${count === 1 ? "query" : "queries"}`;
  const cutNote = (length) => (length ? el("span", "muted", ` … cut; ${number(length)} characters in all`) : null);

  // -- what is packed: lines of JSON, deflated, in base64

  function unpack(id) {
    if (!unpacked.has(id)) unpacked.set(id, lines(document.getElementById(id).textContent));
    return unpacked.get(id);
  }
  async function lines(packed) {
    const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return (await new Response(stream).text()).trim().split("\n").flatMap((line) => JSON.parse(line));
  }

  // The details of the list's first queries are there at once; of those that did not fit, there are none.
  async function details(n) {
    const block = Math.floor(n / data.block);
    const id = `details-${block}`;
    if (block > 0 && (!canUnpack || !document.getElementById(id))) return { expected: [], left_out: true };
    if (block === 0 && !unpacked.has(id)) unpacked.set(id, parse(id));
    const all = (block === 0 ? unpacked.get(id) : await unpack(id))[n % data.block];
    return all.brief ? fromBrief(all, block > 0 ? await unpack("names") : []) : all;
  }

  // Details without texts, in the form of those that have them. What is packed has the numbers of names, and no
  // names of B's hits where they are those of A.
  function fromBrief(all, names) {
    const named = (name) => (typeof name === "number" ? names[name] : name);
    const numbers = new Map();
    const which = (name) => numbers.set(name, numbers.get(name) ?? numbers.size).get(name);
    const side = (result) => {
      if (!result) return { gone: "no result in this run" };
      const [ids, right, ms, answered, more] = result;
      const hits = (ids ?? all.brief[0][0]).map((name, place) => {
        const rank = more ? more.ranks[place] : place + 1;
        return [rank, which(named(name)), right.includes(rank) ? 1 : 0];
      });
      return { hits, ms: ms ?? undefined, answered, more: 0, ...more, error: more?.error && [more.error, 0] };
    };
    const [a, b] = all.brief.map(side);
    const sides = data.alone ? { b } : { a, b };
    const expected = all.expected.map(named);
    return { ...all, expected, ...sides, hits: [...numbers.keys()].map((name) => [name, "", "", ""]), left_out: true };
  }

  // -- filtering

  function outcomeOf(row) {
    if (row.lost) return row.lost === 1 ? "failed" : "accepted";
    return row.kind === "new" || row.kind === "none" ? row.kind : "passed";
  }

  function wanted() {
    const fields = new FormData(form);
    const outcome = fields.get("outcome");
    const kind = fields.get("kind");
    const cause = fields.get("cause");
    const slice = fields.get("slice");
    const words = fields.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    return data.rows.filter((row) => {
      if (outcome && outcomeOf(row) !== outcome) return false;
      if (kind && row.kind !== kind) return false;
      if (cause && row.cause !== cause) return false;
      if (slice && !row.slices.includes(Number(slice))) return false;
      if (flow && !(row.flow && row.flow[0] === flow[0] && row.flow[1] === flow[1])) return false;
      if (!words.length) return true;
      row.hay ??= [row.id, row.query, row.note, row.cause, data.causes[row.cause]].join("\n").toLowerCase();
      return words.every((word) => row.hay.includes(word));
    });
  }

  function update() {
    found = wanted();
    drawn = 0;
    list.replaceChildren();
    draw();
  }

  // What is drawn stays: rows that come later are below it.
  function extend(rows) {
    data.rows = data.rows.concat(rows);
    numberRows();
    found = wanted();
    if (drawn < PAGE) draw();
    else tell();
  }

  function draw() {
    const next = found.slice(drawn, drawn + PAGE);
    list.append(...next.map(queryElement));
    drawn += next.length;
    tell();
  }

  function tell() {
    const left = found.length - drawn;
    more.hidden = left === 0;
    more.textContent = `Show ${number(Math.min(PAGE, left))} more of ${number(left)}`;
    const moved = flow ? `, moved ${data.levels[flow[0]]} → ${data.levels[flow[1]]}` : "";
    const missing = data.total - data.rows.length;
    const unseen = left ? "; the browser's search finds those that are shown, the field Text finds all" : "";
    const note = missing ? `; ${number(missing)} more are ${canUnpack ? "being unpacked" : NOT_UNPACKED}` : unseen;
    status.textContent = (found.length === data.rows.length
      ? `${queries(found.length)}, the worst first`
      : `${number(found.length)} of ${queries(data.rows.length)}${moved}`) + note;
  }

  // -- a query in the list

  function queryElement(query) {
    const outcome = outcomeOf(query);
    const [name, sign, effect] = data.outcomes[outcome];
    const [, , moved] = data.kinds[query.kind] ?? ["", "", "same"];
    const said = query.cause ? data.causes[query.cause] : query.lost && query.note;
    const why = said ? el("span", "why", said) : null;
    const chips = el("span", "chips", ...(query.checks ?? []).map((check) => el("span", "chip bad", `✗ ${check}`)),
      ...(query.other_checks ?? []).map((check) => titled("lost, but not among the checks that fail a query here", "chip", `${check}: not counted`)));
    const node = el("details", `q ${query.lost ? effect : moved}`, el("summary", "",
      el("span", `badge ${outcome === "passed" ? "same" : effect}`, `${sign} ${outcome === "accepted" ? "xfail" : name.split(",")[0]}`),
      el("code", "name", query.id), el("span", "text", el("bdi", "", query.query), why), chips, ranks(query)));
    let filled = false;
    node.fill = async () => {
      if (filled) return;
      filled = true;
      node.append(body(query, await details(query.n)));
    };
    node.addEventListener("toggle", () => { if (node.open) node.fill(); });
    query.nodes = [...(query.nodes ?? []).filter((drawnBefore) => drawnBefore.isConnected), node];
    return node;
  }

  // Where the first correct hit was and is; what did not move is said once.
  function ranks(query) {
    const word = (rank) => (rank === "miss" ? "not found" : rank === "–" ? "" : rank);
    const one = (rank) => (/^\d+$/.test(rank) ? `rank ${rank}` : word(rank));
    if (data.alone || query.a === query.b) return el("span", "ranks muted", one(query.b));
    const [, sign, effect] = data.kinds[query.kind] ?? ["", "", "same"];
    return el("span", `ranks ${effect}`, `${effect === "same" ? "" : `${sign} `}${one(query.a)} → ${word(query.b)}`);
  }

  // -- a query that is open: what failed, then what was expected, hits and answers

  function body(query, all) {
    const both = [answers(all), retrieved(all, query)];
    const parts = saysAnswer(query) ? both : both.reverse();
    return el("div", "body", query.lost && failures(query, all), question(query, all), ...parts,
      facts(query, all), all.left_out && leftOut(Boolean(all.b)));
  }

  const saysAnswer = (query) => (query.checks ?? []).some((check) => ABOUT_ANSWERS.has(check));

  function failures(query, all) {
    const checks = (query.checks ?? ["failed"]).join(", ");
    const sentence = all.why ?? data.causes[query.cause] ?? query.note ?? "";
    return el("div", "failures", el("b", "", `✗ ${checks}: `), sentence);
  }

  function question(query, all) {
    if (!all.query) return null;
    return el("p", "question", el("bdi", "", all.query[0]), cutNote(all.query[1]));
  }

  function facts(query, all) {
    const node = el("dl", "facts");
    const fact = (name, ...value) => node.append(el("dt", "", name), el("dd", "", ...value));
    if (query.cause) fact("cause", `${query.cause}: ${data.causes[query.cause]}`);
    if (query.note) fact("note", query.note);
    if (all.xfail) fact("xfail", all.xfail);
    if (all.line) fact("golden file", `line ${all.line}`);
    if (query.slices.length) fact("slices", el("span", "chips", ...query.slices.map((part) => el("span", "chip", data.slices[part]))));
    if (all.review) fact("review", el("code", "", all.review));
    const link = el("a", "", "address of this query");
    link.href = `#query-${encodeURIComponent(query.id)}`;
    fact("link", link);
    return node;
  }

  function leftOut(hasHits) {
    const what = hasHits ? "Texts of hits and answers are" : "Hits and answers are";
    const why = canUnpack || hasHits ? "left out, so that the page stays small" : NOT_UNPACKED;
    return el("p", "muted small", `${what} ${why}; `, el("code", "", "pytest -vv"), " prints the hits of every query.");
  }

  // -- passages

  // Heading and document first, then the text; the id is for those who look it up.
  function passage([chunk, path, heading, text], marks, notes) {
    const name = heading || path || chunk;
    const head = el("div", "head", el("b", "", name), heading && path && el("span", "where", path), ...marks);
    const id = name === chunk ? null : el("code", "", chunk);
    const small = [id, ...notes].filter(Boolean).flatMap((note, at) => (at ? [" · ", note] : [note]));
    return el("div", "passage", head, text && el("div", "snippet", text),
      small.length ? el("div", "small muted", ...small) : null);
  }

  function retrieved(all, query) {
    const node = el("div", "found");
    if (all.refuse) node.append(el("p", "", el("b", "", "Expected: "), "a refusal"));
    if (all.expected.length) node.append(expected(all));
    if (all.expected_answer) node.append(el("p", "", el("b", "", "Expected answer: "), all.expected_answer[0], cutNote(all.expected_answer[1])));
    const sides = el("div", "sides");
    for (const letter of ["a", "b"]) {
      if (all[letter]) sides.append(side(letter, all, query));
    }
    node.append(sides);
    return node;
  }

  function expected(all) {
    const lost = new Set(all.lost);
    const gained = new Set(all.gained);
    const known = new Map((all.hits ?? []).map((hit) => [hit[0], hit]));
    const items = all.expected.map((id) => {
      const mark = lost.has(id) ? el("span", "no-ok", "✗ lost") : gained.has(id) ? el("span", "ok", "✓ gained") : null;
      return el("li", lost.has(id) ? "gone" : "", passage(known.get(id) ?? [id, "", "", ""], [mark], []));
    });
    if (all.expected_more) items.push(el("li", "muted", `and ${number(all.expected_more)} more`));
    return el("section", "expected", el("h3", "", "Expected"), el("ul", "", ...items));
  }

  function side(letter, all, query) {
    const result = all[letter];
    const title = sideTitle(letter);
    const node = el("div", "side", title);
    if (result.gone) {
      node.append(el("p", "no-ok", result.gone));
      return node;
    }
    title.append(result.hits.length ? "hits" : "no hits");
    if (result.ms !== undefined) title.append(el("span", "muted", `${number(result.ms)} ms`));
    if (typeof result.answered === "boolean") title.append(el("span", "muted", result.answered ? "answered" : "refused"));
    if (result.timed_out) title.append(el("span", "no-ok", "timed out"));
    if (result.judge) title.append(el("span", "muted", `judge: groundedness ${result.judge[0] ?? "–"}, correctness ${result.judge[1] ?? "–"}`));
    if (result.error) node.append(el("p", "no-ok", `✗ ${result.error[0]}`, cutNote(result.error[1])));
    node.append(hits(letter, all, query));
    if (result.more > 0) node.append(el("p", "muted small", `${number(result.more)} more not shown`));
    for (const [words, text] of result.judged ?? []) node.append(el("p", "muted small", `${words}: ${text}`));
    return node;
  }

  const sideTitle = (letter) => el("h3", "", el("span", `letter ${letter}`, letter.toUpperCase()));

  function hits(letter, all, query) {
    const other = all[letter === "a" ? "b" : "a"];
    const elsewhere = new Map((other?.hits ?? []).map(([rank, which]) => [all.hits[which][0] || which, rank]));
    const gained = new Set(all.gained);
    return el("ol", "hits", ...(letter === "b" ? missing(all, query) : []), ...all[letter].hits.map(([rank, which, right, score]) => {
      const chunk = all.hits[which][0];
      const there = elsewhere.get(chunk || which);
      const isNew = right && letter === "b" && (gained.has(chunk) || (all.a && query.kind === "win" && query.a === "miss"));
      const forbidden = letter === "b" && (all.forbidden ?? []).includes(rank);
      const marks = [];
      if (right) marks.push(el("span", "ok", isNew ? "✓ expected, gained" : "✓ expected"));
      if (forbidden) marks.push(el("span", "no-ok", "✗ forbidden"));
      const notes = [];
      if (data.same_ids && !other.gone && there !== rank) {
        const absent = other.more > 0 ? "not shown in" : "not in";
        notes.push(`${there === undefined ? absent : `rank ${there} in`} ${letter === "a" ? "B" : "A"}`);
      }
      if (score !== undefined) notes.push(`score ${Number(score.toPrecision(4))}`);
      const cell = passage(all.hits[which], marks, notes);
      return el("li", forbidden ? "forbidden" : right ? "right" : "", el("span", "no", String(rank)), cell);
    }));
  }

  // What A found and B did not, where one looks for it: above B's hits.
  function missing(all, query) {
    const known = new Map(all.hits.map((hit) => [hit[0], hit]));
    const rankIn = (side, id) => side?.hits?.find(([, which, right]) => right && all.hits[which][0] === id)?.[0];
    const total = all.b.hits.length + all.b.more;
    const stored = `not among the ${number(total)} ${total === 1 ? "hit" : "hits"} that run B stored`;
    const low = query.kind === "regression" ? all.b.hits.find(([, , right]) => right)?.[0] : undefined;
    return (all.lost ?? []).map((id) => {
      const [, path, heading] = known.get(id) ?? [id, "", ""];
      const [before, now] = [rankIn(all.a, id), rankIn(all.b, id) ?? low];
      const found = now ? `only at rank ${now} in B` : total ? stored : "run B has no hits";
      const head = el("div", "head", el("b", "", heading || path || id), el("span", "no-ok", "✗ missing"));
      return el("li", "missing", el("span", "no", "–"), el("div", "passage", head,
        el("div", "small", `${before ? `rank ${before} in A, ` : ""}${found}`)));
    });
  }

  // -- answers

  function answers(all) {
    const given = ["a", "b"].filter((letter) => all[letter]?.answer);
    if (!given.length) return null;
    const texts = given.map((letter) => all[letter].answer.text.map((part) => (typeof part === "string" ? part : part[0])).join(""));
    const changed = texts.length === 2 ? differences(...texts) : [[], []];
    const sides = el("div", "sides");
    for (const letter of ["a", "b"]) {
      const result = all[letter];
      if (!result || result.gone) continue;
      sides.append(result.answer ? answer(letter, result.answer, changed[given.indexOf(letter)])
        : el("div", "side", sideTitle(letter), el("p", "muted", "no answer")));
    }
    return el("div", "answers", legend(sides), sides);
  }

  // What the marks in both answers mean, of those that there are.
  function legend(sides) {
    const meanings = [["mark.good", "mark", "good", "keeps a rule"], ["mark.bad", "mark", "bad", "breaks a rule"],
      ["ins, del", "ins", "", "only in this answer"]].filter(([marks]) => sides.querySelector(marks));
    const parts = meanings.flatMap(([, tag, name, words], at) => [at ? " · " : "", el(tag, name, words)]);
    return parts.length ? el("p", "muted small legend", "In the answers: ", ...parts) : null;
  }

  function answer(letter, given, changed) {
    const title = sideTitle(letter);
    title.append(given.grounded ? "answer" : `refused${given.why ? `: ${given.why}` : ""}`);
    const text = markedText(given.text, changed, letter === "a" ? "del" : "ins");
    const lines = given.rules.map(([rule, what, kept]) =>
      el("li", "", el("span", kept ? "ok" : "no-ok", kept ? "✓ " : "✗ "), `${rule} `, el("code", "", what)));
    for (const [marker, where, resolves] of given.cites) {
      lines.push(el("li", "", el("span", resolves ? "ok" : "no-ok", resolves ? "✓ " : "✗ "), `cites ${marker} `, el("code", "", where), resolves ? "" : " which leads nowhere"));
    }
    if (given.cites_more) lines.push(el("li", "muted", `and ${number(given.cites_more)} more citations`));
    const blank = el("span", "muted", "(blank)");
    return el("div", "side", title, el("div", "answer", ...(text.length ? text : [blank]), cutNote(given.cut)),
      lines.length ? el("ul", "rules", ...lines) : null);
  }

  // Pieces of text: those that keep or break a rule are marked for that, and what is changed in the others.
  function markedText(pieces, changed, tag) {
    let at = 0;
    return pieces.flatMap((piece) => {
      const [text, rule] = typeof piece === "string" ? [piece, ""] : piece;
      const nodes = [];
      let done = 0;
      for (const [start, end] of rule ? [] : changed) {
        const [from, to] = [Math.max(start - at, done), Math.min(end - at, text.length)];
        if (from >= to) continue;
        nodes.push(text.slice(done, from), el(tag, "", text.slice(from, to)));
        done = to;
      }
      nodes.push(text.slice(done));
      at += text.length;
      return rule ? [el("mark", rule, ...nodes)] : nodes.filter(Boolean);
    });
  }

  // -- events

  let pending = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(pending);
    if (event.target.name === "text") pending = setTimeout(update, 60);
    else update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("[type=reset]").addEventListener("click", (event) => {
    event.preventDefault();
    filter();
  });
  more.addEventListener("click", () => {
    const first = drawn;
    draw();
    list.children[first]?.querySelector("summary").focus({ preventScroll: true });
  });
  function filter(filters = {}, ranks = null) {
    form.reset();
    flow = ranks;
    for (const [name, value] of Object.entries(filters)) form.elements[name].value = value;
    update();
  }
  function only(filters, ranks) {
    filter(filters, ranks);
    document.getElementById("queries").scrollIntoView();
  }
  for (const link of document.querySelectorAll("a[data-kind], a[data-outcome]")) {
    link.addEventListener("click", () => only({ ...link.dataset }));
  }
  for (const move of document.querySelectorAll("[data-a][data-b]")) {
    move.addEventListener("click", () => only({}, [Number(move.dataset.a), Number(move.dataset.b)]));
  }

  // `#query-` and the id of a query opens it: where it is drawn, or else in the list of all.
  async function openLinked() {
    const hash = decodeURIComponent(location.hash.slice(1).replace(/%(?![0-9a-f]{2})/gi, "%25"));
    if (!hash || document.getElementById(hash)) return;
    const isLinked = (row) => `query-${row.id}` === hash || row.id === hash;
    let row = data.rows.find(isLinked);
    if (!row && rest) {
      await rest;
      row = data.rows.find(isLinked);
    }
    if (!row) return;
    const drawnNode = () => row.nodes?.find((node) => node.isConnected);
    if (!drawnNode()) filter();
    while (!drawnNode()) draw();
    const node = drawnNode();
    node.open = true;
    await node.fill();
    node.querySelector("summary").focus({ preventScroll: true });
    node.scrollIntoView();
  }
  addEventListener("hashchange", openLinked);
  addEventListener("beforeprint", () => {
    for (const table of document.querySelectorAll("details.all")) table.open = true;
  });

  function numberRows() {
    data.rows.forEach((row, n) => { row.n = n; });
  }

  numberRows();
  form.hidden = false;
  const failed = data.rows.filter((row) => row.lost === 1).slice(0, data.failed);
  document.getElementById("failed-rows")?.append(...failed.map(queryElement));
  update();
  const rest = canUnpack && data.total > data.rows.length ? unpack("rows-packed").then(extend) : null;
  openLinked();
})();
