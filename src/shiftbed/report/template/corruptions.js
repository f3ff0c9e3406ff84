"use strict";
// The corruption matrix, the curves by severity, and a picture under each corruption.

const theMatrix = () => page.data.matrices.find((matrix) => matrix.name === page.view.benchmark) ?? page.data.matrices[0];
const words = (name) => name.replaceAll("_", " ");

/** What the matrix shows: for each model and corruption an entry [value, low, high, n], or null. */
function matrixEntries() {
  const matrix = theMatrix();
  const { measure, severity } = page.view;
  const step = severity === "mean" ? null : Number(severity);
  const entry = (m, name) => {
    const model = page.data.models[m].name;
    if (measure === "ce") return matrix.ce[model]?.[name] ?? null;
    if (step === null || name === "mean") {
      const error = step === null ? matrix.error[model]?.[name] : null;
      return !error ? null : measure === "error" ? error : turned(error);
    }
    const setting = matrix.settings[name][step - 1];
    if (setting === undefined) return null;
    const s = settingAt(setting);
    const { accuracy, low, high, n } = page.data;
    if (accuracy[s][m] === null) return null;
    const right = [accuracy[s][m], low[s][m], high[s][m], n[s][m]];
    return measure === "error" ? turned(right) : right;
  };
  const columns = step === null ? ["mean", ...matrix.corruptions] : matrix.corruptions;
  const found = sought();
  const models = [...page.data.models.keys()].filter((m) => (found?.[m] ?? true) && columns.some((name) => entry(m, name)));
  return { matrix, columns, models, entry };
}

const turned = ([value, low, high, n]) => [1 - value, high === null ? null : 1 - high, low === null ? null : 1 - low, n];

function drawMatrix() {
  const { matrix, columns, models, entry } = matrixEntries();
  const rows = models.map((m) => ({ m, entries: columns.map((name) => entry(m, name)) }));
  // From the least value to the greatest, dark to light; better is always lighter.
  const values = rows.flatMap((row) => row.entries.filter(Boolean).map(([value]) => value));
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const share = (value) => (most > least ? (value - least) / (most - least) : 1);
  const better = page.view.measure === "accuracy" ? share : (value) => 1 - share(value);
  const clean = settingAt(matrix.clean);
  const headings = ["model", "clean", ...columns.map(words)];
  const table = tableOf(headings, rows.map(({ m }) => [page.data.models[m].name]), "heat");
  const { accuracy, low, high, n } = page.data;
  rows.forEach(({ m, entries }, at) => {
    const row = table.tBodies[0].rows[at];
    if (page.data.models[m].measured && rows.some((other) => !page.data.models[other.m].measured)) row.className = "mine";
    const first = clean >= 0 && accuracy[clean][m] !== null ? [accuracy[clean][m], low[clean][m], high[clean][m], n[clean][m]] : null;
    row.append(matrixCell(first && page.view.measure !== "accuracy" ? turned(first) : first, null), ...entries.map((one) => matrixCell(one, one && better(one[0]))));
  });
  sortable(table);
  const column = headings.indexOf(page.view.sort);
  [...table.tHead.rows[0].cells].forEach((heading, at) => heading.addEventListener("click", () => choose({ sort: headings[at], order: heading.ariaSort }, "corruptions")));
  if (column >= 0) sortBy(table, column, page.view.order);
  $("matrix").replaceChildren(table);
  $("matrix-said").replaceChildren(...saidOfMatrix(matrix, rows));
}

function matrixCell(entry, share) {
  if (!entry) return make("td", { class: "gap", title: "not measured" }, "–");
  const [value, low, high, n] = entry;
  const cell = make("td", { "data-value": value, title: `${percent(value)} ${certainty(low, high, n)}` }, printed(100 * value, 1));
  if (share !== null) paint(cell, share);
  if (page.view.ends === "yes") {
    const [ends, count] = certainty(low, high, n).split("], ");
    cell.append(make("span", { class: "ends" }, `${ends}]`, make("br"), count));
  }
  return cell;
}

