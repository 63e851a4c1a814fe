// The panel: what can be done next, what was found, and what the constraint changed.
import { colourOf } from "./colours.js";
import { activePair } from "./lines.js";
import { count, element, isPartial, pairsAbove, shownPairs, state, TOUCH, update } from "./store.js";

/** The server's answer with the points themselves beside their indices. */
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
    edges: listEdges(content, a, b),
  };
}

const listEdges = (content, a, b) => [...content.edges_a.map(([i, j]) => [a[i], a[j]]), ...content.edges_b.map(([i, j]) => [b[i], b[j]])];

/** Points at the places of those that were matched take the match over, whoever made them. */
export function rebind(result, a, b) {
  for (const pair of [...result.ways.true, ...result.ways.false]) Object.assign(pair, { a: a[pair.i], b: b[pair.j] });
  result.edges = listEdges(result.content, a, b);
}

function missing() {
  const { a, b } = state.panes;
  if (state.loading) return "Making the example…";
  if (!a.file && !b.file) return "Add two pictures to begin.";
  if (!a.file || !b.file) return `Add picture ${a.file ? "B" : "A"}.`;
  const bare = [a, b].filter((pane) => !pane.points.length).map((pane) => pane.label);
  if (bare.length) return `Add points to ${bare.length === 2 ? "both pictures" : `picture ${bare[0]}`}: ${TOUCH ? "tap" : "click"}, or detect them.`;
  return "";
}

export function render() {
  const { a, b } = state.panes;
  const button = element("match");
  const lack = missing();
  button.disabled = Boolean(lack) || state.busy;
  button.classList.toggle("working", state.busy);
  button.textContent = state.busy ? "Matching…" : state.stale ? "Match again" : "Match";
  element("why").textContent = lack || describeNext(a, b);
  element("least").textContent = state.threshold.toFixed(2);
  element("partial").checked = isPartial();
  const shown = shownPairs().length;
  for (const id of ["save-json", "save-png"]) {
    element(id).disabled = !shown || state.stale;
    element(id).title = state.stale ? "The match is out of date." : state.result && !shown ? "No pair is shown." : "";
  }
  renderSummary();
  renderPairs();
}

function describeNext(a, b) {
  if (state.stale) return "Changed since this match.";
  if (state.result) return `${count(shownPairs().length, "pair")} shown.`;
  return `${count(a.points.length, "point")} in A, ${b.points.length} in B.`;
}

/** A warning in the words of the page: "image_a" is "Picture A", and a box comes with a file of points. */
function speak(line) {
  const named = line.replace(/image_([ab])/g, (_, side, place) => `${place ? "p" : "P"}icture ${side.toUpperCase()}`);
  return `${named.replace(/ \(--box-.*\)/, ", in a file of points")}.`;
}

/** What the server doubts about a match: points of the two sides that may lie on different parts of a thing. */
function renderDoubt({ result, stale }) {
  const lines = result && !stale ? result.content.warnings : [];
  element("doubt").textContent = lines.map(speak).join(" ");
  element("doubt").hidden = !lines.length;
}

/** What was found of how B lies, in words. */
function describeTurn(orientation) {
  const degrees = orientation.match(/\d+$/)?.[0] ?? "0";
  const steps = [...(orientation.startsWith("mirror") ? ["mirrored"] : []), ...(degrees === "0" ? [] : [`turned ${degrees}° clockwise`])];
  return `Fits best ${steps.join(", ") || "as it is"}`;
}

function renderTurn({ result, stale, constraint }) {
  const told = result && !stale && result.content.orientation_asked === "auto";
  const way = result && (constraint ? result.content : result.content.without_constraint);
  element("turn").textContent = told ? describeTurn(way.orientation) : "Tries quarter turns and mirrors";
}

function renderSummary() {
  const { result } = state;
  renderDoubt(state);
  renderTurn(state);
  const difference = element("difference");
  if (!result) {
    element("found").textContent = "No match yet";
    element("detail").textContent = "Pairs appear here with their scores.";
    difference.textContent = "Neighbours match neighbours";
    return;
  }
  const changed = result.ways.true.filter((pair) => pair.differs).length;
  difference.textContent = changed ? `Changes ${count(changed, "pair")}, drawn dashed` : "Changes nothing here";
  const all = result.ways[state.constraint].length;
  const shown = pairsAbove(state.constraint).length;
  if (state.stale) {
    element("found").textContent = `${count(all, "pair")}, out of date`;
    element("detail").textContent = "Points or settings have changed since. Change them back (points with Undo) to see this match again, or match again for a new one.";
    return;
  }
  element("found").textContent = shown === all ? count(all, "pair") : `${shown} of ${count(all, "pair")}`;
  element("detail").textContent = describeDetail(result, all - shown).join(" ") || "Every point has a partner.";
}

function describeDetail({ judged, content, ways }, hidden) {
  const detail = [];
  if (judged) {
    const rate = (way) => `${pairsAbove(way).filter((pair) => pair.right).length} of ${content.points_a.length}`;
    detail.push(`Right: ${rate(true)} with the constraint, ${rate(false)} without.`);
  }
  if (hidden) detail.push(`${count(hidden, "pair")} below the least score hidden.`);
  const alone = content.points_a.length + content.points_b.length - 2 * ways[state.constraint].length;
  if (alone) detail.push(`${count(alone, "point")} left alone.`);
  return detail;
}

let drawn = null;
let named = "";

function renderPairs() {
  const list = element("pairs");
  const pairs = [...shownPairs()].sort((one, other) => other.score - one.score);
  const active = activePair(pairs);
  const key = pairs.map(({ a, b }) => [a.name, b.name]);
  const same = drawn && drawn.length === pairs.length && drawn.every((pair, row) => pair === pairs[row]) && String(key) === named;
  if (!same) {
    list.replaceChildren(...pairs.map(makeRow));
    [drawn, named] = [pairs, String(key)];
  }
  list.classList.toggle("stale", state.stale);
  pairs.forEach((pair, row) => list.children[row].firstElementChild.classList.toggle("looked", pair === active));
}

function makeRow(pair) {
  const row = document.createElement("li");
  const button = document.createElement("button");
  button.type = "button";
  const mark = pair.right === null ? "" : pair.right ? "✓" : "✕";
  const names = [...new Set([pair.a.name, pair.b.name].filter(Boolean))].join(" – ");
  const note = [names, pair.differs ? "differs" : ""].filter(Boolean).join(", ");
  const cells = [["ends", `A${pair.i} – B${pair.j}`], ["note", note], ["mark", mark], ["bar", ""], ["value", pair.score.toFixed(2)]];
  for (const [name, text] of cells) {
    const cell = document.createElement("span");
    cell.className = name;
    cell.textContent = text;
    button.append(cell);
  }
  button.classList.toggle("wrong", pair.right === false);
  button.querySelector(".bar").style.setProperty("--share", `${Math.round(pair.score * 100)}%`);
  button.style.setProperty("--colour", colourOf(pair.score));
  button.setAttribute("aria-label", `A${pair.i} to B${pair.j}${names ? `, ${names}` : ""}, score ${pair.score.toFixed(2)}${pair.differs ? ", differs by the constraint" : ""}${{ "✓": ", right", "✕": ", wrong" }[mark] ?? ""}`);
  for (const name of ["pointerenter", "focus", "click"]) button.addEventListener(name, () => update({ active: pair }));
  for (const name of ["pointerleave", "blur"]) button.addEventListener(name, () => update({ active: null }));
  row.append(button);
  return row;
}
