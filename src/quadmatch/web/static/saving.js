// Downloads: the match as JSON, and the pictures with their lines as PNG.
import { casingOf, colourOf, strengthOf, widthOf } from "./colours.js";
import { count, shownPairs, state } from "./store.js";

const HEIGHT = 900;
const GAP = 36;
const FOOT = 64;

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** A file that `quadmatch match --points-a` and this page read. */
export function savePoints(pane) {
  const content = { points: pane.places() };
  if (pane.names()) content.names = pane.names();
  if (pane.box) content.box = pane.box;
  save(new Blob([`${JSON.stringify(content)}\n`], { type: "application/json" }), `${pane.file.name.replace(/\.[^.]*$/, "")}.points.json`);
  pane.unsaved = false;
}

/** The format of `quadmatch match --out`, with the pairs that are shown. */
export function describeMatch() {
  const { edges_a, edges_b, without_constraint, ...content } = state.result.content;
  const shown = shownPairs();
  const rest = (points, taken) => points.map((_, index) => index).filter((index) => !taken.has(index));
  return {
    ...content,
    names_a: state.panes.a.names(),
    names_b: state.panes.b.names(),
    constraint: state.constraint,
    orientation: (state.constraint ? content : without_constraint).orientation,
    partial: content.partial || shown.length < state.result.ways[state.constraint].length,
    pairs: shown.map(({ i, j }) => [i, j]),
    scores: shown.map(({ score }) => score),
    coordinates: shown.map(({ i, j }) => [...content.points_a[i], ...content.points_b[j]]),
    unmatched_a: rest(content.points_a, new Set(shown.map(({ i }) => i))),
    unmatched_b: rest(content.points_b, new Set(shown.map(({ j }) => j))),
  };
}

export function saveJson() {
  const lines = Object.entries(describeMatch()).map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`);
  save(new Blob([`{\n${lines.join(",\n")}\n}\n`], { type: "application/json" }), "matches.json");
  for (const pane of Object.values(state.panes)) pane.unsaved = false;
}

export async function savePng() {
  const { a, b } = state.panes;
  const widths = [a, b].map((pane) => Math.round(Math.min(pane.width / pane.height, 3) * HEIGHT));
  const canvas = document.createElement("canvas");
  canvas.width = widths[0] + widths[1] + 3 * GAP;
  canvas.height = HEIGHT + GAP + FOOT;
  const pen = canvas.getContext("2d");
  const [paper, ink, muted] = ["--ground", "--ink", "--muted"].map((name) => resolve(name));
  pen.fillStyle = paper;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const frames = new Map();
  [a, b].forEach((pane, place) => {
    const height = widths[place] * pane.height / pane.width;
    const frame = { x: GAP + place * (widths[0] + GAP), y: GAP + (HEIGHT - height) / 2, scale: widths[place] / pane.width };
    frames.set(pane, frame);
    pen.drawImage(pane.image, frame.x, frame.y, widths[place], height);
  });
  const locate = (point) => {
    const { x, y, scale } = frames.get(point.pane);
    return [x + point.x * scale, y + point.y * scale];
  };
  drawMatch(pen, locate);
  drawLegend(pen, canvas, ink, muted);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error("The browser could not make the picture.");
  save(blob, "matches.png");
}

/** A canvas does not know light-dark(), so an element says what a colour is now. */
function resolve(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function stroke(pen, [x, y], [u, v], colour, width, strength, dash = []) {
  pen.globalAlpha = strength;
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(u, v);
  pen.stroke();
  pen.globalAlpha = 1;
  pen.setLineDash([]);
}

function drawMatch(pen, locate) {
  pen.lineCap = "round";
  if (state.edges) {
    for (const [p, q] of state.result.edges) {
      stroke(pen, locate(p), locate(q), "#000", 4, 0.35);
      stroke(pen, locate(p), locate(q), "#fff", 1.8, 0.8);
    }
  }
  const pairs = [...shownPairs()].sort((one, other) => one.score - other.score);
  for (const pair of pairs) {
    const ends = [locate(pair.a), locate(pair.b)];
    const width = 1.8 * widthOf(pair.score);
    stroke(pen, ...ends, casingOf(pair.score), width + 3, 0.55 * strengthOf(pair.score));
    stroke(pen, ...ends, colourOf(pair.score), width, strengthOf(pair.score), pair.differs ? [12, 9] : []);
  }
  const colours = new Map(pairs.flatMap((pair) => [[pair.a, pair.score], [pair.b, pair.score]]));
  for (const pane of Object.values(state.panes)) {
    for (const point of pane.points) {
      pen.beginPath();
      pen.arc(...locate(point), 8, 0, 2 * Math.PI);
      pen.fillStyle = colours.has(point) ? colourOf(colours.get(point)) : "#fff";
      pen.fill();
      pen.lineWidth = 3;
      pen.strokeStyle = "#0b0d12";
      pen.stroke();
    }
  }
}

function drawLegend(pen, canvas, ink, muted) {
  const y = canvas.height - FOOT / 2 + 4;
  const { content } = state.result;
  pen.textBaseline = "middle";
  pen.font = "600 22px system-ui, sans-serif";
  pen.fillStyle = ink;
  const found = count(shownPairs().length, "pair");
  pen.fillText(found, GAP, y);
  const start = GAP + pen.measureText(found).width + 18;
  pen.font = "20px system-ui, sans-serif";
  pen.fillStyle = muted;
  pen.fillText(`${content.model}, ${state.constraint ? "with" : "without"} the quadratic constraint`, start, y);
  const width = 220;
  const left = canvas.width - GAP - width - 30;
  for (let step = 0; step < width; step += 2) {
    pen.fillStyle = colourOf(step / width);
    pen.fillRect(left + step, y - 7, 2, 14);
  }
  pen.fillStyle = muted;
  pen.textAlign = "right";
  pen.fillText("score 0", left - 10, y);
  pen.textAlign = "left";
  pen.fillText("1", left + width + 10, y);
}
