"use strict";
// The page's view of things, and what all its parts share.

const $ = (id) => document.getElementById(id);

/** Make an element. Texts become text nodes, so that no name is ever read as HTML. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name of somebody's, whose direction of writing does not disturb its surroundings. */
const bdi = (name) => breakable(make("bdi", {}, String(name)));

/** Let a name be broken where its parts meet, rather than anywhere. */
function breakable(element) {
  const parts = element.textContent.split(/(?<=[-_+/:.,])(?=[^-_+/:.,\d])/u);
  element.replaceChildren(...parts.flatMap((part, at) => (at ? [make("wbr"), part] : [part])));
  return element;
}

/** A name for a figure: Plotly reads some HTML in texts. Cut, and kept from turning its line. */
function plain(name, most = 48) {
  const letters = Array.from(String(name));
  const short = letters.length > most ? letters.slice(0, most - 1).join("") + "…" : String(name);
  const safe = short.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return `\u2068${safe}\u2069`;
}

/** Print a number with so many decimals, exact halves to the even digit, as Python does. */
function printed(value, digits) {
  const halves = value * 2 ** (digits + 1);
  if (Number.isInteger(halves) && Math.abs(halves) % 2 === 1) {
    const units = Math.floor(value * 10 ** digits);
    const even = units % 2 === 0 ? units : units + 1;
    return (even / 10 ** digits).toFixed(digits);
  }
  return value.toFixed(digits);
}

const percent = (value, digits = 1) => `${printed(100 * value, digits)}%`;
const signed = (value) => (value < 0 ? "" : "+") + printed(100 * value, 1);
const whole = (n) => n.toLocaleString("en-US");

/** "[75.7, 76.5], n = 50,000", and what is not known is said to be so. */
function certainty(low, high, n, digits = 1) {
  const known = low !== null && high !== null;
  const ends = known ? `[${printed(100 * low, digits)}, ${printed(100 * high, digits)}]` : "[interval not known]";
  return `${ends}, ${n ? `n = ${whole(n)}` : "n not known"}`;
}

async function unpacked(id) {
  const letters = atob($(id).textContent.trim());
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function download(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function csv(columns, rows) {
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n";
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

/** Colours are told by the style sheet, for light and dark. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// The view: all that can be chosen. What differs from the defaults is in the address.

const page = { data: null, defaults: {}, view: {}, parts: {}, files: {}, drawn: new Set() };

function readAddress() {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const [key, fallback] of Object.entries(page.defaults)) {
    page.view[key] = said.get(key) ?? fallback;
  }
  return said.get("at");
}

function writeAddress(at) {
  const said = new URLSearchParams();
  for (const [key, value] of Object.entries(page.view)) {
    if (value !== page.defaults[key]) said.set(key, value);
  }
  if ([...said].length) said.set("at", at);
  history.replaceState(null, "", `#${said}`);
}

/** Choose, and draw again what depends on it. */
function choose(changes, at) {
  Object.assign(page.view, changes);
  showControls();
  writeAddress(at);
  const touched = Object.keys(changes);
  for (const [name, part] of Object.entries(page.parts)) {
    if (touched.some((key) => part.keys.includes(key))) draw(name);
  }
}

/** Draw a part, unless nobody has been near it yet. */
function draw(name) {
  if (page.drawn.has(name)) page.parts[name].draw();
}

function drawAll() {
  for (const name of Object.keys(page.parts)) {
    page.drawn.add(name);
    page.parts[name].draw();
  }
}

/** Menus and boxes show what the view says; a name that is not there chooses the first. */
function showControls() {
  for (const control of document.querySelectorAll("[data-view]")) {
    const key = control.dataset.view;
    if (control.dataset.menu) fillMenu(control);
    if (control.type === "checkbox") {
      control.checked = page.view[key] === "yes";
    } else {
      control.value = page.view[key];
      if (control.tagName === "SELECT" && control.selectedIndex < 0 && control.options.length) {
        control.selectedIndex = 0;
        page.view[key] = control.value;
      }
    }
  }
}

const menus = {};

/** Fill a menu from [value, text, group] entries, unless it has them already. */
function fillMenu(select) {
  const entries = menus[select.dataset.menu]();
  const said = JSON.stringify(entries);
  if (select.dataset.said === said) return;
  select.dataset.said = said;
  const groups = new Map();
  for (const [value, text, group] of entries) {
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(make("option", { value }, text));
  }
  select.replaceChildren();
  for (const [group, options] of groups) {
    if (group) select.append(make("optgroup", { label: group }));
    (group ? select.lastChild : select).append(...options);
  }
}

/** The models that the search finds: null if nothing is sought. */
function sought() {
  const words = page.view.find.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  return page.data.models.map((model) => words.every((word) => model.name.toLowerCase().includes(word)));
}

/** Which models to draw lines of: those sought, or measured here, or else the best few. */
function fewModels(known, score, most = 8) {
  const found = sought();
  const there = [...page.data.models.keys()].filter(known);
  const mine = there.filter((at) => page.data.models[at].measured);
  const chosen = found ? there.filter((at) => found[at]) : mine.length ? mine : there;
  return [...chosen].sort((a, b) => score(b) - score(a)).slice(0, most);
}

// Figures.

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

function layout(x, y, more = {}) {
  const axis = (title, own) => ({
    title: { text: title, font: { size: 13 }, standoff: 8 },
    gridcolor: colour("grid"), linecolor: colour("line"), zeroline: false, automargin: true, ...own,
  });
  const { xaxis, yaxis, ...rest } = more;
  return {
    paper_bgcolor: colour("card"), plot_bgcolor: colour("card"),
    font: { family: FONT, size: 12.5, color: colour("ink") },
    margin: { l: 56, r: 12, t: 12, b: 48 }, hovermode: "closest", dragmode: false,
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("soft"), font: { color: colour("ink"), family: FONT }, align: "left", namelength: -1 },
    showlegend: false,
    xaxis: axis(x, xaxis), yaxis: axis(y, yaxis), ...rest,
  };
}

function plot(name, traces, figureLayout, said) {
  const figure = $(`${name}-figure`);
  figure.setAttribute("aria-label", said);
  const settings = { displayModeBar: false, responsive: true };
  Plotly.react(figure, traces, figureLayout, settings);
  page.files[name] = { ...page.files[name], figure: () => ({ data: figure.data, layout: figure.layout, width: figure.clientWidth, height: figure.clientHeight }) };
}

const PERCENT_AXIS = { tickformat: ",.0%" };
const LINES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down"];

/** One line through points with error bars, in the nth style. */
function lineTrace(number, name, x, y, low, high, texts) {
  const ink = colour(`c${(number % 7) + 1}`);
  return {
    x, y, name: plain(name, 30), type: "scatter", mode: "lines+markers", hoverinfo: "text", hovertext: texts,
    line: { color: ink, dash: LINES[number % LINES.length], width: 2 },
    marker: { color: ink, symbol: SYMBOLS[number % SYMBOLS.length], size: 8 },
    error_y: { type: "data", symmetric: false, array: high.map((end, at) => end === null ? 0 : end - y[at]), arrayminus: low.map((end, at) => end === null ? 0 : y[at] - end), color: ink, thickness: 1.2, width: 3 },
  };
}

const LEGEND_BELOW = { showlegend: true, legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0 } };
