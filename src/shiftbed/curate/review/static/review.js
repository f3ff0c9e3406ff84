"use strict";

// Texts from the server only ever become text, never markup.

const PAGE = 60;
const $ = (id) => document.getElementById(id);
const hard = document.body.dataset.recipe === "hard";
const filter = { class: "", predicted: "", verdict: "open" };
let data = null; // what /state says
let items = []; // by class, in each class the hardest first
let votes = {}; // picture -> [verdict, reason]
let cursor = null; // the picture that is looked at
let page = 0;
let gridShown = false;
const marked = new Set();
let working = Promise.resolve(); // votes go out one after the other

const verdictOf = (item) => votes[item.id]?.[0] ?? "";
const title = (name) => data.titles[name] ?? name;
const percent = (p) => (p === null ? "" : p > 0 && p < 0.001 ? "<0.1%" : `${(100 * p).toFixed(1)}%`);
const matches = (item) =>
  (!filter.class || item.class === filter.class) &&
  (!filter.predicted || item.predicted === filter.predicted) &&
  (!filter.verdict || (filter.verdict === "open" ? !verdictOf(item) : verdictOf(item) === filter.verdict));
const shown = () => items.filter(matches);
const current = () => items.find((item) => item.id === cursor);

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

async function ask(path, body) {
  let answer;
  try {
    answer = await fetch(path, body === undefined ? {} : {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    trouble("The server does not answer: nothing was saved just now. Start it again and open its new link; all earlier votes are kept.");
    return null;
  }
  if (!answer.ok) {
    trouble(answer.status === 403
      ? "This page belongs to a server that was stopped. Open the new link; all earlier votes are kept."
      : `The server refused that (${answer.status}); nothing was saved just now.`);
    return null;
  }
  trouble("");
  return answer.json();
}

let fading;
function say(text) {
  $("said").textContent = text;
  clearTimeout(fading);
  fading = setTimeout(() => { $("said").textContent = ""; }, 1600);
}

// What is looked at

function step(by) {
  const from = items.findIndex((item) => item.id === cursor);
  for (let at = from + by; at >= 0 && at < items.length; at += by) {
    if (matches(items[at])) return go(items[at].id);
  }
  say(by > 0 ? "That was the last one" : "That is the first one");
}

function afterVote(id) {
  const from = items.findIndex((item) => item.id === id);
  const later = items.slice(from + 1).find(matches);
  cursor = (later ?? items.find(matches))?.id ?? null;
  draw();
}

function go(id) {
  cursor = id;
  draw();
}

function chooseClass(name) {
  filter.class = name;
  page = 0;
  marked.clear();
  cursor = shown()[0]?.id ?? null;
  draw();
}

function turnClass(by) {
  const names = ["", ...data.classes];
  const now = filter.class || current()?.class || "";
  let at = names.indexOf(now);
  for (let tries = 0; tries < names.length; tries += 1) {
    at += by;
    if (at < 1 || at >= names.length) break;
    const there = items.find((item) => item.class === names[at] && matches({ ...item, class: filter.class || item.class }));
    if (!there) continue;
    if (filter.class) return chooseClass(names[at]);
    return go(there.id);
  }
  say(by > 0 ? "There is no class after this one" : "There is no class before this one");
}

// Votes

function targets() {
  if (!gridShown) return cursor ? [cursor] : [];
  if (marked.size) return [...marked];
  const focused = document.activeElement?.dataset?.picture;
  return focused ? [focused] : [];
}

function vote(verdict, reason = "") {
  working = working.then(async () => {
    const ids = targets();
    if (!ids.length) return say(gridShown ? "Select pictures first" : "There is nothing to judge here");
    const answer = await ask("/votes", { votes: ids.map((picture) => ({ picture, verdict, reason })) });
    if (!answer) return;
    votes = answer.votes;
    const done = { accept: "Accepted", reject: `Rejected: ${reason}`, skip: "Skipped" }[verdict];
    say(ids.length > 1 ? `${done} (${ids.length})` : done);
    marked.clear();
    if (gridShown) draw(); else afterVote(ids[0]);
  });
}

function undo() {
  working = working.then(async () => {
    const answer = await ask("/undo", {});
    if (!answer) return;
    votes = answer.votes;
    if (!answer.pictures.length) return say("There is nothing to undo");
    say(answer.pictures.length > 1 ? `Took back ${answer.pictures.length} votes` : "Took back your last vote");
    go(answer.pictures[0]);
  });
}

// Drawing

function draw() {
  drawProgress();
  const some = shown();
  const item = current();
  const none = gridShown ? !some.length : !item;
  $("one").hidden = gridShown || none;
  $("grid").hidden = !gridShown || none;
  $("empty").hidden = !none;
  if (none) $("empty").textContent = items.length && items.every(verdictOf) ? "All pictures are judged. Thank you." : "No picture is like that.";
  if (!none) { if (gridShown) drawGrid(some); else drawOne(item, some); }
  $("one-view").setAttribute("aria-pressed", String(!gridShown));
  $("grid-view").setAttribute("aria-pressed", String(gridShown));
}

function drawOne(item, some) {
  const picture = $("picture");
  const source = `/picture/${item.id}`;
  if (picture.getAttribute("src") !== source) {
    picture.classList.remove("small");
    picture.src = source;
  }
  picture.alt = hard ? `Labelled ${title(item.class)}` : `Found as ${title(item.class)}`;
  const at = some.findIndex((one) => one.id === item.id);
  $("place").textContent = at < 0 ? "" : `${at + 1} of ${some.length}`;
  $("file").textContent = item.file;
  $("question").textContent = hard ? `Is this “${title(item.class)}”, and nothing else?` : `Is this free of “${title(item.predicted)}”?`;
  const [verdict, reason] = votes[item.id] ?? ["", ""];
  $("verdict-now").className = `verdict ${verdict}`;
  $("verdict-now").textContent = { accept: "You accepted it.", reject: `You rejected it: ${reason}.`, skip: "You skipped it." }[verdict] ?? "";
  drawExamples("own-examples", item.class, hard ? "Good examples of" : "Others of");
  drawExamples("other-examples", item.predicted, hard ? "Taken for" : "It is taken for");
  $("answers").replaceChildren(...item.answers.map(([model, predicted, sure, own]) =>
    element("tr", {},
      element("td", { textContent: model.replace(/[_-]/g, "$&\u200b") }),
      element("td", { textContent: title(predicted) }),
      element("td", { className: "number", textContent: percent(sure) }),
      ...(hard ? [element("td", { className: "number", textContent: percent(own) })] : []))));
  const ahead = some[at + 1];
  if (ahead) new Image().src = `/picture/${ahead.id}`;
}

function drawExamples(place, name, words) {
  const numbers = data.examples[name] ?? [];
  if ($(place).dataset.shows === name) return;
  $(place).dataset.shows = name;
  const caption = element("p", {}, `${words} `, element("strong", { textContent: title(name) }));
  const pictures = numbers.map((number) =>
    element("img", { src: `/example/${number}?size=small`, alt: `An example of ${title(name)}`, loading: "lazy" }));
  const empty = place === "own-examples" && !numbers.length && hard;
  $(place).replaceChildren(empty ? "" : caption, element("div", {}, ...pictures));
}

function drawGrid(some) {
  const pages = Math.max(1, Math.ceil(some.length / PAGE));
  page = Math.min(page, pages - 1);
  const here = some.slice(page * PAGE, (page + 1) * PAGE);
  const focused = document.activeElement?.dataset?.picture;
  $("grid-title").textContent = `${filter.class ? title(filter.class) : "All classes"}: ${some.length} pictures`;
  $("marked").textContent = marked.size ? `${marked.size} selected` : "";
  $("page").textContent = `page ${page + 1} of ${pages}`;
  $("earlier").disabled = page === 0;
  $("later").disabled = page === pages - 1;
  $("thumbnails").replaceChildren(...here.map((item) => {
    const button = element("button", { type: "button", className: verdictOf(item) },
      element("img", { src: `/picture/${item.id}?size=small`, alt: "", loading: "lazy" }),
      element("span", { textContent: title(item.class) }),
      element("span", { className: "quiet", textContent: `taken for ${title(item.predicted)}` }));
    button.dataset.picture = item.id;
    button.setAttribute("aria-pressed", String(marked.has(item.id)));
    button.addEventListener("click", () => toggle(item.id));
    button.addEventListener("focus", () => { cursor = item.id; });
    return element("li", {}, button);
  }));
  const again = document.querySelector(`[data-picture="${CSS.escape(focused ?? cursor ?? "")}"]`);
  (again ?? document.querySelector("#thumbnails button"))?.focus({ preventScroll: !again });
}

function toggle(id) {
  if (!marked.delete(id)) marked.add(id);
  draw();
}

function markAll() {
  const here = [...document.querySelectorAll("#thumbnails button")].map((button) => button.dataset.picture);
  const all = here.every((id) => marked.has(id));
  here.forEach((id) => (all ? marked.delete(id) : marked.add(id)));
  draw();
}

function drawProgress() {
  const judged = items.filter(verdictOf).length;
  const accepted = items.filter((item) => verdictOf(item) === "accept").length;
  $("progress").max = Math.max(1, items.length);
  $("progress").value = judged;
  $("overall").textContent = `${judged} of ${items.length} judged, ${accepted} accepted`;
  const rows = ["", ...data.classes].map((name) => {
    const of = items.filter((item) => !name || item.class === name);
    const count = (verdict) => of.filter((item) => verdictOf(item) === verdict).length;
    const parts = [["yes", count("accept")], ["no", count("reject")], ["skipped", count("skip")]];
    const bar = element("span", { className: "bar" }, ...parts.map(([kind, number]) => {
      const part = element("i", { className: kind });
      part.style.width = `${(100 * number) / Math.max(1, of.length)}%`;
      return part;
    }));
    const done = parts.reduce((sum, [, number]) => sum + number, 0);
    const button = element("button", { type: "button" },
      element("span", { className: "name", textContent: name ? title(name) : "All classes" }),
      element("span", { className: "count", textContent: `${done}/${of.length}` }), bar);
    button.setAttribute("aria-current", String(filter.class === name));
    button.addEventListener("click", () => chooseClass(name));
    return element("li", {}, button);
  });
  const inside = $("classes").contains(document.activeElement)
    ? [...$("classes").querySelectorAll("button")].indexOf(document.activeElement) : -1;
  $("classes").replaceChildren(...rows);
  if (inside >= 0) $("classes").querySelectorAll("button")[inside]?.focus();
}

function show(grid) {
  gridShown = grid;
  page = Math.max(0, Math.floor(shown().findIndex((item) => item.id === cursor) / PAGE));
  marked.clear();
  if (!grid && !current()) cursor = shown()[0]?.id ?? null;
  draw();
}

// Keys

function gridMove(key) {
  const buttons = [...document.querySelectorAll("#thumbnails button")];
  const at = buttons.indexOf(document.activeElement);
  if (at < 0) { buttons[0]?.focus(); return; }
  const first = buttons[0].offsetTop;
  const row = buttons.filter((button) => button.offsetTop === first).length || 1;
  const by = { ArrowRight: 1, j: 1, ArrowLeft: -1, k: -1, ArrowDown: row, ArrowUp: -row }[key];
  buttons[at + by]?.focus();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || !data) return;
  if (event.target.matches?.("select, input, textarea")) return;
  if (event.key === "?") return open();
  if (!$("keys-on").checked) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const moves = ["ArrowRight", "ArrowLeft", "j", "k", "ArrowDown", "ArrowUp"];
  if (gridShown && moves.includes(key)) { event.preventDefault(); gridMove(key); return; }
  const number = Number(key);
  if (Number.isInteger(number) && number >= 1 && number <= data.reasons.length) vote("reject", data.reasons[number - 1]);
  else if (key === "a") vote("accept");
  else if (key === "s") vote("skip");
  else if (key === "u" || key === "z") undo();
  else if (key === "r") { document.querySelector(".reject").focus(); say(`1 to ${data.reasons.length} says why`); }
  else if (key === "j" || key === "ArrowRight") step(1);
  else if (key === "k" || key === "ArrowLeft") step(-1);
  else if (key === "n") turnClass(1);
  else if (key === "p") turnClass(-1);
  else if (key === "g") show(!gridShown);
  else if (key === "l" && gridShown) markAll();
  else return;
  event.preventDefault();
}

function open() { $("keys").showModal(); }

async function begin() {
  data = await ask("/state");
  if (!data) return;
  votes = data.votes;
  const place = new Map(data.classes.map((name, index) => [name, index]));
  items = data.items.map((item, index) => ({ ...item, index }));
  items.sort((one, two) => place.get(one.class) - place.get(two.class) || one.index - two.index);
  const predicted = [...new Set(items.map((item) => item.predicted))].sort();
  $("predicted").append(...predicted.map((name) => element("option", { value: name, textContent: title(name) })));
  cursor = shown()[0]?.id ?? null;
  $("accept").addEventListener("click", () => vote("accept"));
  $("skip").addEventListener("click", () => vote("skip"));
  $("undo").addEventListener("click", undo);
  $("back").addEventListener("click", () => step(-1));
  $("on").addEventListener("click", () => step(1));
  $("next-class").addEventListener("click", () => turnClass(1));
  $("one-view").addEventListener("click", () => show(false));
  $("grid-view").addEventListener("click", () => show(true));
  $("mark-all").addEventListener("click", markAll);
  $("help").addEventListener("click", open);
  $("earlier").addEventListener("click", () => { page -= 1; draw(); });
  $("later").addEventListener("click", () => { page += 1; draw(); });
  for (const which of ["predicted", "verdict"]) {
    $(which).addEventListener("change", () => {
      filter[which] = $(which).value;
      page = 0;
      marked.clear();
      cursor = shown()[0]?.id ?? null;
      draw();
    });
  }
  for (const button of document.querySelectorAll(".reject")) {
    button.addEventListener("click", () => vote("reject", button.dataset.reason));
  }
  $("picture").addEventListener("load", () => {
    const picture = $("picture");
    picture.classList.toggle("small", Math.max(picture.naturalWidth, picture.naturalHeight) <= 128);
  });
  document.addEventListener("keydown", pressed);
  draw();
}

begin();