function saidOfMatrix(matrix, rows) {
  const kept = matrix.counts === "agreement";
  const what = { accuracy: kept ? "agreement with the clean answer" : "accuracy", error: kept ? "changed answers" : "error", ce: `error in units of ${matrix.baseline}'s` }[page.view.measure];
  const counts = new Set(rows.flatMap((row) => row.entries.filter(Boolean).map((entry) => entry[3])));
  const ends = [...counts].filter(Boolean).sort((a, b) => a - b);
  const n = ends.length ? `n = ${[...new Set([ends[0], ends.at(-1)])].map(whole).join(" to ")}` : "n not known";
  const over = page.view.severity === "mean" || page.view.measure === "ce" ? `mean over ${matrix.severities} severit${matrix.severities === 1 ? "y" : "ies"}` : `severity ${page.view.severity}`;
  const extra = matrix.corruptions.length - matrix.averaged.length;
  const said = [`${what} in percent, ${over}; the mean is over ${matrix.averaged.length} corruptions${extra ? ` (${extra} extra ones are not in it)` : ""}; ${n}; ${rows.length} models. Lighter is better. Intervals: point at a number, tick the box, or download the table. `];
  const notes = page.data.models.map(({ name }) => matrix.notes[name] ?? (page.view.measure === "ce" ? matrix.refused[name] : null)).filter(Boolean);
  const counted = new Map();
  for (const note of notes) counted.set(note, (counted.get(note) ?? 0) + 1);
  const most = [...counted].sort((a, b) => b[1] - a[1]).slice(0, 2);
  for (const [note, count] of most) said.push(make("span", { class: "missing" }, count === 1 ? "One model: " : `${count} models: `, bdi(note), ". "));
  return said;
}

function drawCurves() {
  const matrix = theMatrix();
  const { accuracy, low, high, n } = page.data;
  const all = page.view.corruption === "mean";
  const names = all ? matrix.averaged : [page.view.corruption];
  const clean = settingAt(matrix.clean);
  const steps = Math.max(...names.map((name) => matrix.settings[name].length));
  const columnsAt = Array.from({ length: steps + 1 }, (_, step) => (step === 0 ? [clean] : names.map((name) => settingAt(matrix.settings[name][step - 1]))));
  const of = (m, step) => {
    const columns = columnsAt[step];
    const entries = columns.map((s) => (s < 0 || accuracy[s][m] === null ? null : [accuracy[s][m], low[s][m], high[s][m], n[s][m]]));
    if (entries.some((entry) => entry === null)) return null;
    // A mean over corruptions of the same pictures: its interval is at most as wide as theirs.
    return [0, 1, 2].map((part) => (entries.some((entry) => entry[part] === null) ? null : entries.reduce((sum, entry) => sum + entry[part], 0) / entries.length)).concat(Math.min(...entries.map((entry) => entry[3] ?? 0)));
  };
  const known = page.data.models.map((_, m) => Array.from({ length: steps + 1 }, (__, step) => of(m, step)));
  const values = (m) => known[m];
  const mean = (m) => { const there = values(m).filter(Boolean); return there.reduce((sum, one) => sum + one[0], 0) / there.length; };
  const models = fewModels((m) => values(m).slice(1).some(Boolean), mean);
  const rows = [];
  const traces = models.map((m, number) => {
    const { name } = page.data.models[m];
    const there = values(m).map((entry, step) => [step, entry]).filter(([, entry]) => entry);
    there.forEach(([step, entry]) => rows.push([name, page.view.corruption, step, ...entry]));
    const column = (part) => there.map(([, entry]) => entry[part]);
    const texts = there.map(([step, [value, ...ends]]) => `<b>${plain(name)}</b><br>${step === 0 ? "clean" : `severity ${step}`}: ${percent(value)} ${certainty(...ends)}`);
    return lineTrace(number, name, there.map(([step]) => step), column(0), column(1), column(2), texts);
  });
  const labels = Array.from({ length: steps + 1 }, (_, step) => (step === 0 ? "clean" : String(step)));
  const title = all ? `mean of ${names.length} corruptions` : words(page.view.corruption);
  plot("curves", traces, layout(`severity of ${title}`, matrix.counts, {
    xaxis: { tickvals: labels.map((_, at) => at), ticktext: labels, range: [-0.25, steps + 0.25] }, yaxis: { ...PERCENT_AXIS, rangemode: "tozero" }, ...LEGEND_BELOW,
  }), `Accuracy of ${models.length} models by severity of ${title}`);
  page.files.curves.table = () => [["model", "corruption", "severity", "accuracy", "low", "high", "n"], rows];
  const more = page.data.models.filter((_, m) => values(m).slice(1).some(Boolean)).length - models.length;
  const counts = [...new Set(rows.map((row) => row[6]).filter(Boolean))].sort((a, b) => a - b).map(whole);
  $("curves-said").textContent = `${counts.length ? `n = ${counts.slice(0, 3).join(", ")}` : "n not known"}. Severity 0 is clean. ${more > 0 ? `${whole(more)} more models: find them by name above. ` : ""}${all ? "The ends of the mean are the means of the ends." : ""}`;
  drawStrip(matrix, names, all);
}

