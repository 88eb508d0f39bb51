"use strict";
// The sample viewer. Everything shown was written by users or models: it is set as text, never as markup.

let DATA = null;
const CHUNKS = new Map();
const WAITING = new Map();
const LINE = 56;
const STATUS = { ok: 0, error: 1, missing: 2, absent: 3 };
const view = { order: [], place: -1, selected: -1, texts: null };
const by = (id) => document.getElementById(id);
const say = (key, values = {}) => TEXTS[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

function vlmhbChunk(number, records) {
  CHUNKS.set(number, records);
  (WAITING.get(number) || []).forEach((done) => done());
  WAITING.delete(number);
}

function vlmhbIndex(data) {
  DATA = data;
  by("viewer").hidden = false;
  fillMenus();
  const form = by("viewer").querySelector("form");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  let waiting = 0;
  form.elements.search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 150); });
  by("list").addEventListener("scroll", drawList, { passive: true });
  by("previous").addEventListener("click", () => step(-1));
  by("next").addEventListener("click", () => step(1));
  addEventListener("keydown", onKey);
  addEventListener("hashchange", () => followHash(true));
  addEventListener("resize", drawList);
  filter();
  if (!followHash(true)) select(view.order.length ? 0 : -1, false);
}

/** The records of a chunk, loaded once. */
function chunk(number) {
  if (CHUNKS.has(number)) return Promise.resolve(CHUNKS.get(number));
  return new Promise((resolve, reject) => {
    const done = () => resolve(CHUNKS.get(number));
    if (WAITING.has(number)) { WAITING.get(number).push(done); return; }
    WAITING.set(number, [done]);
    const script = document.createElement("script");
    script.src = `samples/${number}.js`;
    script.onerror = () => { WAITING.delete(number); reject(new Error(say("broken", { file: script.src }))); };
    document.head.append(script);
  });
}

async function record(sample) {
  return (await chunk(Math.floor(sample / DATA.chunk)))[sample % DATA.chunk];
}

// --- menus and filters

function fillMenus() {
  const form = by("viewer").querySelector("form").elements;
  const fill = (menu, first, names) => {
    menu.replaceChildren(new Option(first, ""), ...names.map(([name, value]) => new Option(name || say("unnamed"), value)));
  };
  const counted = (names) => names.map((name, at) => [name, at]);
  fill(form.dataset, say("all"), counted(DATA.datasets));
  fill(form.cls, say("all"), counted(DATA.classes));
  fill(form.type, say("all"), counted(DATA.types));
  fill(form.entry, say("any"), counted(DATA.entries.map((entry) => entry.label)));
  const metrics = [...new Map(DATA.entries.flatMap((e) => e.metrics).map((m) => [m.name, m.title]))];
  fill(form.sort, say("order"), metrics.flatMap(([name, title]) => [
    [say("worst") + title, `-${name}`], [say("best") + title, `+${name}`],
  ]));
  for (const [name, some] of [["dataset", DATA.datasets], ["entry", DATA.entries]]) {
    by("viewer").querySelector(`[data-for=${name}]`).hidden = some.length < 2;
  }
}

async function filter() {
  const form = by("viewer").querySelector("form").elements;
  const wanted = form.search.value.trim().toLowerCase();
  if (wanted && !view.texts) {
    view.texts = await allTexts();
    if (form.search.value.trim().toLowerCase() !== wanted) return;
  }
  const entries = form.entry.value === "" ? DATA.entries : [DATA.entries[form.entry.value]];
  const equal = (column, menu) => menu.value === "" || column === Number(menu.value);
  const order = [];
  for (let sample = 0; sample < DATA.row.length; sample += 1) {
    if (!equal(DATA.dataset[sample], form.dataset) || !equal(DATA.cls[sample], form.cls)) continue;
    if (!equal(DATA.type[sample], form.type)) continue;
    if (!entries.some((entry) => entry.status[sample] !== STATUS.absent)) continue;
    if (form.wrong.checked && !entries.some((entry) => entry.wrong[sample])) continue;
    if (wanted && !view.texts[sample].includes(wanted)) continue;
    order.push(sample);
  }
  sortSamples(order, form.sort.value, entries);
  view.order = order;
  view.place = order.indexOf(view.selected);
  by("shown").textContent = order.length
    ? say("shown", { shown: order.length, all: DATA.row.length }) : say("nothing");
  by("space").style.height = `${order.length * LINE}px`;
  if (view.place < 0 && order.length && view.selected >= 0) select(0, false);
  else showPlace();
}

