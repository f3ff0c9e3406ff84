"use strict";
// The gallery: confident mistakes, what a shift made wrong, and what two models disagree on.

const KINDS = { lost: "right on clean, wrong under the shift", mistakes: "most confident mistakes", disagreements: "two models disagree" };

const galleryOf = () => page.data.galleries.find((one) => one.setting === page.view.shown && one.kind === page.view.kind && one.models.join("\n") === page.view.of);

function drawGallery() {
  const one = galleryOf();
  if (!one) {
    $("gallery").replaceChildren();
    $("gallery-said").textContent = "No picture.";
    return;
  }
  const two = one.models.length === 2;
  const what = { mistakes: "answered wrongly", lost: "right on clean and wrong here", disagreements: "answered differently by the two" }[one.kind];
  $("gallery-said").textContent = `${whole(one.total)} pictures are ${what}; ${one.rows.length < one.total ? `the ${one.rows.length} surest with room on this page` : "all of them"}.`;
  $("gallery").replaceChildren(...one.rows.map(([copy, id, truth, said, sure, otherSaid, otherSure]) => {
    const answers = two ? [[one.models[0], said, sure], [one.models[1], otherSaid, otherSure]] : [["said", said, sure]];
    const lines = answers.map(([who, name, share]) => make("span", { class: "note" }, bdi(who), ": ", bdi(name), ` (${percent(share, 0)} sure)`));
    const caption = make("figcaption", {}, make("span", { class: "truth" }, truth === null ? "no label" : bdi(truth)), ...lines);
    return make("li", {}, make("figure", { title: id }, picture(copy, `${id}: ${truth ?? "no label"}; ${answers.map(([who, name]) => `${who} ${name}`).join(", ")}`), caption));
  }));
  page.files.gallery = { table: () => [["setting", "kind", "models", "picture", "label", "said", "confidence", "other_said", "other_confidence"], one.rows.map(([, ...row]) => [one.setting, one.kind, one.models.join(" | "), ...row])] };
}

function startPictures() {
  if (!page.data.galleries.length) return;
  const here = () => page.data.galleries.filter((one) => one.setting === page.view.shown);
  const settings = [...new Set(page.data.galleries.map((one) => one.setting))];
  menus.shown = () => settings.map((name) => [name, name]);
  menus.kinds = () => Object.entries(KINDS).filter(([kind]) => here().some((one) => one.kind === kind));
  menus.of = () => here().filter((one) => one.kind === page.view.kind).map(({ models }) => [models.join("\n"), models.join(" and ")]);
  page.parts.gallery = { keys: ["shown", "kind", "of"], draw: drawGallery };
}
