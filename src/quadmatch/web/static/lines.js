// The match over both pictures: edges, lines, the pair that is looked at, and the points' colours.
import { casingOf, colourOf, strengthOf, widthOf } from "./colours.js";
import { element, shownPairs, state, update } from "./store.js";

const REACH = 7; // pixels from a line at which a pointer means it
const drawing = element("lines");
const stage = element("stage");

function make(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** From a point of a picture to the stage, in pixels of the screen. */
function measure() {
  const origin = stage.getBoundingClientRect();
  const boxes = Object.fromEntries(Object.entries(state.panes).map(([side, pane]) => [side, pane.part.dots.getBoundingClientRect()]));
  return (point) => {
    const { pane } = point;
    const box = boxes[pane.side];
    return [box.left - origin.left + point.x / pane.width * box.width, box.top - origin.top + point.y / pane.height * box.height];
  };
}

const path = ([x, y], [u, v]) => `M${x.toFixed(1)} ${y.toFixed(1)}L${u.toFixed(1)} ${v.toFixed(1)}`;

const isSeen = (point) => point.pane.view.sees(point);

/** The pair that a point, a row or a line stands for. */
export function activePair(pairs = shownPairs()) {
  const { active } = state;
  return active && pairs.find((pair) => pair === active || pair.a === active || pair.b === active);
}

export function draw() {
  const locate = measure();
  const pairs = shownPairs();
  const active = activePair(pairs);
  const parts = [];
  if (state.edges && state.result) {
    const lines = state.result.edges.filter(([p, q]) => p.pane.points.includes(p) && q.pane.points.includes(q) && isSeen(p) && isSeen(q));
    const d = lines.map(([p, q]) => path(locate(p), locate(q))).join("");
    parts.push(make("path", { d, class: "edge under" }), make("path", { d, class: "edge" }));
  }
  const ordered = pairs.filter((pair) => isSeen(pair.a) && isSeen(pair.b)).sort((one, other) => (one === active) - (other === active) || one.score - other.score);
  for (const pair of ordered) {
    const d = path(locate(pair.a), locate(pair.b));
    const looked = pair === active;
    const kind = `${looked ? " looked" : active ? " aside" : ""}${pair.differs ? " differs" : ""}`;
    const width = widthOf(pair.score) + (looked ? 1.2 : 0);
    const strength = looked ? 1 : strengthOf(pair.score);
    parts.push(make("path", { d, class: `line under${kind}`, "stroke-width": width + 1.8, stroke: casingOf(pair.score), opacity: strength * (active && !looked ? 0.15 : 0.55) }));
    parts.push(make("path", { d, class: `line${kind}`, "stroke-width": width, stroke: colourOf(pair.score), opacity: strength * (active && !looked ? 0.22 : 1) }));
  }
  if (ordered.includes(active)) parts.push(label(locate(active.a), locate(active.b), active));
  drawing.replaceChildren(...parts);
  drawing.classList.toggle("stale", state.stale);
  colourPoints(pairs, active);
}

function label([x, y], [u, v], pair) {
  const group = make("g", { class: "score", transform: `translate(${(x + u) / 2} ${(y + v) / 2})` });
  const text = make("text", { "text-anchor": "middle", dy: "0.36em" });
  text.textContent = pair.score.toFixed(2);
  group.append(make("rect", { x: -21, y: -12, width: 42, height: 24, rx: 12 }), text);
  return group;
}

function colourPoints(pairs, active) {
  const colours = new Map(pairs.flatMap((pair) => [[pair.a, pair], [pair.b, pair]]));
  // Who is only hidden by the slider has a partner.
  const paired = new Set(state.result?.ways[state.constraint].flatMap((pair) => [pair.a, pair.b]));
  for (const pane of Object.values(state.panes)) {
    for (const point of pane.points) {
      const pair = colours.get(point);
      const { classList, style } = point.element;
      classList.toggle("matched", Boolean(pair) && !state.stale);
      classList.toggle("alone", Boolean(state.result) && !state.stale && !paired.has(point));
      classList.toggle("looked", Boolean(active) && pair === active);
      classList.toggle("aside", Boolean(active) && pair !== active);
      if (pair) style.setProperty("--colour", colourOf(pair.score));
    }
  }
}

function distance(px, py, [x, y], [u, v]) {
  const length = (u - x) ** 2 + (v - y) ** 2;
  const along = length ? Math.min(Math.max(((px - x) * (u - x) + (py - y) * (v - y)) / length, 0), 1) : 0;
  return Math.hypot(px - x - along * (u - x), py - y - along * (v - y));
}

/** Lines do not take the pointer, so that points can be set below them: the nearest one is found here. */
export function watchPointer() {
  stage.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || event.buttons || event.target.closest(".point, input, .quiet")) return;
    const origin = stage.getBoundingClientRect();
    const locate = measure();
    let best = null;
    let least = REACH;
    for (const pair of shownPairs().filter(({ a, b }) => isSeen(a) && isSeen(b))) {
      const away = distance(event.clientX - origin.left, event.clientY - origin.top, locate(pair.a), locate(pair.b));
      if (away < least) [best, least] = [pair, away];
    }
    if (best !== state.active) update({ active: best });
  });
  stage.addEventListener("pointerleave", () => update({ active: null }));
}
