"use strict";
// The scatter: any setting against any other, with the baseline and its band.

const SCALES = {
  linear: { to: (p) => p, from: (v) => v },
  logit: { to: (p) => Math.log(p / (1 - p)), from: (v) => 1 / (1 + Math.exp(-v)) },
  probit: { to: quantile, from: null },
};
const TICKS = [0.0001, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999];

/** The normal distribution's quantile, by Newton's method on its integral's series. */
function quantile(p) {
  if (p > 0.5) return -quantile(1 - p);
  let z = p < 0.02 ? -Math.sqrt(-2 * Math.log(p)) + 0.4 : (p - 0.5) * 2.5066;
  for (let step = 0; step < 30; step += 1) {
    const density = Math.exp(-z * z / 2) / 2.5066282746310002;
    const change = (normal(z) - p) / density;
    z -= Math.max(-0.5, Math.min(0.5, change));
    if (Math.abs(change) < 1e-12) break;
  }
  return z;
}

/** The normal distribution below z <= 0: a series near 0, a continued fraction far away. */
function normal(z) {
  const density = Math.exp(-z * z / 2) / 2.5066282746310002;
  if (z > -3) {
    let term = z;
    let sum = z;
    for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k += 1) {
      term *= z * z / (2 * k + 1);
      sum += term;
    }
    return 0.5 + density * sum;
  }
  let fraction = 0;
  for (let k = 60; k > 0; k -= 1) fraction = k / (-z + fraction);
  return density / (-z + fraction);
}

/** Accuracies of exactly 0 and 1 stay half a picture away from both, as in the studies. */
function placed(p, n, scale) {
  if (scale === "linear") return p;
  const edge = n ? 0.5 / n : 1e-12;
  return SCALES[scale].to(Math.min(Math.max(p, edge), 1 - edge));
}

/** For a drawing, what has no n stays a thousandth away. */
const shownAt = (p, n) => placed(p, n || 500, page.view.axes);

const MEANS = "means over corruptions";

/** The means over each benchmark's corruptions can be chosen like settings. */
function addMeans(data) {
  for (const { name, clean, error, counts, averaged } of data.matrices) {
    const means = data.models.map((model) => error[model.name]?.mean ?? null);
    if (means.every((entry) => entry === null)) continue;
    const column = (pick) => means.map((entry) => (entry === null ? null : pick(entry)));
    const other = (end) => (end === null ? null : 1 - end);
    const known = data.settings.find((setting) => setting.name === clean);
    data.settings.push({ name: `${name} (mean of ${averaged.length})`, clean: known ? clean : null, group: MEANS, classes: known?.classes ?? null, filtered: false, metric: counts === "accuracy" ? "top1" : counts });
    data.accuracy.push(column(([value]) => 1 - value));
    data.low.push(column(([, , high]) => other(high)));
    data.high.push(column(([, low]) => other(low)));
    data.n.push(column(([, , , n]) => n));
    data.origin.push(column(() => 0).map((one) => one ?? 0));
  }
}

let settingPlaces = null;
const settingAt = (name) => (settingPlaces ??= new Map(page.data.settings.map((setting, at) => [setting.name, at]))).get(name) ?? -1;

function categories() {
  const counts = new Map();
  for (const model of page.data.models) {
    if (!model.measured) counts.set(model.category ?? "no category", (counts.get(model.category ?? "no category") ?? 0) + 1);
  }
  const names = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return page.data.models.some((model) => model.measured) ? ["measured here", ...names] : names;
}

const categoryOf = (model) => (model.measured ? "measured here" : model.category ?? "no category");

/** Colours and symbols: those measured here are stars in the ink's own colour. */
function look(number) {
  const mine = categories()[0] === "measured here";
  if (mine && number === 0) return { ink: colour("c0"), symbol: "star" };
  const at = mine ? number - 1 : number;
  return { ink: colour(`c${(at % 7) + 1}`), symbol: SYMBOLS[at % 6] };
}

const hidden = () => new Set(page.view.hide ? page.view.hide.split("|").map(decodeURIComponent) : []);

