// One picture and its points: files, clicks, the buttons below it, and what Undo brings back.
import { detect, load } from "./filling.js";
import { restore, showBox, takeSnapshot } from "./history.js";
import { Lens } from "./lens.js";
import { Point } from "./point.js";
import { savePoints } from "./saving.js";
import { showPicture } from "./server.js";
import { announce, count, showFault, state, TOUCH } from "./store.js";
import { View } from "./view.js";

const HINT = TOUCH ? "Tap to add points" : "Click to add points";
const PARTS = "badge file size replace drop accepts frame dots crop fault busy count naming detect many undo clear save closer farther whole";
const NAMES = { choose: "Choose picture", "choose-again": "Replace picture", many: "Points to detect in picture", detect: "Detect points in picture", undo: "Undo in picture", clear: "Clear the points of picture", load: "Load points of picture", save: "Save points of picture", closer: "Zoom into picture", farther: "Zoom out of picture", whole: "Show the whole of picture" };

export class Pane {
  constructor(side, stage, changed) {
    this.side = side;
    this.label = side.toUpperCase();
    this.changed = changed;
    Object.assign(this, { points: [], history: [], file: null, turn: 0, detected: false, box: null, unsaved: false });
    this.root = document.getElementById("pane").content.firstElementChild.cloneNode(true);
    this.root.dataset.side = side;
    this.root.setAttribute("aria-label", `Picture ${this.label}`);
    stage.insertBefore(this.root, stage.lastElementChild);
    this.part = Object.fromEntries(PARTS.split(" ").map((name) => [name, this.root.querySelector(`.${name}`)]));
    this.image = this.root.querySelector("img");
    this.part.badge.textContent = this.label;
    if (TOUCH) this.root.querySelector(".drop strong").textContent = "Add a picture";
    for (const [name, text] of Object.entries(NAMES)) this.root.querySelector(`.${name}`).setAttribute("aria-label", `${text} ${this.label}`);
    this.view = new View(this);
    this.lens = new Lens(this);
    this.listen();
  }

  listen() {
    const { frame, undo, clear, save, naming } = this.part;
    for (const input of this.root.querySelectorAll("input[type=file]")) {
      input.addEventListener("change", () => {
        if (input.files[0]) input.classList.contains("load") ? load(this, input.files[0]) : this.open(input.files[0]);
        input.value = "";
      });
    }
    // A press that began on a point, which it may have deleted, or that moved the view, adds none where it ends.
    let begun = null;
    frame.addEventListener("pointerdown", (event) => { begun = event.target.closest(".point"); });
    frame.addEventListener("click", (event) => {
      if (begun || this.view.moved || event.target.closest(".point")) return;
      const place = this.locate(event);
      this.add(place.x, place.y);
    });
    frame.addEventListener("keydown", (event) => {
      if (event.target !== frame || !["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      const { x, y, zoom } = this.view;
      this.add((x + 0.5 / zoom) * this.width, (y + 0.5 / zoom) * this.height)?.element.focus();
    });
    this.part.detect.addEventListener("click", () => detect(this));
    undo.addEventListener("click", () => this.undo());
    save.addEventListener("click", () => savePoints(this));
    clear.addEventListener("click", () => {
      this.remember();
      this.setPoints([]);
      announce(`All points of picture ${this.label} removed.`);
    });
    let typed = false;
    naming.addEventListener("focus", () => { typed = false; });
    naming.addEventListener("input", () => {
      if (!typed) this.remember();
      typed = true;
      this.unsaved = true;
      this.chosen.rename(naming.value.trim());
      this.changed();
    });
    naming.addEventListener("keydown", (event) => { if (event.key === "Enter") this.chosen.element.focus(); });
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
      Object.assign(this, { file, width: shown.width, height: shown.height, history: [], unsaved: false });
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
    frame.hidden = replace.hidden = this.root.querySelector("footer").hidden = this.root.querySelector(".zooming").hidden = false;
    frame.style.aspectRatio = `${this.width} / ${this.height}`;
    frame.style.setProperty("--ratio", this.width / this.height);
    frame.setAttribute("aria-label", `Picture ${this.label}. Press Enter to add a point, plus and minus to zoom.`);
    file.textContent = file.title = this.file.name;
    size.textContent = `${this.width} × ${this.height}`;
    this.root.classList.add("filled");
    this.view.set(1, 0, 0);
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
    const box = this.part.dots.getBoundingClientRect();
    return this.clamp((event.clientX - box.left) / box.width * this.width, (event.clientY - box.top) / box.height * this.height);
  }

  clamp(x, y) {
    const limit = (value, most) => Math.round(Math.min(Math.max(value, 0), most) * 10) / 10;
    return { x: limit(x, this.width), y: limit(y, this.height) };
  }

  remember() {
    this.history.push(takeSnapshot(this));
    if (this.history.length > 100) this.history.shift();
  }

  undo() {
    const before = this.history.pop();
    if (!before) return;
    const focused = this.root.contains(document.activeElement);
    restore(this, before);
    this.renumber();
    // Else the next Ctrl+Z would reach no picture.
    if (focused && (!this.root.contains(document.activeElement) || document.activeElement.disabled)) this.part.frame.focus({ preventScroll: true });
    announce(`Undone. Picture ${this.label} has ${count(this.points.length, "point")}.`);
  }

  add(x, y) {
    if (this.points.length >= state.limits.points) {
      showFault(`A picture may have at most ${state.limits.points} points.`);
      return null;
    }
    this.remember();
    const point = new Point(this, x, y);
    this.points.push(point);
    this.unsaved = true;
    this.choose(point);
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
    this.unsaved = true;
    this.renumber();
    if (focused) (this.points[Math.min(index, this.points.length - 1)]?.element ?? this.part.frame).focus();
    announce(`Point ${this.label}${index} removed.`);
  }

  setPoints(places, { names = null, box = null, detected = false } = {}) {
    for (const point of this.points) point.element.remove();
    this.points = places.map(([x, y], index) => new Point(this, x, y, names?.[index]));
    Object.assign(this, { box, detected });
    this.renumber();
  }

  /** The point whose name can be typed. */
  choose(point) {
    this.chosen = point;
    const { naming } = this.part;
    naming.disabled = !point;
    if (!point) naming.value = naming.placeholder = "";
    if (!point || document.activeElement === naming) return;
    naming.value = point.name;
    naming.placeholder = `Name of ${this.label}${point.index ?? this.points.length - 1}`;
    naming.setAttribute("aria-label", naming.placeholder);
  }

  renumber() {
    this.points.forEach((point, index) => point.number(index));
    const { count: text, undo, clear, save } = this.part;
    const many = this.points.length;
    text.textContent = many ? count(many, "point") : HINT;
    text.classList.toggle("hint", !many);
    undo.disabled = !this.history.length;
    clear.disabled = save.disabled = !many;
    undo.hidden = clear.hidden = save.hidden = !many && !this.history.length;
    showBox(this);
    this.choose(this.points.includes(this.chosen) ? this.chosen : null);
    this.view.show();
    state.last = this;
    this.changed();
  }

  places() {
    return this.points.map(({ x, y }) => [x, y]);
  }

  /** The points' names, in which a point without one is counted; null where none has one. */
  names() {
    return this.points.some(({ name }) => name) ? this.points.map(({ name }, index) => name || String(index)) : null;
  }
}