/** One picture, clean and under the corruption; under all of them at one severity for the mean. */
function drawStrip(matrix, names, all) {
  const example = page.data.examples[matrix.name];
  if (!example) {
    $("strip").replaceChildren(make("p", { class: "note" }, "No picture is at hand: write the report with --data NAME=PATH to see one under each corruption."));
    return;
  }
  const shot = (copy, text) => (copy === null || copy === undefined ? null : make("figure", {}, picture(copy, `${example.picture}, ${text}`), make("figcaption", {}, text)));
  const middle = Math.floor((matrix.severities - 1) / 2);
  const shots = all
    ? names.map((name) => shot(example.corruptions[name][Math.min(middle, example.corruptions[name].length - 1)], `${words(name)}${matrix.severities > 1 ? ` ${middle + 1}` : ""}`))
    : example.corruptions[names[0]].map((copy, step) => shot(copy, example.corruptions[names[0]].length > 1 ? `severity ${step + 1}` : words(names[0])));
  $("strip").replaceChildren(...[shot(example.clean, "clean"), ...shots].filter(Boolean));
}

/** A small copy of a picture; those of a few pixels are shown pixel by pixel. */
function picture(copy, text) {
  const address = page.data.album[copy];
  return make("img", { src: address, alt: text, loading: "lazy", decoding: "async", class: address.startsWith("data:image/png") ? "tiny" : null });
}

function startCorruptions() {
  if (!page.data.matrices.length) return;
  menus.benchmarks = () => page.data.matrices.map(({ name, clean }) => [name, name.endsWith("+") ? `${name.slice(0, -1)}, in memory` : `${name}, stored (clean: ${clean})`]);
  menus.severities = () => [["mean", "mean"], ...Array.from({ length: theMatrix().severities }, (_, at) => [String(at + 1), String(at + 1)])];
  menus.corruptions = () => [["mean", `mean of ${theMatrix().averaged.length}`], ...theMatrix().corruptions.map((name) => [name, words(name)])];
  page.parts.matrix = { keys: ["benchmark", "measure", "severity", "ends", "find"], draw: drawMatrix };
  page.parts.curves = { keys: ["benchmark", "corruption", "find"], draw: drawCurves };
  page.files.matrix = {
    table: () => {
      const { columns, models, entry } = matrixEntries();
      const rows = models.flatMap((m) => columns.map((name) => [page.data.models[m].name, name, ...(entry(m, name) ?? [null, null, null, null])]));
      return [["model", "corruption", page.view.measure, "low", "high", "n"], rows];
    },
    figure: () => {
      const { columns, models, entry } = matrixEntries();
      const cells = models.map((m) => columns.map((name) => entry(m, name)?.[0] ?? null));
      const values = cells.flat().filter((value) => value !== null);
      const [least, most] = [Math.min(...values), Math.max(...values)];
      const share = (value) => (value === null ? null : page.view.measure === "accuracy" ? (value - least) / (most - least || 1) : (most - value) / (most - least || 1));
      return heatFigure(columns.map(words), models.map((m) => page.data.models[m].name), cells.map((row) => row.map(share)), cells.map((row) => row.map((value) => (value === null ? "" : printed(100 * value, 1)))), `${theMatrix().name}: ${page.view.measure} in percent`);
    },
  };
}
