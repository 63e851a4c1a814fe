// Puts the parts of the page together.
import { gradient } from "./colours.js";
import { draw, watchPointer } from "./lines.js";
import { Pane } from "./pane.js";
import { load } from "./filling.js";
import { readResult, rebind, render } from "./results.js";
import { saveJson, savePng } from "./saving.js";
import { getExample, getStatus, matchPictures } from "./server.js";
import { announce, count, element, hideFault, isPartial, showFault, state, subscribe, update } from "./store.js";

const stage = element("stage");
let loading = 0;
let matching = 0;

/** All that a match depends on. */
function describeTask() {
  const { a, b } = state.panes;
  return JSON.stringify([a.places(), b.places(), a.box, b.box, isPartial(), state.turned, state.model]);
}

const isOf = (result) => result.files[0] === state.panes.a.file && result.files[1] === state.panes.b.file;

/** A match of other pictures is gone; of other points or settings it is out of date, until they are changed back. */
function check() {
  const { a, b } = state.panes;
  const { result } = state;
  if (!a || !b) return;
  if (!result) return update();
  if (!isOf(result)) return update({ result: null, stale: false, active: null });
  const stale = describeTask() !== result.task;
  if (!stale) rebind(result, a.points, b.points);
  update({ stale });
}

async function match({ goal = "results" } = {}) {
  const { a, b } = state.panes;
  const turn = ++matching;
  hideFault();
  update({ busy: true });
  const points = [[...a.points], [...b.points]];
  const task = describeTask();
  const files = [a.file, b.file];
  const truth = state.truth?.places === describePlaces() ? state.truth.pairs : null;
  try {
    const { turned, model } = state;
    const content = await matchPictures(a, b, { partial: isPartial(), turned, model }, state.limits.seconds + 10);
    const result = Object.assign(readResult(content, ...points, truth), { task, files });
    if (turn !== matching || !isOf(result)) return;
    state.result = result;
    update({ active: null });
    check();
    announce(`${count(content.pairs.length, "pair")} matched.`);
    show(element(goal));
  } catch (error) {
    if (turn === matching) showFault(error.message);
  } finally {
    if (turn === matching) update({ busy: false });
  }
}

/** Where all is below one another, go to what is new. */
function show(part) {
  if (innerWidth > 720) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  requestAnimationFrame(() => part.scrollIntoView({ block: "start", behavior: still ? "auto" : "smooth" }));
}

const describePlaces = () => JSON.stringify([state.panes.a.places(), state.panes.b.places()]);

async function openExample(name, button) {
  const turn = ++loading;
  matching += 1;
  hideFault();
  button.disabled = true;
  update({ loading: true, busy: false });
  for (const pane of Object.values(state.panes)) pane.wait("Making the example…");
  try {
    const example = await getExample(name);
    if (turn !== loading) return;
    const open = (side) => state.panes[side].open(new File([example[side]], `${name}-${side}.png`, { type: "image/png" }), example[`points_${side}`]);
    await Promise.all([open("a"), open("b")]);
    if (turn !== loading) return;
    update({ truth: { pairs: example.truth, places: describePlaces() }, partial: null, loading: false });
    match({ goal: "stage" });
  } catch (error) {
    if (turn === loading) showFault(error.message);
  } finally {
    button.disabled = false;
    if (turn === loading) {
      update({ loading: false });
      for (const pane of Object.values(state.panes)) pane.wait("");
    }
  }
}

function offerModels({ model, models }) {
  const select = element("model");
  select.replaceChildren(...models.map(({ name }) => new Option(name, name, name === model, name === model)));
  const choose = () => {
    element("about").textContent = models.find(({ name }) => name === select.value)?.about ?? "";
    state.model = select.value;
    check();
  };
  select.addEventListener("change", choose);
  choose();
  element("choice").hidden = false;
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

const POINTS = /\.(json|csv|tsv|txt|tps|xml)$/i;

/** Two files go to both sides, one to the side it is dropped on, or else to the first empty one; points to pictures. */
function takeFiles(files, target) {
  const { a, b } = state.panes;
  if (!files.length) return showFault("Drop a picture's file: what was dropped is none.");
  const aimed = state.panes[target.closest?.(".pane")?.dataset.side];
  if (files.length === 1 && POINTS.test(files[0].name) && aimed?.file) return void load(aimed, files[0]);
  if (files.length > 2) showFault("Only the first two pictures were taken.");
  if (files.length >= 2) return void [a.open(files[0]), b.open(files[1])];
  (aimed ?? (a.file ? b : a)).open(files[0]);
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
  element("match").addEventListener("click", () => match());
  element("partial").addEventListener("change", (event) => { state.partial = event.target.checked; check(); });
  element("turned").addEventListener("change", (event) => { state.turned = event.target.checked; check(); });
  element("dismiss").addEventListener("click", hideFault);
  element("constraint").addEventListener("change", (event) => update({ constraint: event.target.checked, active: null }));
  element("edges").addEventListener("change", (event) => update({ edges: event.target.checked }));
  element("threshold").addEventListener("input", (event) => update({ threshold: Number(event.target.value) }));
  element("save-json").addEventListener("click", saveJson);
  element("save-png").addEventListener("click", () => savePng().catch((error) => showFault(error.message)));
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hideFault(); update({ active: null }); }
    if (!(event.ctrlKey || event.metaKey) || event.key !== "z" || ["number", "text"].includes(event.target.type)) return;
    event.preventDefault();
    (state.panes[event.target.closest?.(".pane")?.dataset.side] ?? state.last)?.undo();
  });
  // Points that were set by hand are not lost by a slip; the pictures themselves cannot be kept.
  addEventListener("beforeunload", (event) => {
    if (Object.values(state.panes).some((pane) => pane.unsaved && pane.points.length)) event.preventDefault();
  });
}

async function start() {
  for (const side of ["a", "b"]) state.panes[side] = new Pane(side, stage, check);
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
    offerModels(status);
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
