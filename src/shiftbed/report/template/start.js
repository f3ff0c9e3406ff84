"use strict";
// Unpack the data and the charts' library after the first paint, then draw what is in sight.

function defaults() {
  const { settings, fits, matrices, calibration, galleries, accuracy } = page.data;
  const measured = (s) => accuracy[s].filter((value) => value !== null).length;
  const shifted = settings.map((setting, s) => [setting, s]).filter(([setting]) => setting.clean);
  const rank = ([setting, s]) => (setting.group === "natural shifts" ? 1e9 : 0) + (setting.group === MEANS ? 1e7 : 0) + (fits[setting.name] ? 1e6 : 0) + (setting.metric === "top1" ? 1e5 : 0) + measured(s);
  // The set that most people know is the first choice where it is there.
  const known = ["imagenet-r", "imagenet-v2-matched-frequency.format-val"].map((name) => shifted.find(([setting]) => setting.name === name && fits[name])).find(Boolean);
  const [first] = known ? [known] : [...shifted].sort((a, b) => rank(b) - rank(a));
  const y = first ? first[0] : settings.at(-1);
  const weight = ({ counts, error }) => (counts === "accuracy" ? 1e6 : 0) + Object.keys(error).length;
  const benchmark = [...matrices].sort((a, b) => weight(b) - weight(a))[0];
  const gallery = [...galleries].sort((a, b) => (b.kind === "lost") - (a.kind === "lost") || b.rows.length - a.rows.length)[0];
  return {
    x: y?.clean ?? settings[0]?.name ?? "", y: y?.name ?? "", axes: "logit", hide: "", find: "",
    benchmark: benchmark?.name ?? "", measure: "accuracy", severity: "mean", sort: benchmark ? "mean" : "", order: "descending", ends: "", corruption: "mean",
    calibrated: calibration[0]?.setting ?? "", anomaly: "0",
    shown: gallery?.setting ?? "", kind: gallery?.kind ?? "", of: gallery?.models.join("\n") ?? "",
  };
}

function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-pressed", String(theme === "dark"));
  for (const name of page.drawn) page.parts[name].draw();
}

function listen() {
  for (const control of document.querySelectorAll("[data-view]")) {
    const key = control.dataset.view;
    const section = control.closest("section")?.id ?? "scatter";
    const said = () => choose({ [key]: control.type === "checkbox" ? (control.checked ? "yes" : "") : control.value }, section);
    control.addEventListener(control.type === "search" ? "input" : "change", said);
  }
  $("theme").addEventListener("click", () => useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  window.addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return;
    show(readAddress());
  });
  let before;
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    drawAll();
    useTheme("light");
  });
  window.addEventListener("afterprint", () => useTheme(before));
}

function show(at) {
  showControls();
  for (const name of page.drawn) page.parts[name].draw();
  if (at) document.getElementById(at)?.scrollIntoView();
}

/** Draw a part when it comes near the window. */
function watch() {
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      near.unobserve(entry.target);
      const { part } = entry.target.dataset;
      for (const name of part.split(" ")) {
        page.drawn.add(name);
        page.parts[name].draw();
      }
    }
  }, { rootMargin: "600px" });
  const places = { scatter: ["scatter"], matrix: ["matrix"], "curves-figure": ["curves"], "reliability-figure": ["calibration"], "anomalies-figure": ["anomalies"], gallery: ["gallery"] };
  for (const [id, parts] of Object.entries(places)) {
    const there = parts.filter((name) => page.parts[name]);
    if (there.length && $(id)) {
      $(id).dataset.part = there.join(" ");
      near.observe($(id));
    }
  }
}

async function start() {
  useTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  await new Promise((painted) => requestAnimationFrame(() => setTimeout(painted)));
  try {
    const [data, library] = await Promise.all([unpacked("data"), unpacked("plotly")]);
    page.data = JSON.parse(data);
    addMeans(page.data);
    document.head.append(Object.assign(document.createElement("script"), { textContent: library }));
    page.defaults = defaults();
    const at = readAddress();
    if ($("scatter")) startScatter();
    startCorruptions();
    startCalibration();
    startPictures();
    startTables();
    document.querySelectorAll("table bdi").forEach(breakable);
    listen();
    showControls();
    watch();
    if (at) document.getElementById(at)?.scrollIntoView({ behavior: "instant" });
    document.documentElement.dataset.ready = "yes";
  } catch (problem) {
    $("problem").hidden = false;
    $("problem").textContent = `The figures could not be drawn (${problem.message}). The verdict and the tables stand.`;
    console.error(problem);
  }
}

start();
