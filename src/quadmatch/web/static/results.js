// The panel: what can be done next, what was found, and what the constraint changed.
import { colourOf } from "./colours.js";
import { activePair } from "./lines.js";
import { element, shownPairs, state, update } from "./store.js";

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** The server's answer with the points themselves in place of their indices. */
export function readResult(content, a, b, truth) {
  const right = truth && new Set(truth.map(([i, j]) => `${i} ${j}`));
  const read = ({ pairs, scores }, other) => {
    const there = new Set(other.pairs.map(String));
    return pairs.map(([i, j], row) => ({
      a: a[i], b: b[j], i, j, score: scores[row], differs: !there.has(`${i},${j}`), right: right ? right.has(`${i} ${j}`) : null,
    }));
  };
  const free = content.without_constraint;
  return {
    content,
    judged: Boolean(truth),
    ways: { true: read(content, free), false: read(free, content) },
    edges: [...content.edges_a.map(([i, j]) => [a[i], a[j]]), ...content.edges_b.map(([i, j]) => [b[i], b[j]])],
  };
}

function missing() {
  const { a, b } = state.panes;
  if (!a.file && !b.file) return "Add two pictures to begin.";
  if (!a.file || !b.file) return `Add picture ${a.file ? "B" : "A"}.`;
  const bare = [a, b].filter((pane) => !pane.points.length).map((pane) => pane.label);
  if (bare.length) return `Add points to ${bare.length === 2 ? "both pictures" : `picture ${bare[0]}`}: click, or detect them.`;
  return "";
}

export function render() {
  const { a, b } = state.panes;
  const button = element("match");
  const lack = missing();
  button.disabled = Boolean(lack) || state.busy;
  button.classList.toggle("busy", state.busy);
  button.textContent = state.busy ? "Matching…" : state.stale ? "Match again" : "Match";
  element("why").textContent = lack || (state.stale ? "The points have changed since this match." : `${count(a.points.length, "point")} in A, ${b.points.length} in B.`);
  element("least").textContent = state.threshold.toFixed(2);
  for (const id of ["save-json", "save-png"]) element(id).disabled = !state.result || state.stale;
  renderSummary();
  renderPairs();
}

function renderSummary() {
  const { result } = state;
  const difference = element("difference");
  if (!result) {
    element("found").textContent = "No match yet";
    element("detail").textContent = "Pairs appear here with their scores.";
    difference.textContent = "Neighbours should match neighbours";
    return;
  }
  const all = result.ways[state.constraint];
  const shown = shownPairs();
  element("found").textContent = shown.length === all.length ? count(all.length, "pair") : `${shown.length} of ${count(all.length, "pair")}`;
  const detail = [];
  if (result.judged) {
    const rate = (way) => `${result.ways[way].filter((pair) => pair.right).length} of ${result.content.points_a.length}`;
    detail.push(`Right: ${rate(true)} with the constraint, ${rate(false)} without.`);
  }
  const alone = result.content.points_a.length + result.content.points_b.length - 2 * shown.length;
  if (alone) detail.push(`${count(alone, "point")} left alone.`);
  element("detail").textContent = detail.join(" ") || "Every point has a partner.";
  const changed = result.ways.true.filter((pair) => pair.differs).length;
  difference.textContent = changed ? `Changes ${count(changed, "pair")}, drawn dashed` : "Changes nothing here";
}

let drawn = null;

function renderPairs() {
  const list = element("pairs");
  const pairs = [...shownPairs()].sort((one, other) => other.score - one.score);
  const active = activePair(pairs);
  const same = drawn && drawn.length === pairs.length && drawn.every((pair, row) => pair === pairs[row]);
  if (!same) {
    list.replaceChildren(...pairs.map(makeRow));
    drawn = pairs;
  }
  list.classList.toggle("stale", state.stale);
  pairs.forEach((pair, row) => list.children[row].firstElementChild.classList.toggle("looked", pair === active));
}

function makeRow(pair) {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const mark = pair.right === null ? "" : pair.right ? "✓" : "✕";
  const notes = [pair.differs ? "differs" : "", mark].filter(Boolean);
  const cells = [["ends", `A${pair.i} – B${pair.j}`], ["note", pair.differs ? "differs" : ""], ["mark", mark], ["bar", ""], ["value", pair.score.toFixed(2)]];
  for (const [name, text] of cells) {
    const cell = document.createElement("span");
    cell.className = name;
    cell.textContent = text;
    button.append(cell);
  }
  button.classList.toggle("wrong", pair.right === false);
  button.querySelector(".bar").style.setProperty("--share", `${Math.round(pair.score * 100)}%`);
  button.style.setProperty("--colour", colourOf(pair.score));
  button.setAttribute("aria-label", `A${pair.i} to B${pair.j}, score ${pair.score.toFixed(2)}${pair.differs ? ", differs by the constraint" : ""}${notes.includes("✓") ? ", right" : notes.includes("✕") ? ", wrong" : ""}`);
  for (const name of ["pointerenter", "focus", "click"]) button.addEventListener(name, () => update({ active: pair }));
  for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => update({ active: null }));
  row.append(button);
  return row;
}
