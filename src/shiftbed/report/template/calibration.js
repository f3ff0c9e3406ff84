"use strict";
// What confidence is worth: two curves, their numbers, and the histograms of anomalies.

const estimate = ({ value, low, high, n }) => `${percent(value)} ${certainty(low, high, n)}`;

function calibratedHere() {
  const found = sought();
  const wanted = (name) => !found || found[page.data.models.findIndex((model) => model.name === name)];
  const here = page.data.calibration.filter((one) => one.setting === page.view.calibrated);
  const some = here.filter((one) => wanted(one.model));
  return (some.length ? some : here).slice(0, 8);
}

function drawCalibration() {
  const here = calibratedHere();
  const diagonal = { x: [0, 1], y: [0, 1], mode: "lines", type: "scatter", hoverinfo: "skip", showlegend: false, line: { color: colour("soft"), dash: "dot", width: 1 } };
  const reliability = here.map(({ model, reliability: [x, y, low, high, n] }, number) => lineTrace(number, model, x, y, low, high,
    x.map((one, at) => `<b>${plain(model)}</b><br>mean confidence ${percent(one)}<br>accuracy ${percent(y[at])} ${certainty(low[at], high[at], n[at])}`)));
  plot("reliability", [diagonal, ...reliability], layout("confidence", "accuracy", { xaxis: { ...PERCENT_AXIS, range: [0, 1.02] }, yaxis: { ...PERCENT_AXIS, range: [0, 1.02] }, ...LEGEND_BELOW }),
    `Reliability diagram of ${here.length} models on ${page.view.calibrated}`);
  const response = here.map(({ model, response: [x, y, low, high, n] }, number) => ({
    ...lineTrace(number, model, x, y, low, high, x.map((one, at) => `<b>${plain(model)}</b><br>answers ${percent(one)}<br>accuracy ${percent(y[at])} ${certainty(low[at], high[at], n[at])}`)), mode: "lines", error_y: null,
  }));
  const bands = here.map(({ response: [x, , low, high] }, number) => ({
    x: [...x, ...[...x].reverse()], y: [...low, ...[...high].reverse()], type: "scatter", mode: "lines", fill: "toself", line: { width: 0 }, fillcolor: `${colour(`c${(number % 7) + 1}`)}22`, hoverinfo: "skip", showlegend: false,
  }));
  // The first few answers have intervals from 0 to 1, which would hide the rest.
  const least = Math.min(...here.flatMap(({ response: [x, , low] }) => low.filter((_, at) => x[at] >= 0.1)));
  plot("response", [...bands, ...response], layout("share answered, the surest first", "accuracy", { xaxis: { ...PERCENT_AXIS, range: [0, 1.01] }, yaxis: { ...PERCENT_AXIS, range: [Math.max(0, least - 0.03), 1.01] }, ...LEGEND_BELOW }),
    `Accuracy by response rate of ${here.length} models on ${page.view.calibrated}`);
  const rows = here.map((one) => [one.model, [estimate(one.error), one.error.value], [estimate(one.aurra), one.aurra.value]]);
  const table = tableOf(["model", "calibration error (l2)", "area under response rate and accuracy"], rows);
  sortable(table);
  $("calibration-table").replaceChildren(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Calibration of each model" }, table));
  const points = (name, headings) => () => [headings, here.flatMap((one) => one[name][0].map((_, at) => [one.model, one.setting, ...one[name].map((column) => column[at])]))];
  page.files.reliability.table = points("reliability", ["model", "setting", "confidence", "accuracy", "low", "high", "n"]);
  page.files.response.table = points("response", ["model", "setting", "response_rate", "accuracy", "low", "high", "n"]);
}

function drawAnomalies() {
  const one = page.data.anomalies[Number(page.view.anomaly)];
  if (!one) return;
  const middles = one.edges.slice(1).map((end, at) => (end + one.edges[at]) / 2);
  const totals = one.counts.map((counts) => counts.reduce((sum, count) => sum + count, 0));
  const names = [one.usual, one.setting];
  const traces = one.counts.map((counts, side) => ({
    type: "bar", x: middles, y: counts.map((count) => count / totals[side]), name: `${plain(names[side], 30)} (n = ${whole(totals[side])})`, hoverinfo: "text",
    hovertext: counts.map((count, at) => `${plain(names[side])}<br>confidence ${percent(one.edges[at], 0)} to ${percent(one.edges[at + 1], 0)}<br>${whole(count)} of ${whole(totals[side])} pictures`),
    marker: { color: `${colour(side ? "c2" : "c1")}99`, line: { width: counts.map((count) => (count ? 1.5 : 0)), color: colour(side ? "c2" : "c1") } },
  }));
  plot("anomalies", traces, layout("confidence", "share of pictures", { barmode: "overlay", xaxis: { ...PERCENT_AXIS, range: [0, 1] }, yaxis: PERCENT_AXIS, ...LEGEND_BELOW }),
    `Confidences of ${one.model} on ${one.usual} and ${one.setting}`);
  $("anomalies-said").textContent = `AUPR ${estimate(one.aupr)}; by chance ${percent(one.chance)}. AUROC ${estimate(one.auroc)}; by chance 50%. False alarms at 95% found: ${estimate(one.fpr95)}; by chance 95%.`;
  page.files.anomalies.table = () => [["model", "setting", "from", "to", "pictures"], names.flatMap((name, side) => one.counts[side].map((count, at) => [one.model, name, one.edges[at], one.edges[at + 1], count]))];
}

function startCalibration() {
  menus.calibrated = () => [...new Set(page.data.calibration.map((one) => one.setting))].map((name) => [name, name]);
  menus.anomalies = () => page.data.anomalies.map((one, at) => [String(at), `${one.model} on ${one.setting}`]);
  if (page.data.calibration.length) page.parts.calibration = { keys: ["calibrated", "find"], draw: drawCalibration };
  if (page.data.anomalies.length) page.parts.anomalies = { keys: ["anomaly"], draw: drawAnomalies };
}
