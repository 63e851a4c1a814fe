// What part of a picture is seen: wheel, pinch, buttons and keys zoom; dragging the bare picture moves it.
import { update } from "./store.js";

const MOST = 24; // times the size that fits
const DRAG = 4; // pixels before a press becomes a drag
const CROWDED = 60; // points in sight at which numbers would cover the picture
const limit = (value, least, most) => Math.min(Math.max(value, least), most);

export class View {
  constructor(pane) {
    this.pane = pane;
    this.pointers = new Map();
    this.moved = false;
    this.set(1, 0, 0);
    this.listen();
  }

  /** Zoom, and the place of the upper left corner that is seen, as a share of the picture. */
  set(zoom, x, y) {
    this.zoom = limit(zoom, 1, MOST);
    const room = 1 - 1 / this.zoom;
    this.x = limit(x, 0, room);
    this.y = limit(y, 0, room);
    this.show();
  }

  show() {
    const { image, part, points } = this.pane;
    for (const { style } of [image, part.dots]) {
      style.width = style.height = `${this.zoom * 100}%`;
      style.left = `${-this.x * this.zoom * 100}%`;
      style.top = `${-this.y * this.zoom * 100}%`;
    }
    part.frame.classList.toggle("zoomed", this.zoom > 1);
    part.whole.textContent = `${Math.round(this.zoom * 100)} %`;
    part.whole.disabled = part.closer.disabled = part.farther.disabled = false;
    if (this.zoom === 1) part.whole.disabled = part.farther.disabled = true;
    if (this.zoom === MOST) part.closer.disabled = true;
    for (const point of points) point.element.classList.toggle("outside", !this.sees(point));
    this.size(points.length / this.zoom ** 2);
    update();
  }

  /** Dots shrink as they become many. */
  size(crowd) {
    const dot = limit(14 * Math.sqrt(25 / Math.max(crowd, 1)), 6, 14);
    this.pane.root.style.setProperty("--dot", `${dot.toFixed(1)}px`);
    this.pane.root.classList.toggle("crowded", crowd > CROWDED);
  }

  sees({ x, y }) {
    const inside = (share, start) => share >= start - 1e-6 && share <= start + 1 / this.zoom + 1e-6;
    return inside(x / this.pane.width, this.x) && inside(y / this.pane.height, this.y);
  }

  /** Zoom so that what lies under a place of the screen stays there. */
  zoomAt(factor, clientX, clientY) {
    const box = this.pane.part.frame.getBoundingClientRect();
    const u = limit((clientX - box.left) / box.width, 0, 1);
    const v = limit((clientY - box.top) / box.height, 0, 1);
    const zoom = limit(this.zoom * factor, 1, MOST);
    this.set(zoom, this.x + u / this.zoom - u / zoom, this.y + v / this.zoom - v / zoom);
  }

  zoomMiddle(factor) {
    const box = this.pane.part.frame.getBoundingClientRect();
    this.zoomAt(factor, box.left + box.width / 2, box.top + box.height / 2);
  }

  pan(across, down) {
    const box = this.pane.part.frame.getBoundingClientRect();
    this.set(this.zoom, this.x - across / box.width / this.zoom, this.y - down / box.height / this.zoom);
  }

  /** Move the view as little as it takes to see a point, as when the keyboard goes to it. */
  reveal(point) {
    if (this.sees(point)) return;
    const half = 0.5 / this.zoom;
    this.set(this.zoom, point.x / this.pane.width - half, point.y / this.pane.height - half);
  }

  listen() {
    const { frame, closer, farther, whole } = this.pane.part;
    frame.addEventListener("wheel", (event) => {
      if (this.zoom === 1 && event.deltaY > 0) return; // nothing to zoom out of: the page scrolls
      event.preventDefault();
      const step = event.deltaY * (event.deltaMode ? 16 : 1) * (event.ctrlKey ? 0.01 : 0.0022);
      this.zoomAt(Math.exp(-limit(step, -0.5, 0.5)), event.clientX, event.clientY);
    }, { passive: false });
    frame.addEventListener("keydown", (event) => {
      const factor = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, 0: 1 / MOST }[event.key];
      if (!factor || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.zoomMiddle(factor);
    });
    closer.addEventListener("click", () => this.zoomMiddle(1.5));
    farther.addEventListener("click", () => this.zoomMiddle(1 / 1.5));
    whole.addEventListener("click", () => { this.set(1, 0, 0); frame.focus(); });
    frame.addEventListener("pointerdown", (event) => this.press(event));
    frame.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"]) frame.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
  }

  press(event) {
    if (!this.pointers.size) this.moved = false;
    if (event.button || event.target.closest(".point")) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before || !event.buttons) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other && (this.zoom === 1 || (!this.moved && Math.hypot(now.x - before.x, now.y - before.y) < DRAG))) return;
    if (!this.moved) this.pane.part.frame.setPointerCapture(event.pointerId);
    this.moved = true;
    this.pointers.set(event.pointerId, now);
    if (other) {
      const away = (place) => Math.max(Math.hypot(place.x - other.x, place.y - other.y), 1);
      this.zoomAt(away(now) / away(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
      this.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
    } else this.pan(now.x - before.x, now.y - before.y);
  }
}
