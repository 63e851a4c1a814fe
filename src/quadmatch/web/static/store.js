// What the parts of the page share, and who wants to know when it changes.
export const state = {
  limits: { bytes: 24 * 2 ** 20, pixels: 6e7, points: 500, seconds: 60 },
  panes: {},
  last: null, // the picture that was changed last: what Ctrl+Z means elsewhere
  result: null, // { content, ways: { true: pairs, false: pairs }, edges }, pairs holding the points themselves
  truth: null, // pairs of an example's points, kept while the points are
  model: null,
  partial: null, // whether poor points are left alone; null: where points were detected
  turned: false, // whether B is also tried turned and in a mirror
  loading: false,
  stale: false,
  busy: false,
  constraint: true,
  edges: false,
  threshold: 0,
  active: null,
};

const listeners = [];
let asked = false;

export function subscribe(listener) {
  listeners.push(listener);
}

export function update(changes = {}) {
  Object.assign(state, changes);
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    for (const listener of listeners) listener(state);
  });
}

export const element = (id) => document.getElementById(id);

export const TOUCH = matchMedia("(pointer: coarse)").matches;

export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

export function announce(text) {
  element("live").textContent = text;
}

export function showFault(text) {
  element("message-text").textContent = text;
  element("message").hidden = false;
}

export function hideFault() {
  element("message").hidden = true;
}

export const isPartial = () => state.partial ?? Object.values(state.panes).some((pane) => pane.detected);

/** Pairs of a way that are above the threshold. */
export const pairsAbove = (way) => state.result.ways[way].filter((pair) => pair.score >= state.threshold);

/** Pairs of the chosen way, above the threshold, whose points are still there. */
export function shownPairs() {
  if (!state.result) return [];
  const alive = new Set([...state.panes.a.points, ...state.panes.b.points]);
  return pairsAbove(state.constraint).filter((pair) => alive.has(pair.a) && alive.has(pair.b));
}