function sortSamples(order, choice, entries) {
  if (!choice) return;
  const name = choice.slice(1);
  const columns = entries.flatMap((entry) => entry.metrics.map((metric, at) => [metric, entry.scores[at]]))
    .filter(([metric]) => metric.name === name);
  if (!columns.length) return;
  const up = columns[0][0].up, worstFirst = choice[0] === "-";
  // Of several answers to one sample the one that comes first in this order counts.
  const pick = up === worstFirst ? Math.min : Math.max;
  const keys = new Map(order.map((sample) => {
    const values = columns.map(([, scores]) => scores[sample]).filter((value) => value !== null);
    return [sample, values.length ? pick(...values) : null];
  }));
  order.sort((one, other) => {
    const a = keys.get(one), b = keys.get(other);
    if (a === null || b === null) return (a === null) - (b === null) || one - other;
    return (up === worstFirst ? a - b : b - a) || one - other;
  });
}

async function allTexts() {
  const count = Math.ceil(DATA.row.length / DATA.chunk);
  const texts = [];
  for (let number = 0; number < count; number += 1) {
    by("shown").textContent = say("loading", { done: number, all: count });
    for (const one of await chunk(number)) {
      const sample = texts.length;
      texts.push([
        DATA.row[sample], DATA.page[sample], DATA.classes[DATA.cls[sample]], DATA.types[DATA.type[sample]],
        one.q, one.ref, one.file, ...(one.refs || []), ...one.answers.filter(Boolean).flatMap((answer) => [answer.a, answer.q, answer.e]),
      ].filter((text) => text !== undefined && text !== null).join("\n").toLowerCase());
    }
  }
  return texts;
}

// --- the list: only the lines in sight exist

function drawList() {
  const list = by("list");
  const first = Math.max(0, Math.floor(list.scrollTop / LINE) - 4);
  const last = Math.min(view.order.length, Math.ceil((list.scrollTop + list.clientHeight) / LINE) + 4);
  const lines = [];
  for (let place = first; place < last; place += 1) lines.push(listLine(place));
  by("space").replaceChildren(...lines);
  if (view.place >= first && view.place < last) list.setAttribute("aria-activedescendant", "line-" + view.place);
  else list.removeAttribute("aria-activedescendant");
}

function listLine(place) {
  const sample = view.order[place];
  const line = element("div", "line");
  line.id = "line-" + place;
  line.setAttribute("role", "option");
  line.setAttribute("aria-selected", place === view.place);
  line.setAttribute("aria-posinset", place + 1);
  line.setAttribute("aria-setsize", view.order.length);
  line.style.top = `${place * LINE}px`;
  line.dataset.row = DATA.row[sample];
  const picture = element("span", "thumb");
  if (DATA.images[sample].length) {
    const image = element("img");
    image.loading = "lazy";
    image.alt = "";
    image.src = `images/${DATA.pages[DATA.images[sample][0]]}.t.jpg`;
    picture.append(image);
  }
  const what = element("span", "what");
  const group = [DATA.classes[DATA.cls[sample]], DATA.types[DATA.type[sample]]].filter(Boolean).join(" · ");
  what.append(appendText(element("bdi", "ref"), DATA.ref[sample] || say("empty")), element("small", "", `#${DATA.row[sample]} ${group}`));
  const marks = element("span", "marks");
  for (const entry of DATA.entries) {
    if (entry.status[sample] === STATUS.absent) continue;
    const kind = state(entry, sample);
    const mark = element("span", kind, { right: "✓", wrong: "✗", error: "!", missing: "–" }[kind]);
    mark.title = `${entry.label}: ${say(kind)}`;
    marks.append(mark);
  }
  line.append(picture, what, marks);
  line.addEventListener("click", () => select(place, false));
  return line;
}

