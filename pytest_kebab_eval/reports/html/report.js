"use strict";
(() => {
  const PAGE = 50;
  const NOT_UNPACKED = "not shown, since this browser cannot unpack them (it has no DecompressionStream)";
  const parse = (id) => JSON.parse(document.getElementById(id).textContent);
  const data = parse("index");
  const form = document.getElementById("filters");
  const list = document.getElementById("rows");
  const more = document.getElementById("more");
  const status = document.getElementById("status");
  const canUnpack = typeof DecompressionStream === "function";
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
    return all.brief ? fromBrief(all) : all;
  }

  // Details without texts, in the form of those that have them.
  function fromBrief(all) {
    const numbers = new Map();
    const which = (name) => numbers.set(name, numbers.get(name) ?? numbers.size).get(name);
    const side = (result) => {
      if (!result) return { gone: "no result in this run" };
      const [ids, right, ms, answered, more] = result;
      const hits = ids.map((name, place) => {
        const rank = more ? more.ranks[place] : place + 1;
        return [rank, which(name), right.includes(rank) ? 1 : 0];
      });
      return { hits, ms: ms ?? undefined, answered, more: 0, ...more, error: more?.error && [more.error, 0] };
    };
    const [a, b] = all.brief.map(side);
    const sides = data.alone ? { b } : { a, b };
    return { ...all, ...sides, hits: [...numbers.keys()].map((name) => [name, "", "", "", 0]), left_out: true };
  }

  // -- filtering

  function wanted() {
    const fields = new FormData(form);
    const kind = fields.get("kind");
    const cause = fields.get("cause");
    const slice = fields.get("slice");
    const words = fields.get("text").toLowerCase().split(/\s+/).filter(Boolean);
    return data.rows.filter((row) => {
      if (kind && (kind === "lost" ? !row.lost : row.kind !== kind)) return false;
      if (cause && row.cause !== cause) return false;
      if (slice && !row.slices.includes(Number(slice))) return false;
      if (flow && !(row.flow && row.flow[0] === flow[0] && row.flow[1] === flow[1])) return false;
      if (!words.length) return true;
      row.hay ??= `${row.id}\n${row.query}\n${row.note ?? ""}\n${row.cause ?? ""}`.toLowerCase();
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
    const note = missing ? `; ${number(missing)} more are ${canUnpack ? "being unpacked" : NOT_UNPACKED}` : "";
    status.textContent = (found.length === data.rows.length
      ? `${queries(found.length)}, the worst first`
      : `${number(found.length)} of ${queries(data.rows.length)}${moved}`) + note;
  }

  // -- a query

  function queryElement(query) {
    const [name, , glyph, effect] = data.kinds[query.kind];
    const text = el("bdi", "text", query.query);
    const chips = el("span", "chips", ...(query.checks ?? []).map((check) => el("span", "chip bad", `✗ ${check}`)));
    if (query.cause) {
      const cause = el("span", "chip", query.cause);
      cause.title = data.causes[query.cause];
      chips.append(cause);
    }
    const ranks = data.alone ? (/^\d+$/.test(query.b) ? `rank ${query.b}` : query.b) : `${query.a} → ${query.b}`;
    const node = el("details", `q ${query.lost ? "lost" : effect}`, el("summary", "",
      badge(query, name, glyph, effect), el("code", "name", query.id), text, chips,
      el("span", "ranks", ranks)));
    let filled = false;
    node.addEventListener("toggle", () => {
      if (node.open && !filled) {
        filled = true;
        details(query.n).then((all) => node.append(body(query, all)));
      }
    });
    return node;
  }

  // A query that failed is called that first, and its kind second; of a run alone, its kind says it.
  function badge(query, name, glyph, effect) {
    if (!query.lost || data.alone) return el("span", `badge ${effect}`, `${glyph} ${name}`);
    return el("span", "badge lost", "✗ failed ", el("span", "kind", name));
  }

  function body(query, all) {
    const facts = el("dl", "facts");
    const fact = (name, ...value) => facts.append(el("dt", "", name), el("dd", "", ...value));
    fact("query", all.query ? all.query[0] : query.query, all.query && cutNote(all.query[1]));
    if (all.refuse) fact("expected", "a refusal");
    if (all.expected.length) fact("expected", expected(all));
    if (all.expected_answer) fact("expected answer", all.expected_answer[0], cutNote(all.expected_answer[1]));
    if (query.cause) fact("cause", `${query.cause}: ${data.causes[query.cause]}`);
    if (query.note) fact("note", query.note);
    if (all.xfail) fact("xfail", all.xfail);
    if (all.line) fact("golden file", `line ${all.line}`);
    if (all.review) fact("review", el("code", "", all.review));
    if (query.slices.length) fact("slices", el("span", "chips", ...query.slices.map((part) => el("span", "chip", data.slices[part]))));
    const sides = el("div", "sides");
    for (const letter of ["a", "b"]) {
      if (all[letter]) sides.append(side(letter, all, query));
    }
    return el("div", "body", facts, sides, all.left_out && leftOut(Boolean(all.b)));
  }

  function leftOut(hasHits) {
    const what = hasHits ? "Texts of hits and answers are" : "Hits and answers are";
    const why = canUnpack || hasHits ? "left out, so that the page stays small" : NOT_UNPACKED;
    return el("p", "muted small", `${what} ${why}; `, el("code", "", "pytest -vv"), " prints the hits of every query.");
  }

  function expected(all) {
    const lost = new Set(all.lost);
    const gained = new Set(all.gained);
    const chips = all.expected.map((id) => {
      if (lost.has(id)) return el("span", "chip bad", "✗ lost ", el("code", "", id));
      if (gained.has(id)) return el("span", "chip good", "✓ gained ", el("code", "", id));
      return el("span", "chip", el("code", "", id));
    });
    if (all.expected_more) chips.push(`and ${number(all.expected_more)} more`);
    return el("span", "chips", ...chips);
  }

  function side(letter, all, query) {
    const result = all[letter];
    const title = el("h3", "", el("span", `letter ${letter}`, letter.toUpperCase()));
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
    if (result.answer) node.append(answer(result.answer));
    return node;
  }

  function hits(letter, all, query) {
    const other = all[letter === "a" ? "b" : "a"];
    const elsewhere = new Map((other?.hits ?? []).map(([rank, which]) => [all.hits[which][0] || which, rank]));
    const lost = new Set(all.lost);
    const gained = new Set(all.gained);
    return el("ol", "hits", ...all[letter].hits.map(([rank, which, right, score]) => {
      const [chunk, path, heading, text, length] = all.hits[which];
      const there = elsewhere.get(chunk || which);
      const head = el("div", "", el("code", "", chunk || path));
      let gone = false;
      if (right) {
        gone = letter === "a" && (lost.has(chunk) || query.kind === "regression");
        const isNew = letter === "b" && (gained.has(chunk) || (all.a && query.kind === "win" && query.a === "miss"));
        head.append(" ", el("span", gone ? "no-ok" : "ok", gone ? "✓ expected, lost in B" : isNew ? "✓ expected, gained" : "✓ expected"));
      }
      const forbidden = letter === "b" && (all.forbidden ?? []).includes(rank);
      if (forbidden) head.append(" ", el("span", "no-ok", "✗ forbidden"));
      if (all.a && !other.gone) {
        const name = letter === "a" ? "B" : "A";
        const absent = other.more > 0 ? "not shown in" : "not in";
        if (there !== rank) head.append(" ", el("span", "muted small", `${there === undefined ? absent : `rank ${there} in`} ${name}`));
      }
      if (score !== undefined) head.append(" ", el("span", "muted small", `score ${Number(score.toPrecision(4))}`));
      const where = [chunk ? path : "", heading].filter(Boolean).join(" > ");
      const cell = el("div", "", head, where && el("div", "where", where), text && el("div", "snippet", text, cutNote(length)));
      return el("li", forbidden ? "forbidden" : right ? `right${gone ? " gone" : ""}` : "", el("span", "no", String(rank)), cell);
    }));
  }

  function answer(given) {
    const node = el("div", "", el("h3", "", given.grounded ? "Answer" : `Refused${given.why ? `: ${given.why}` : ""}`));
    const text = given.text.map((part) => (typeof part === "string" ? part : el("mark", part[1], part[0])));
    node.append(el("div", "answer", ...(text.length ? text : [el("span", "muted", "(blank)")]), cutNote(given.cut)));
    const lines = given.rules.map(([rule, what, kept]) =>
      el("li", "", el("span", kept ? "ok" : "no-ok", kept ? "✓ " : "✗ "), `${rule} `, el("code", "", what)));
    for (const [marker, where, resolves] of given.cites) {
      lines.push(el("li", "", el("span", resolves ? "ok" : "no-ok", resolves ? "✓ " : "✗ "), `cites ${marker} `, el("code", "", where), resolves ? "" : " which leads nowhere"));
    }
    if (given.cites_more) lines.push(el("li", "muted", `and ${number(given.cites_more)} more citations`));
    node.append(el("ul", "rules", ...lines));
    return node;
  }

  // -- events

  let pending = 0;
  form.addEventListener("input", (event) => {
    clearTimeout(pending);
    if (event.target.name === "text") pending = setTimeout(update, 60);
    else update();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    flow = null;
    setTimeout(update);
  });
  more.addEventListener("click", () => {
    const first = drawn;
    draw();
    list.children[first]?.querySelector("summary").focus({ preventScroll: true });
  });
  function only(kind, ranks) {
    form.reset();
    flow = ranks;
    const pill = [...form.elements.kind].find((option) => option.value === kind);
    if (pill) pill.checked = true;
    update();
    document.getElementById("queries").scrollIntoView();
  }
  for (const link of document.querySelectorAll("a[data-kind]")) {
    link.addEventListener("click", () => only(link.dataset.kind, null));
  }
  for (const move of document.querySelectorAll("[data-a][data-b]")) {
    move.addEventListener("click", () => only("", [Number(move.dataset.a), Number(move.dataset.b)]));
  }
  addEventListener("beforeprint", () => {
    for (const table of document.querySelectorAll("details.all")) table.open = true;
  });

  function numberRows() {
    data.rows.forEach((row, n) => { row.n = n; });
  }

  numberRows();
  form.hidden = false;
  const failed = data.rows.filter((row) => row.lost).slice(0, data.failed);
  document.getElementById("failed-rows")?.append(...failed.map(queryElement));
  update();
  if (canUnpack && data.total > data.rows.length) unpack("rows-packed").then(extend);
})();
