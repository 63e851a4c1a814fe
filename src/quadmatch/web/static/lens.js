// A magnifier beside a point that is dragged, which a finger or a pointer would cover.
const SIDE = 128;
const POWER = 3;
const AWAY = 34;

export class Lens {
  constructor(pane) {
    this.pane = pane;
    this.root = document.createElement("div");
    this.root.className = "lens";
    this.root.hidden = true;
    pane.part.frame.append(this.root);
  }

  show(point) {
    const { image, part, width, height } = this.pane;
    const [sheet, frame] = [part.dots, part.frame].map((one) => one.getBoundingClientRect());
    const at = { x: point.x / width * sheet.width, y: point.y / height * sheet.height };
    const { style } = this.root;
    style.backgroundImage = `url("${image.src}")`;
    style.backgroundSize = `${sheet.width * POWER}px ${sheet.height * POWER}px`;
    style.backgroundPosition = `${SIDE / 2 - at.x * POWER}px ${SIDE / 2 - at.y * POWER}px`;
    const x = at.x + sheet.left - frame.left;
    const y = at.y + sheet.top - frame.top;
    const above = y > SIDE + AWAY;
    const beside = x > frame.width / 2 ? x - SIDE - AWAY : x + AWAY;
    style.left = `${above ? Math.min(Math.max(x - SIDE / 2, 0), Math.max(frame.width - SIDE, 0)) : beside}px`;
    style.top = `${above ? y - SIDE - AWAY : Math.max(y - SIDE / 2, 0)}px`;
    this.root.hidden = false;
  }

  hide() {
    this.root.hidden = true;
  }
}