function state(entry, sample) {
  if (entry.status[sample] === STATUS.error) return "error";
  if (entry.status[sample] === STATUS.missing) return "missing";
  return entry.wrong[sample] ? "wrong" : "right";
}

// --- choosing a sample

function select(place, focus) {
  view.place = place;
  view.selected = place < 0 ? -1 : view.order[place];
  if (place >= 0) {
    try {
      if (focus !== "hash" && (view.touched || focus)) history.replaceState(null, "", address(view.selected));
    } catch (error) {
      /* an address that may not be changed: the link in the sample still holds it */
    }
    drawSample(view.selected);
  }
  view.touched = true;
  showPlace();
}

function showPlace() {
  const list = by("list");
  if (view.place >= 0) {
    const top = view.place * LINE;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + LINE > list.scrollTop + list.clientHeight) list.scrollTop = top + LINE - list.clientHeight;
  }
  drawList();
}

function step(by_) {
  const place = Math.min(Math.max(view.place + by_, 0), view.order.length - 1);
  if (view.order.length && place !== view.place) select(place, true);
}

function address(sample) {
  return `#row=${encodeURIComponent(DATA.datasets[DATA.dataset[sample]])}/${DATA.row[sample]}`;
}

/** Show the sample that the address names, filters or not; false when it names none. */
function followHash(scroll) {
  const match = /^#row=(?:(.*)\/)?(\d+)$/.exec(location.hash);
  if (!match) return false;
  let dataset = match[1];
  try { dataset = dataset && decodeURIComponent(dataset); } catch (error) { return false; }
  const sample = DATA.row.findIndex((row, at) => row === Number(match[2])
    && (dataset === undefined || DATA.datasets[DATA.dataset[at]] === dataset));
  if (sample < 0) {
    by("shown").textContent = say("lost", { row: match[2] });
    return false;
  }
  if (!view.order.includes(sample)) {
    view.selected = sample;
    by("viewer").querySelector("form").reset();
    view.order = DATA.row.map((_, at) => at);
  }
  if (scroll) by("samples").scrollIntoView();
  select(view.order.indexOf(sample), "hash");
  return true;
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const form = by("viewer").querySelector("form").elements;
  const typing = event.target instanceof HTMLElement && event.target.matches("input:not([type=checkbox]), select, textarea");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const inside = event.target === by("list");
  const actions = {
    j: () => step(1),
    k: () => step(-1),
    "/": () => { by("samples").scrollIntoView(); form.search.focus(); },
    w: () => { form.wrong.checked = !form.wrong.checked; filter(); },
    ...(inside && {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => step(10),
      PageUp: () => step(-10),
      Home: () => step(-Infinity),
      End: () => step(Infinity),
    }),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
}

// --- one sample

async function drawSample(sample) {
  let found;
  try {
    found = await record(sample);
  } catch (error) {
    by("sample").replaceChildren(element("p", "warning", error.message));
    return;
  }
  if (view.selected !== sample) return;
  const about = element("div", "about");
  const head = element("p", "head");
  const link = element("a", "", `#${DATA.row[sample]}`);
  link.href = address(sample);
  link.title = say("link");
  const group = [DATA.page[sample], DATA.classes[DATA.cls[sample]], DATA.types[DATA.type[sample]]].filter(Boolean);
  head.append(link, appendText(element("bdi", "quiet"), " " + group.join(" · ")));
  about.append(head, field(say("question"), found.q), field(say("reference"), found.ref));
  if (found.cref !== null) about.append(field(`${say("reference")} (${say("compared")})`, found.cref));
  (found.refs || []).forEach((text, at) => {
    about.append(field(say("also_right"), text));
    if (found.crefs[at] !== text) about.append(field(`${say("also_right")} (${say("compared")})`, found.crefs[at]));
  });
  const answers = element("div", "answers");
  DATA.entries.forEach((entry, at) => {
    if (found.answers[at]) answers.append(answerCard(entry, sample, found, found.answers[at]));
  });
  const words = element("div", "words");
  words.append(about, answers);
  by("sample").replaceChildren(pages(sample, found), words);
}

function pages(sample, found) {
  const block = element("div", "pages");
  DATA.images[sample].forEach((page, at) => {
    const frame = element("a", "page");
    frame.href = `images/${DATA.pages[page]}.jpg`;
    frame.target = "_blank";
    const image = element("img");
    image.src = frame.href;
    image.alt = say("page_alt", { page: DATA.page[sample], file: found.file });
    frame.append(image);
    const box = at === 0 && DATA.boxes[sample];
    if (box) {
      const mark = element("span", "box");
      mark.title = say("box");
      ["left", "top", "width", "height"].forEach((side, n) => { mark.style[side] = `${box[n] * 100}%`; });
      frame.append(mark);
    }
    block.append(frame);
  });
  if (!block.children.length) block.append(element("p", "quiet", say("no_image")));
  const caption = appendText(element("p", "quiet file"), found.file);
  block.append(caption);
  return block;
}

function answerCard(entry, sample, found, answer) {
  const card = element("div", "answer");
  const kind = state(entry, sample);
  const head = element("p", "head");
  head.append(element("strong", "", entry.label), element("span", `state ${kind}`, say(kind)));
  entry.metrics.forEach((metric, at) => {
    const value = entry.scores[at][sample];
    if (value !== null) head.append(element("small", "", `${metric.title} ${Number(value.toFixed(3))}`));
  });
  card.append(head);
  if (answer.e) card.append(appendText(element("p", "warning"), answer.e));
  if (answer.a !== undefined) {
    const compared = answer.c === undefined ? answer.a : answer.c;
    const accepted = [found.cref === null ? found.ref : found.cref, ...(found.crefs || [])];
    const near = answer.k || 0;
    card.append(difference(accepted[near], compared));
    if (near > 0) card.append(folded(say("nearest"), accepted[near]));
    if (answer.c !== undefined) card.append(folded(say("generated"), answer.a));
  }
  if (answer.q !== undefined) card.append(folded(say("own_question"), answer.q));
  if (answer.n) card.append(field(say("notes"), answer.n));
  const facts = measured(answer);
  if (facts) card.append(element("p", "quiet", facts));
  return card;
}

function difference(reference, answer) {
  const text = element("p", "text diff");
  const { runs, whole } = compareTexts(reference, answer);
  for (const [kind, part] of runs) {
    if (kind === "=") appendText(text, part);
    else appendText(text.appendChild(element(kind === "+" ? "ins" : "del")), part.trim() ? part : part.replaceAll(" ", "␣"));
  }
  if (!answer) text.append(element("span", "quiet", ` ${say("empty")}`));
  if (whole) return text;
  const block = element("div");
  block.append(text, element("p", "quiet", say("too_long")));
  return block;
}

function measured(answer) {
  const [, output, first, , total] = answer.t;
  const time = (value) => (value < 1 ? `${Math.round(value * 1000)}\u00a0${say("ms")}` : `${value.toFixed(2)}\u00a0${say("s")}`);
  const facts = [];
  if (answer.f === "length") facts.push(say("cut"));
  if (output !== null) facts.push(`${output} ${say("tokens")}`);
  if (first !== null) facts.push(`${say("first")} ${time(first)}`);
  if (total !== null) facts.push(`${say("total")} ${time(total)}`);
  return facts.join(" · ");
}

function field(name, text) {
  const block = element("div", "field");
  block.append(element("small", "quiet", name), appendText(element("p", "text"), text || say("empty")));
  return block;
}

function folded(name, text) {
  const block = element("details");
  block.append(element("summary", "", name), appendText(element("p", "text"), text || say("empty")));
  return block;
}

function element(name, kind = "", text = "") {
  const node = document.createElement(name);
  if (kind) node.className = kind;
  if (text) node.textContent = text;
  return node;
}
