// What Undo brings back: the points themselves, so that a match still knows them, where they were, and the box.
export function takeSnapshot({ points, detected, box }) {
  return { detected, box, points: points.map((point) => ({ point, x: point.x, y: point.y, name: point.name })) };
}

export function restore(pane, { points, detected, box }) {
  const kept = new Set(points.map(({ point }) => point));
  for (const point of pane.points) if (!kept.has(point)) point.element.remove();
  Object.assign(pane, { points: points.map(({ point }) => point), detected, box });
  // From the last to the first, each before the one that follows; who is there stays, and keeps the focus.
  points.reduceRight((next, { point, x, y, name }) => {
    if (!point.element.isConnected) pane.part.dots.insertBefore(point.element, next);
    point.name = name;
    point.place(x, y);
    return point.element;
  }, null);
}

/** The part of the picture that a file says to look at. */
export function showBox({ box, part: { crop }, width, height }) {
  crop.hidden = !box;
  if (!box) return;
  const [x, y, right, bottom] = box;
  const shares = { left: x / width, top: y / height, width: (right - x) / width, height: (bottom - y) / height };
  for (const [key, share] of Object.entries(shares)) crop.style[key] = `${share * 100}%`;
}