/** The models that have both accuracies, with all that is known of them. */
function pairs() {
  const { models, accuracy, low, high, n } = page.data;
  const x = settingAt(page.view.x);
  const y = settingAt(page.view.y);
  const fit = page.data.fits[page.view.y];
  const known = fit && fit.clean === page.view.x ? fit.rho : [];
  const found = [];
  models.forEach((model, m) => {
    if (accuracy[x][m] === null || accuracy[y][m] === null) return;
    found.push({
      m, model, x: accuracy[x][m], y: accuracy[y][m], xEnds: [low[x][m], high[x][m]], yEnds: [low[y][m], high[y][m]],
      xn: n[x][m], yn: n[y][m], rho: known[m] ?? null,
    });
  });
  return found;
}

/** The baseline of the view: the study's, or for pairs that no study has, a line fitted here. */
function baseline(points) {
  const known = page.data.fits[page.view.y];
  if (known && known.clean === page.view.x) return { ...known, own: false };
  const { classes: a } = page.data.settings[settingAt(page.view.x)];
  const { classes: b, filtered } = page.data.settings[settingAt(page.view.y)];
  if (a && b && a !== b) return { why: "No baseline: the two settings are scored over different classes." };
  if (filtered) return { why: "No baseline: pictures that a model was made to fail on are compared with their clean setting alone." };
  const standard = new Set(page.data.baseline);
  const used = points.filter((point) => standard.has(point.m));
  return page.view.x === page.view.y ? { why: "" } : fitted(used);
}

/** Least squares in the study's scale, and a bootstrap of its own for the band. */
function fitted(used) {
  const { scale } = page.data;
  const ends = used.some((p) => (!p.xn && (p.x === 0 || p.x === 1)) || (!p.yn && (p.y === 0 || p.y === 1)));
  const x = used.map((point) => placed(point.x, point.xn, scale));
  const y = used.map((point) => placed(point.y, point.yn, scale));
  if (new Set(x).size < 3 || (ends && scale !== "linear")) {
    return { why: "No baseline: it takes three models of the category standard, measured on both." };
  }
  const [intercept, slope] = line(x, y);
  const mean = y.reduce((sum, one) => sum + one, 0) / y.length;
  const errors = y.reduce((sum, one, at) => sum + (one - intercept - slope * x[at]) ** 2, 0);
  const spread = y.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  const r2 = 1 - errors / spread;
  const from = Math.min(...x);
  const to = Math.max(...x);
  const places = Array.from({ length: 41 }, (_, at) => from + (to - from) * at / 40);
  const random = randomly(1);
  const draws = [];
  while (draws.length < 500) {
    const rows = x.map(() => Math.floor(random() * x.length));
    if (new Set(rows.map((row) => x[row])).size > 1) draws.push(line(rows.map((row) => x[row]), rows.map((row) => y[row])));
  }
  const tail = (1 - page.data.level) / 2;
  const back = backFrom(scale);
  const band = places.map((place) => {
    const values = draws.map(([a, b]) => a + b * place).sort((one, two) => one - two);
    return [tail, 1 - tail].map((share) => back(values[Math.round(share * (values.length - 1))]));
  });
  return {
    own: true, models: x.length, r2, knee: null,
    text: `${page.view.y} = ${printed(intercept, 3)} + ${printed(slope, 3)} ${page.view.x} (${scale}, r2 = ${printed(r2, 3)}, ${x.length} models)`,
    curve: [places.map(back), places.map((place) => back(intercept + slope * place)), band.map((b) => b[0]), band.map((b) => b[1])],
  };
}

function line(x, y) {
  const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const [mx, my] = [mean(x), mean(y)];
  let xy = 0;
  let xx = 0;
  x.forEach((one, at) => { xy += (one - mx) * (y[at] - my); xx += (one - mx) ** 2; });
  return [my - xy / xx * mx, xy / xx];
}

const backFrom = (scale) => SCALES[scale].from ?? ((z) => (z < 0 ? normal(z) : 1 - normal(-z)));

