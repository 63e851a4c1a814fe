// Points that come many at once: from a file, or detected.
import { detectPoints, readPoints } from "./server.js";
import { announce, count, showFault, state } from "./store.js";

/** The points of a file, which the server reads as the command line does. */
export async function load(pane, file) {
  if (!pane.file) return pane.fault("Add the picture first, then its points.");
  pane.fault("");
  const { turn } = pane;
  try {
    const { points, names, box } = await readPoints(file, pane, state.limits.seconds);
    if (turn !== pane.turn) return;
    pane.remember();
    pane.setPoints(points, { names, box });
    announce(`${count(points.length, "point")} loaded into picture ${pane.label}.`);
  } catch (error) {
    if (turn === pane.turn) pane.fault(error.message);
  }
}

export async function detect(pane) {
  const { detect: button, many } = pane.part;
  const wanted = Math.min(Math.max(Math.round(Number(many.value)) || 20, 1), state.limits.points);
  many.value = wanted;
  const { turn } = pane;
  button.disabled = true;
  button.textContent = "Detecting…";
  try {
    const places = await detectPoints(pane.file, wanted, state.limits.seconds);
    if (turn !== pane.turn) return;
    pane.remember();
    pane.setPoints(places, { detected: true });
    announce(`${count(places.length, "point")} detected in picture ${pane.label}.`);
    if (!places.length) showFault("No point was found: the picture may be too even. Add points yourself.");
  } catch (error) {
    showFault(error.message);
  } finally {
    button.disabled = false;
    button.textContent = "Detect";
  }
}
