// One picture and its points: dropping, clicking, dragging, deleting and the keyboard.
import { detectPoints, showPicture } from "./server.js";
import { announce, showFault, state, update } from "./store.js";
import { Point } from "./point.js";

const TOUCH = matchMedia("(pointer: coarse)").matches;
const HINT = TOUCH ? "Tap to add points" : "Click to add points";

export class Pane {
  constructor(side, stage, changed) {
    this.side = side;
    this.label = side.toUpperCase();
    this.changed = changed;
    this.points = [];
    this.history = [];
    this.file = null;
    this.turn = 0;
    this.root = document.getElementById("pane").content.firstElementChild.cloneNode(true);
    this.root.dataset.side = side;
    this.root.setAttribute("aria-label", `Picture ${this.label}`);
    stage.insertBefore(this.root, stage.lastElementChild);
    const names = ["badge", "file", "size", "replace", "drop", "accepts", "frame", "dots", "fault", "busy", "count", "detect", "many", "undo", "clear"];
    this.part = Object.fromEntries(names.map((name) => [name, this.root.querySelector(`.${name}`)]));
    this.image = this.root.querySelector("img");
    this.part.badge.textContent = this.label;
    if (TOUCH) this.root.querySelector(".drop strong").textContent = "Add a picture";
    this.part.many.setAttribute("aria-label", `Points to detect in picture ${this.label}`);
    this.listen();
  }

  listen() {
    const { frame, detect, undo, clear } = this.part;
    for (const input of this.root.querySelectorAll("input[type=file]")) {
      input.addEventListener("change", () => {
        if (input.files[0]) this.open(input.files[0]);
        input.value = "";
      });
    }
    // A press that began on a point, which it may have deleted, adds none where it ends.
    let begun = null;
    frame.addEventListener("pointerdown", (event) => { begun = event.target.closest(".point"); });
    frame.addEventListener("click", (event) => {
      if (begun || event.target.closest(".point")) return;
      const place = this.locate(event);
      this.add(place.x, place.y);
    });
    frame.addEventListener("keydown", (event) => {
      if (event.target !== frame || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      this.add(this.width / 2, this.height / 2)?.element.focus();
    });
    this.root.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "z" && event.target.type !== "number") {
        event.preventDefault();
        this.undo();
      }
    });
    detect.addEventListener("click", () => this.detect());
    undo.addEventListener("click", () => this.undo());
    clear.addEventListener("click", () => {
      this.remember();
      this.setPoints([]);
      announce(`All points of picture ${this.label} removed.`);
    });
  }

  /** Show a file; an answer that comes after another file was chosen is dropped. */
  async open(file, points = []) {
    const turn = ++this.turn;
    this.fault("");
    if (file.size > state.limits.bytes) {
      return this.fault(`${file.name}: a file may have at most ${(state.limits.bytes / 2 ** 20).toFixed(0)} MB.`);
    }
    this.wait("Reading the picture…");
    try {
      const shown = await showPicture(file, state.limits.seconds);
      if (turn !== this.turn) return;
      URL.revokeObjectURL(this.image.src);
      this.image.src = URL.createObjectURL(shown.blob);
      await this.image.decode();
      if (turn !== this.turn) return;
      Object.assign(this, { file, width: shown.width, height: shown.height, history: [] });
      this.fit();
      this.setPoints(points);
      announce(`Picture ${this.label}: ${file.name}, ${shown.width} by ${shown.height} pixels.`);
    } catch (error) {
      if (turn === this.turn) this.fault(`${file.name}: ${error.message.replace(/^image: /, "")}`);
    } finally {
      if (turn === this.turn) this.wait("");
    }
  }

  fit() {
    const { drop, frame, file, size, replace } = this.part;
    drop.hidden = true;
    frame.hidden = replace.hidden = this.root.querySelector("footer").hidden = false;
    frame.style.aspectRatio = `${this.width} / ${this.height}`;
    frame.style.setProperty("--ratio", this.width / this.height);
    frame.setAttribute("aria-label", `Picture ${this.label}. Press Enter to add a point.`);
    file.textContent = this.file.name;
    file.title = this.file.name;
    size.textContent = `${this.width} × ${this.height}`;
    this.root.classList.add("filled");
  }

  /** Say what is being done; nothing where it is done. */
  wait(text) {
    this.part.busy.hidden = !text;
    this.part.busy.lastElementChild.textContent = text;
  }

  fault(text) {
    this.part.fault.textContent = text;
    this.part.fault.hidden = !text;
  }

  /** Where a pointer is, in pixels of the picture. */
  locate(event) {
    const box = this.part.frame.getBoundingClientRect();
    return this.clamp((event.clientX - box.left) / box.width * this.width, (event.clientY - box.top) / box.height * this.height);
  }

  clamp(x, y) {
    const limit = (value, most) => Math.round(Math.min(Math.max(value, 0), most) * 10) / 10;
    return { x: limit(x, this.width), y: limit(y, this.height) };
  }

  remember() {
    this.history.push(this.places());
    if (this.history.length > 100) this.history.shift();
  }

  undo() {
    const before = this.history.pop();
    if (!before) return;
    this.setPoints(before);
    announce(`Undone. Picture ${this.label} has ${this.points.length} points.`);
  }

  add(x, y) {
    if (this.points.length >= state.limits.points) {
      showFault(`A picture may have at most ${state.limits.points} points.`);
      return null;
    }
    this.remember();
    const point = new Point(this, x, y);
    this.points.push(point);
    this.renumber();
    announce(`Point ${this.label}${this.points.length - 1} added.`);
    return point;
  }

  remove(point) {
    const index = this.points.indexOf(point);
    if (index < 0) return;
    this.remember();
    const focused = document.activeElement === point.element;
    this.points.splice(index, 1);
    point.element.remove();
    this.renumber();
    if (focused) (this.points[Math.min(index, this.points.length - 1)]?.element ?? this.part.frame).focus();
    announce(`Point ${this.label}${index} removed.`);
  }

  setPoints(places) {
    for (const point of this.points) point.element.remove();
    this.points = places.map(([x, y]) => new Point(this, x, y));
    this.renumber();
  }

  renumber() {
    this.points.forEach((point, index) => point.number(index));
    const count = this.points.length;
    const { count: text, undo, clear } = this.part;
    text.textContent = count ? `${count} ${count === 1 ? "point" : "points"}` : HINT;
    text.classList.toggle("hint", !count);
    undo.disabled = !this.history.length;
    clear.disabled = !count;
    undo.hidden = clear.hidden = !count && !this.history.length;
    this.changed();
  }

  places() {
    return this.points.map(({ x, y }) => [x, y]);
  }

  async detect() {
    const { detect, many } = this.part;
    const count = Math.min(Math.max(Math.round(Number(many.value)) || 20, 1), state.limits.points);
    many.value = count;
    const turn = this.turn;
    detect.disabled = true;
    detect.textContent = "Detecting…";
    try {
      const places = await detectPoints(this.file, count, state.limits.seconds);
      if (turn !== this.turn) return;
      this.remember();
      this.setPoints(places);
      announce(`${places.length} points detected in picture ${this.label}.`);
      if (!places.length) showFault("No point was found: the picture may be too even. Click to add points yourself.");
    } catch (error) {
      showFault(error.message);
    } finally {
      detect.disabled = false;
      detect.textContent = "Detect";
    }
  }
}
