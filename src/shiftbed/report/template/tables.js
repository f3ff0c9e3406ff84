"use strict";
// Tables: sorted by a click on a heading, and downloads of every table and figure.

/** Let every heading of a table sort it; `first` columns from left keep their order. */
function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = make("button", { type: "button" });
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortBy(table, column));
  });
}

function sortBy(table, column, direction) {
  const heading = table.tHead.rows[0].cells[column];
  const falling = (direction ?? (heading.ariaSort === "descending" ? "ascending" : "descending")) === "descending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const keyed = [...table.tBodies[0].rows].map((row) => [key(row.cells[column]), row]);
  keyed.sort(([a], [b]) => compare(a, b, falling));
  table.tBodies[0].append(...keyed.map(([, row]) => row));
}

function key(cell) {
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text.replaceAll(",", ""));
  return text === "" ? null : Number.isNaN(number) ? text : number;
}

/** Gaps come last in either direction. */
function compare(a, b, falling) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
  return falling ? -order : order;
}

/** A table of rows, filled when its details are opened. */
function lazily(details, build) {
  details.addEventListener("toggle", () => {
    if (details.open) details.dispatchEvent(new Event("fill"));
  });
  details.addEventListener("fill", () => {
    details.querySelector(".scroll")?.remove();
    const table = build();
    sortable(table);
    details.append(make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": details.firstElementChild.textContent }, table));
  });
}

/** [heading, cells] columns as a table element; a cell is a text, or [text, value to sort by]. */
function tableOf(headings, rows, className = "") {
  const head = make("tr", {}, ...headings.map((heading) => make("th", { scope: "col" }, bdi(heading))));
  const body = rows.map((row) => make("tr", {}, ...row.map((cell, column) => {
    const [text, value] = Array.isArray(cell) ? cell : [cell, undefined];
    const attributes = column ? { class: typeof value === "number" ? "number" : null, "data-value": value } : { scope: "row" };
    return make(column ? "td" : "th", attributes, text instanceof Node ? text : bdi(text ?? ""));
  })));
  return make("table", { class: className }, make("thead", {}, head), make("tbody", {}, ...body));
}

/** Every cell of the report, at full precision. */
function cellRows() {
  const { settings, models, origin, accuracy, low, high, n } = page.data;
  const names = ["missing", "measured", "imported", "incomplete"];
  const rows = [];
  models.forEach((model, m) => settings.forEach((setting, s) => {
    if (origin[s][m]) rows.push([model.name, setting.name, names[origin[s][m]], accuracy[s][m], low[s][m], high[s][m], n[s][m], setting.metric, model.category]);
  }));
  return [["model", "setting", "origin", "accuracy", "low", "high", "n", "metric", "category"], rows];
}

function startTables() {
  document.querySelectorAll("table.sortable").forEach(sortable);
  for (const cell of document.querySelectorAll("[data-correlation]")) paint(cell, (Number(cell.dataset.correlation) + 1) / 2);
  page.files.cells = { table: cellRows };
  for (const [name, table] of Object.entries(page.data.tables)) {
    page.files[name] ??= { table: () => [table.columns, table.rows] };
  }
  page.files.settings = { table: () => {
    const rows = page.data.settings.filter((setting) => setting.group !== MEANS).map((setting, s) => {
      const known = page.data.n[s].filter(Boolean);
      const count = (kind) => page.data.origin[s].filter((one) => one === kind).length;
      return [setting.name, setting.clean, known.length ? Math.min(...known) : null, known.length ? Math.max(...known) : null, setting.metric, count(1), count(2), count(0), count(3)];
    });
    return [["setting", "clean", "least_n", "most_n", "metric", "measured", "imported", "missing", "incomplete"], rows];
  } };
  page.files.correlations = { ...page.files.correlations, figure: correlationFigure };
  if ($("records")) {
    const { columns, rows } = page.data.tables.records;
    lazily($("records"), () => tableOf(columns, rows.map((row) => row.map((value) => typeof value === "boolean" ? (value ? "yes" : "no") : value))));
  }
  for (const button of document.querySelectorAll("[data-csv]")) {
    button.addEventListener("click", () => {
      const name = button.dataset.csv;
      download(`${name}.csv`, csv(...page.files[name].table()), "text/csv;charset=utf-8");
    });
  }
  for (const button of document.querySelectorAll("[data-figure]")) {
    button.addEventListener("click", () => saveFigure(button.dataset.figure, button.dataset.kind));
  }
}

async function saveFigure(name, format) {
  if (!page.files[name]?.figure) drawAll();
  const { data, layout: figureLayout, width, height } = page.files[name].figure();
  const address = await Plotly.toImage({ data, layout: figureLayout }, { format, width: Math.max(width, 640), height, scale: format === "png" ? 2 : 1 });
  const content = format === "svg" ? decodeURIComponent(address.slice(address.indexOf(",") + 1)) : Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (letter) => letter.charCodeAt(0));
  download(`${name}.${format}`, content, format === "svg" ? "image/svg+xml" : "image/png");
}

/** A heat map as a figure: for what the page shows as a coloured table. */
function heatFigure(across, down, values, texts, title) {
  const size = { width: 220 + 58 * across.length, height: 150 + 24 * down.length };
  return {
    ...size,
    data: [{ type: "heatmap", x: across.map((_, at) => at), y: down.map((_, at) => at), z: values, text: texts, texttemplate: "%{text}", textfont: { size: 10 }, colorscale: PALETTE.map((stop, at) => [at / (PALETTE.length - 1), `rgb(${stop})`]), zmin: 0, zmax: 1, showscale: false, xgap: 1, ygap: 1 }],
    layout: layout("", "", {
      title: { text: title, font: { size: 13 } }, margin: { l: 200, r: 12, t: 40, b: 110 },
      xaxis: { tickvals: across.map((_, at) => at), ticktext: across.map((name) => plain(name, 22)), tickangle: -45, showgrid: false },
      yaxis: { tickvals: down.map((_, at) => at), ticktext: down.map((name) => plain(name, 30)), autorange: "reversed", showgrid: false },
    }),
  };
}

function correlationFigure() {
  const { columns, rows } = page.data.tables.correlations;
  const at = Object.fromEntries(columns.map((name, column) => [name, column]));
  const across = [...new Set(rows.map((row) => row[at.natural]))];
  const down = [...new Set(rows.map((row) => row[at.synthetic]))];
  const grid = (value) => down.map((name) => across.map((other) => value(rows.find((row) => row[at.synthetic] === name && row[at.natural] === other)?.[at.pearson])));
  return heatFigure(across, down, grid((r) => r === undefined ? null : (r + 1) / 2), grid((r) => r === undefined ? "" : printed(r, 2)), "Pearson correlation of effective robustness");
}

// Colours from dark violet to yellow that differ in lightness too, for every kind of sight.
const PALETTE = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function paint(cell, share) {
  const place = Math.min(Math.max(share, 0), 1) * (PALETTE.length - 1);
  const stop = Math.min(Math.floor(place), PALETTE.length - 2);
  const mixed = PALETTE[stop].map((from, at) => Math.round(from + (PALETTE[stop + 1][at] - from) * (place - stop)));
  const [r, g, b] = mixed.map((one) => (one / 255 <= 0.04045 ? one / 255 / 12.92 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  // Black where black is read more easily than white.
  const dark = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179;
  cell.style.background = `rgb(${mixed})`;
  cell.style.color = dark ? "#000" : "#fff";
}