/** Numbers between 0 and 1 that are the same every time. */
function randomly(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function saidOf(point) {
  const lines = [
    `<b>${plain(point.model.name, 60)}</b>`,
    `${plain(categoryOf(point.model))}`,
    `${plain(page.view.x)}: ${percent(point.x, 2)} ${certainty(...point.xEnds, point.xn, 2)}`,
    `${plain(page.view.y)}: ${percent(point.y, 2)} ${certainty(...point.yEnds, point.yn, 2)}`,
  ];
  if (point.rho) {
    const [expected, rho, low, high] = point.rho;
    const ends = low === null ? "[interval not known]" : `[${printed(100 * low, 1)}, ${printed(100 * high, 1)}]`;
    lines.push(`expected ${percent(expected, 2)}; effective robustness ${signed(rho)} points ${ends}`);
  }
  return lines.join("<br>");
}

/** Names beside points; points at the same place share one. */
function labelsOf(points) {
  const place = (point) => `${point.x} ${point.y}`;
  return points.map((point, at) => {
    const together = points.filter((other) => place(other) === place(point));
    return points.findIndex((other) => place(other) === place(point)) === at ? together.map((one) => plain(one.model.name, innerWidth < 600 ? 14 : 24)).join(", ") : "";
  });
}

function errorBars(values, ends, n, ink) {
  const at = values.map((value, i) => shownAt(value, n[i]));
  const reach = (side) => ends.map((pair, i) => pair[side] === null ? 0 : Math.abs(shownAt(pair[side], n[i]) - at[i]));
  return { type: "data", symmetric: false, array: reach(1), arrayminus: reach(0), thickness: 1, width: 0, color: ink };
}

function drawScatter() {
  const points = pairs();
  const names = categories();
  const off = hidden();
  const found = sought();
  const fit = baseline(points);
  const traces = [];
  const inks = fit.curve ? fit.curve.map((column) => column.map((p) => shownAt(p, 1e6))) : null;
  if (inks) {
    const [x, y, low, high] = inks;
    traces.push({ x: [...x, ...[...x].reverse()], y: [...low, ...[...high].reverse()], type: "scatter", mode: "lines", fill: "toself", fillcolor: colour("band"), line: { width: 0 }, hoverinfo: "skip" });
    traces.push({ x, y, type: "scatter", mode: "lines", line: { color: colour("soft"), width: 2 }, hoverinfo: "skip" });
  }
  const visible = points.filter((point) => !off.has(categoryOf(point.model)));
  const placesOf = (value, n) => (visible.length ? visible.map((point) => shownAt(point[value], point[n])) : [shownAt(0.2), shownAt(0.8)]);
  const [xs, ys] = [placesOf("x", "xn"), placesOf("y", "yn")];
  const [from, to] = [Math.min(...xs, ...ys), Math.max(...xs, ...ys)];
  traces.push({ x: [from, to], y: [from, to], type: "scatter", mode: "lines", line: { color: colour("soft"), width: 1, dash: "dot" }, hoverinfo: "skip" });
  const range = (values, ends, n) => {
    // Of a few models, the whole intervals are in sight.
    const shown = visible.length > 20 ? [] : visible.flatMap((point) => point[ends].filter((end) => end !== null).map((end) => shownAt(end, point[n])));
    const [least, most] = [Math.min(...values, ...shown), Math.max(...values, ...shown)];
    const pad = Math.max((most - least) * 0.06, 0.005);
    return [least - pad, most + pad];
  };
  const [xRange, yRange] = [range(xs, "xEnds", "xn"), range(ys, "yEnds", "yn")];
  names.forEach((name, number) => {
    const mine = points.filter((point) => categoryOf(point.model) === name);
    const { ink, symbol } = look(number);
    const n = (key) => mine.map((point) => point[key]);
    const labelled = name === "measured here" && mine.length <= 12;
    const labels = labelled ? labelsOf(mine) : [];
    traces.push({
      x: mine.map((point) => shownAt(point.x, point.xn)), y: mine.map((point) => shownAt(point.y, point.yn)),
      name: plain(name), visible: !off.has(name), type: "scatter", mode: labelled ? "markers+text" : "markers",
      text: labels, textposition: mine.map((point) => (shownAt(point.x, point.xn) > (xRange[0] + xRange[1]) / 2 ? "top left" : "top right")), cliponaxis: false,
      hoverinfo: "text", hovertext: mine.map(saidOf),
      marker: { color: ink, symbol, size: name === "measured here" ? 13 : 8, opacity: found ? mine.map((point) => (found[point.m] ? 1 : 0.12)) : 0.85, line: { width: 0.7, color: colour("card") } },
      error_x: errorBars(n("x"), n("xEnds"), n("xn"), `${ink}66`), error_y: errorBars(n("y"), n("yEnds"), n("yn"), `${ink}66`),
    });
  });
  const shapes = [];
  if (fit.knee) {
    const [knee, low, high] = fit.knee.map((p) => shownAt(p, 1e6));
    shapes.push({ type: "rect", xref: "x", yref: "paper", x0: low, x1: high, y0: 0, y1: 1, fillcolor: colour("band"), line: { width: 0 }, layer: "below" });
    shapes.push({ type: "line", xref: "x", yref: "paper", x0: knee, x1: knee, y0: 0, y1: 1, line: { color: colour("soft"), width: 1, dash: "dash" } });
  }
  const said = saidOfFit(fit, points, visible.length);
  plot("scatter", traces, layout(plain(page.view.x), plain(page.view.y), {
    xaxis: { range: xRange, ...ticks(xRange) }, yaxis: { range: yRange, ...ticks(yRange) }, shapes,
  }), `Scatter of ${visible.length} models: ${page.view.y} up, ${page.view.x} across. ${said}`);
  $("scatter-said").replaceChildren(said);
  $("found").value = found ? `${found.filter(Boolean).length} of ${whole(found.length)}` : "";
  if ($("scatter-table").open) $("scatter-table").dispatchEvent(new Event("fill"));
}

function saidOfFit(fit, points, count) {
  const parts = [`${whole(count)} of ${whole(points.length)} models that were measured on both.`];
  if (!fit.curve) return parts.concat(fit.why).join(" ").trim();
  parts.push(`Baseline${fit.published ? " (published)" : ""}: ${fit.text}.`);
  if (fit.slope) parts.push(`Slope ${printed(fit.slope[0], 3)} [${printed(fit.slope[1], 3)}, ${printed(fit.slope[2], 3)}].`);
  if (fit.knee) parts.push(`It bends at ${percent(fit.knee[0])} [${printed(100 * fit.knee[1], 1)}, ${printed(100 * fit.knee[2], 1)}].`);
  parts.push(fit.own ? "This line was fitted by the page; its band is from 500 resamples of models." : "The band is its bootstrap over models.");
  parts.push("Dotted: no loss under the shift.");
  return parts.join(" ");
}

/** Readable accuracies along an axis of any scale. */
function ticks([from, to]) {
  if (page.view.axes === "linear") return PERCENT_AXIS;
  // On a narrow page every other one of the middle ones.
  const readable = innerWidth < 600 ? TICKS.filter((p) => ![0.2, 0.4, 0.6, 0.8].includes(p)) : TICKS;
  let chosen = readable.filter((p) => shownAt(p, 1e6) >= from && shownAt(p, 1e6) <= to);
  if (chosen.length < 4) {
    const back = backFrom(page.view.axes);
    const [low, high] = [back(from), back(to)];
    const step = [0.002, 0.005, 0.01, 0.02, 0.05].find((one) => (high - low) / one < 8) ?? 0.1;
    chosen = Array.from({ length: 40 }, (_, at) => (Math.ceil(low / step) + at) * step).filter((p) => p <= high && p > 0 && p < 1);
  }
  return { tickvals: chosen.map((p) => shownAt(p, 1e6)), ticktext: chosen.map((p) => `${Number((100 * p).toPrecision(4))}%`) };
}

function drawLegend() {
  const off = hidden();
  const counts = new Map();
  for (const model of page.data.models) counts.set(categoryOf(model), (counts.get(categoryOf(model)) ?? 0) + 1);
  const box = $("categories");
  categories().forEach((name, number) => {
    let label = box.children[number + 1];
    if (!label) {
      label = make("label", {}, make("input", { type: "checkbox" }), make("span", { class: "symbol" }), bdi(name), ` ${counts.get(name)}`);
      label.firstChild.addEventListener("change", (event) => {
        const now = hidden();
        if (event.target.checked) now.delete(name); else now.add(name);
        choose({ hide: [...now].map(encodeURIComponent).join("|") }, "scatter");
      });
      box.append(label);
    }
    label.firstChild.checked = !off.has(name);
    label.children[1].innerHTML = symbolOf(look(number));
  });
}

/** A marker beside its category: shapes of our own, so no text of anybody's is in it. */
function symbolOf({ ink, symbol }) {
  const shapes = {
    circle: '<circle cx="7" cy="7" r="5.5"/>', square: '<rect x="2" y="2" width="10" height="10"/>',
    diamond: '<path d="M7 0.5 13.5 7 7 13.5 0.5 7Z"/>', "triangle-up": '<path d="M7 1 13.5 12.5H0.5Z"/>',
    cross: '<path d="M5 1h4v4h4v4H9v4H5V9H1V5h4Z"/>', x: '<path d="M3 1 7 5 11 1 13 3 9 7 13 11 11 13 7 9 3 13 1 11 5 7 1 3Z"/>',
    star: '<path d="M7 0 8.8 4.8 14 5.2 10 8.5 11.3 13.6 7 10.8 2.7 13.6 4 8.5 0 5.2 5.2 4.8Z"/>',
  };
  return `<svg viewBox="0 0 14 14" aria-hidden="true" fill="${ink}">${shapes[symbol]}</svg>`;
}

function scatterTable() {
  const points = pairs().filter((point) => !hidden().has(categoryOf(point.model)) && (sought()?.[point.m] ?? true));
  const rows = points.map((point) => [
    point.model.name, categoryOf(point.model),
    [`${percent(point.x, 2)} ${certainty(...point.xEnds, point.xn, 2)}`, point.x],
    [`${percent(point.y, 2)} ${certainty(...point.yEnds, point.yn, 2)}`, point.y],
    point.rho ? [`${signed(point.rho[1])} ${point.rho[2] === null ? "[interval not known]" : `[${printed(100 * point.rho[2], 1)}, ${printed(100 * point.rho[3], 1)}]`}`, point.rho[1]] : "",
  ]);
  return tableOf(["model", "category", page.view.x, page.view.y, "effective robustness"], rows);
}

function startScatter() {
  menus.settings = () => {
    const order = ["pictures as they are", "natural shifts", MEANS];
    const rank = (group) => (order.includes(group) ? order.indexOf(group) : order.length);
    return page.data.settings.map(({ name, group }) => [name, name, group]).sort((a, b) => rank(a[2]) - rank(b[2]) || a[2].localeCompare(b[2], "en"));
  };
  $("models").append(...page.data.models.map((model) => make("option", { value: model.name })));
  lazily($("scatter-table"), scatterTable);
  page.parts.scatter = { keys: ["x", "y", "axes", "hide", "find"], draw: () => { drawLegend(); drawScatter(); } };
  page.files.scatter = { table: () => {
    const columns = ["model", "category", "clean_setting", "clean", "clean_low", "clean_high", "n_clean", "shifted_setting", "shifted", "shifted_low", "shifted_high", "n_shifted", "expected", "rho", "low", "high"];
    return [columns, pairs().map((point) => [point.model.name, point.model.category, page.view.x, point.x, ...point.xEnds, point.xn, page.view.y, point.y, ...point.yEnds, point.yn, ...(point.rho ?? [null, null, null, null])])];
  } };
}
