// Puts the parts of the page together.
import { gradient } from "./colours.js";
import { draw, watchPointer } from "./lines.js";
import { Pane } from "./pane.js";
import { readResult, render } from "./results.js";
import { saveJson, savePng } from "./saving.js";
import { getExample, getStatus, matchPictures } from "./server.js";
import { announce, element, hideFault, showFault, state, subscribe, update } from "./store.js";

const stage = element("stage");
let loading = 0;

function pointsChanged() {
  const { a, b } = state.panes;
  if (!a || !b) return;
  const { result } = state;
  const lost = result && ![a, b].some((pane) => pane.points.some((point) => result.points.has(point)));
  update(lost ? { result: null, stale: false } : { stale: Boolean(result) && changedSince(result) });
}

function changedSince(result) {
  const { a, b } = state.panes;
  const now = JSON.stringify([a.places(), b.places()]);
  return now !== result.places || result.files[0] !== a.file || result.files[1] !== b.file;
}

async function match() {
  const { a, b } = state.panes;
  hideFault();
  update({ busy: true });
  const points = { a: [...a.points], b: [...b.points] };
  const places = JSON.stringify([a.places(), b.places()]);
  const files = [a.file, b.file];
  const truth = state.truth && state.truth.places === places ? state.truth.pairs : null;
  try {
    const content = await matchPictures(a, b, state.limits.seconds + 10);
    const result = readResult(content, points.a, points.b, truth);
    Object.assign(result, { places, files, points: new Set([...points.a, ...points.b]) });
    update({ result, active: null, stale: changedSince(result) });
    announce(`${content.pairs.length} pairs matched.`);
  } catch (error) {
    showFault(error.message);
  } finally {
    update({ busy: false });
  }
}

async function openExample(name, button) {
  const turn = ++loading;
  hideFault();
  button.disabled = true;
  for (const pane of Object.values(state.panes)) pane.wait("Making the example…");
  try {
    const example = await getExample(name);
    if (turn !== loading) return;
    const open = (side) => state.panes[side].open(new File([example[side]], `${name}-${side}.png`, { type: "image/png" }), example[`points_${side}`]);
    await Promise.all([open("a"), open("b")]);
    const places = JSON.stringify([state.panes.a.places(), state.panes.b.places()]);
    update({ truth: { pairs: example.truth, places }, result: null, stale: false });
  } catch (error) {
    showFault(error.message);
  } finally {
    button.disabled = false;
    if (turn === loading) for (const pane of Object.values(state.panes)) pane.wait("");
  }
}

function offerExamples(examples) {
  for (const { name, title } of examples) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "chip";
    button.textContent = title;
    button.addEventListener("click", () => openExample(name, button));
    element("examples").append(button);
  }
  element("examples").hidden = !examples.length;
}

/** Two files go to both sides, one to the side it is dropped on, or else to the first empty one. */
function takeFiles(files, target) {
  const { a, b } = state.panes;
  if (!files.length) return showFault("Drop a picture's file: what was dropped is none.");
  if (files.length > 2) showFault("Only the first two pictures were taken.");
  if (files.length >= 2) return void [a.open(files[0]), b.open(files[1])];
  const side = target.closest?.(".pane")?.dataset.side;
  (state.panes[side] ?? (a.file ? b : a)).open(files[0]);
}

function listenToDrops() {
  let depth = 0;
  const hint = (on, target) => {
    document.body.classList.toggle("dragging", on);
    for (const pane of Object.values(state.panes)) pane.root.classList.toggle("aimed", on && pane.root.contains(target));
  };
  addEventListener("dragenter", () => { depth += 1; });
  addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) hint(false); });
  addEventListener("dragover", (event) => { event.preventDefault(); hint(true, event.target); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    depth = 0;
    hint(false);
    hideFault();
    takeFiles([...event.dataTransfer.files], event.target);
  });
}

function listenToControls() {
  element("match").addEventListener("click", match);
  element("dismiss").addEventListener("click", hideFault);
  element("constraint").addEventListener("change", (event) => update({ constraint: event.target.checked, active: null }));
  element("edges").addEventListener("change", (event) => update({ edges: event.target.checked }));
  element("threshold").addEventListener("input", (event) => update({ threshold: Number(event.target.value) }));
  element("save-json").addEventListener("click", saveJson);
  element("save-png").addEventListener("click", () => savePng().catch((error) => showFault(error.message)));
  addEventListener("keydown", (event) => { if (event.key === "Escape") { hideFault(); update({ active: null }); } });
}

async function start() {
  for (const side of ["a", "b"]) state.panes[side] = new Pane(side, stage, pointsChanged);
  document.documentElement.style.setProperty("--scores", gradient);
  subscribe(draw);
  subscribe(render);
  listenToDrops();
  listenToControls();
  watchPointer();
  new ResizeObserver(() => update()).observe(stage);
  update();
  try {
    const status = await getStatus();
    state.limits = status.limits;
    element("model").textContent = status.model;
    element("model").hidden = false;
    offerExamples(status.examples);
  } catch (error) {
    showFault(error.message);
  }
  const size = `up to ${Math.round(state.limits.bytes / 2 ** 20)} MB`;
  for (const pane of Object.values(state.panes)) {
    pane.part.accepts.textContent = `JPEG, PNG, WebP, TIFF, ${size}`;
    pane.part.many.max = state.limits.points;
  }
}

start();
