// What the parts of the page share, and who wants to know when it changes.
export const state = {
  limits: { bytes: 24 * 2 ** 20, pixels: 6e7, points: 500, seconds: 60 },
  panes: {},
  result: null, // { content, ways: { true: pairs, false: pairs }, edges }, pairs holding the points themselves
  truth: null, // pairs of an example's points, kept while the points are
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

/** Pairs of the chosen way whose points are still there, above the threshold. */
export function shownPairs() {
  if (!state.result) return [];
  const alive = new Set([...state.panes.a.points, ...state.panes.b.points]);
  const pairs = state.result.ways[state.constraint];
  return pairs.filter((pair) => pair.score >= state.threshold && alive.has(pair.a) && alive.has(pair.b));
}
