// A keypoint: a button that is dragged, moved by the arrow keys, and deleted.
import { announce, update } from "./store.js";

const DRAG = 3; // pixels before a press becomes a drag
const HOLD = 650; // milliseconds before a press deletes
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Point {
  constructor(pane, x, y, name = "") {
    this.pane = pane;
    this.name = name;
    this.element = document.createElement("button");
    this.element.type = "button";
    this.element.className = "point";
    this.element.tabIndex = -1;
    this.tag = document.createElement("span");
    this.tag.className = "tag";
    this.element.append(this.tag);
    pane.part.dots.append(this.element);
    this.place(x, y);
    this.listen();
  }

  place(x, y) {
    Object.assign(this, this.pane.clamp(x, y));
    this.element.style.left = `${this.x / this.pane.width * 100}%`;
    this.element.style.top = `${this.y / this.pane.height * 100}%`;
    this.describe();
  }

  number(index) {
    this.index = index;
    this.tag.textContent = index;
    this.element.tabIndex = index ? -1 : 0;
    this.describe();
  }

  rename(name) {
    this.name = name;
    this.describe();
  }

  describe() {
    const number = `${this.pane.label}${this.index}`;
    const called = this.name ? `${number} ${this.name}` : number;
    this.element.dataset.number = called;
    const keys = "Arrow keys move it, Delete removes it, Page Down goes to the next.";
    this.element.setAttribute("aria-label", `Point ${called} at ${Math.round(this.x)}, ${Math.round(this.y)}. ${keys}`);
  }

  move(x, y) {
    this.place(x, y);
    this.pane.unsaved = true;
    this.pane.changed();
  }

  listen() {
    const { element } = this;
    element.addEventListener("pointerdown", (event) => this.press(event));
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("click", (event) => {
      this.clicked ||= event.detail === 1;
      if (this.touched) this.tap();
    });
    element.addEventListener("contextmenu", (event) => event.preventDefault());
    element.addEventListener("dblclick", (event) => {
      event.preventDefault();
      // A double click on the bare picture ends on the point that its first half made.
      if (this.clicked) this.pane.remove(this);
    });
    for (const name of ["pointerenter", "focus"]) element.addEventListener(name, () => update({ active: this }));
    for (const name of ["pointerleave", "blur"]) element.addEventListener(name, () => update({ active: null }));
    element.addEventListener("focus", () => {
      for (const point of this.pane.points) point.element.tabIndex = point === this ? 0 : -1;
      this.pane.choose(this);
    });
  }

  press(event) {
    if (event.button !== 0) return;
    const { element } = this;
    const start = { x: event.clientX, y: event.clientY, own: [this.x, this.y] };
    let dragged = false;
    const hold = event.pointerType === "mouse" ? 0 : setTimeout(() => { finish(); this.pane.remove(this); }, HOLD);
    const move = (moved) => {
      if (moved.pointerId !== event.pointerId) return;
      if (!dragged && Math.hypot(moved.clientX - start.x, moved.clientY - start.y) < DRAG) return;
      if (!dragged) this.pane.remember();
      dragged = true;
      clearTimeout(hold);
      element.classList.add("dragged");
      const box = this.pane.part.dots.getBoundingClientRect();
      this.move(start.own[0] + (moved.clientX - start.x) / box.width * this.pane.width, start.own[1] + (moved.clientY - start.y) / box.height * this.pane.height);
      this.pane.lens.show(this);
    };
    const finish = () => {
      clearTimeout(hold);
      element.classList.remove("dragged");
      this.pane.lens.hide();
      element.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) element.removeEventListener(name, finish);
      if (dragged) this.pane.renumber();
    };
    element.setPointerCapture(event.pointerId);
    element.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, finish);
    this.touched = event.pointerType !== "mouse";
  }

  /** The second of two quick taps deletes. */
  tap() {
    const now = performance.now();
    if (now - (this.tapped ?? -Infinity) < 400) this.pane.remove(this);
    this.tapped = now;
  }

  key(event) {
    const { points } = this.pane;
    const step = STEPS[event.key];
    if (step && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const size = event.shiftKey ? 10 : 1;
      if (!event.repeat) this.pane.remember();
      this.move(this.x + step[0] * size, this.y + step[1] * size);
      this.pane.view.reveal(this);
      if (!event.repeat) this.pane.renumber();
      announce(`${Math.round(this.x)}, ${Math.round(this.y)}`);
    } else if (["Delete", "Backspace"].includes(event.key)) {
      this.pane.remove(this);
    } else if (["PageDown", "PageUp", "Home", "End"].includes(event.key)) {
      const goal = { PageDown: this.index + 1, PageUp: this.index - 1 + points.length, Home: 0, End: points.length - 1 }[event.key];
      const next = points[goal % points.length];
      this.pane.view.reveal(next);
      next.element.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }
}
