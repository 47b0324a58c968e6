// A closer look at an image: z, double click or tap, pinch and wheel enlarge it; dragging moves it.
//
// The image stays in its frame, so that the classes remain in reach. Positions are measured from the middle of the
// frame; the image in full size replaces the one on the screen as soon as it is decoded.

import { decoded, mediaOf, sharpen } from "./item.js";

const FIRST = 3;
const LARGEST = 16;
const DOUBLE_TAP = 300; // ms
const NEAR = 24; // px between the taps of a double tap

export class Zoom {
  #frame;
  #image = null;
  #data = null;
  #scale = 1;
  #x = 0;
  #y = 0;
  #fingers = new Map();
  #tap = { time: -Infinity, x: 0, y: 0 };

  constructor(frame) {
    this.#frame = frame;
    frame.addEventListener("pointerdown", (event) => this.#down(event));
    frame.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel"]) frame.addEventListener(end, (event) => this.#fingers.delete(event.pointerId));
    frame.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
  }

  get open() {
    return this.#scale > 1;
  }

  /** The image that is looked at; null for items that are not images. */
  attach(image, data) {
    this.close();
    this.#image = image;
    this.#data = data;
  }

  toggle(x = 0, y = 0) {
    if (!this.#image) return;
    if (this.open) this.close();
    else this.#enlarge(FIRST, x, y);
  }

  close() {
    if (this.open) this.#place(1, 0, 0);
    this.#fingers.clear();
  }

  #enlarge(scale, x, y) {
    if (!this.open && scale > 1) this.#loadFull(this.#data);
    const factor = scale / this.#scale;
    this.#place(scale, x - (x - this.#x) * factor, y - (y - this.#y) * factor);
  }

  #place(scale, x, y) {
    const { width, height } = this.#frame.getBoundingClientRect();
    const within = (value, size) => Math.max(-1, Math.min(1, value / (size * (scale - 1) / 2 || 1))) * size * (scale - 1) / 2;
    [this.#scale, this.#x, this.#y] = [scale, within(x, width), within(y, height)];
    this.#draw({ width, height });
  }

  #draw(size) {
    this.#image.style.transform = this.open ? `translate(${this.#x}px, ${this.#y}px) scale(${this.#scale})` : "";
    this.#frame.classList.toggle("zoomed", this.open);
    sharpen(this.#image, size, this.#scale);
  }

  async #loadFull(data) {
    const full = await decoded(mediaOf(data, "full"), this.#image.alt).catch(() => null);
    if (!full || data !== this.#data || !this.open) return;
    this.#image.replaceWith(full);
    this.#image = full;
    this.#draw(this.#frame.getBoundingClientRect());
  }

  #down(event) {
    if (!this.#image || event.button !== 0) return;
    this.#frame.setPointerCapture(event.pointerId);
    this.#fingers.set(event.pointerId, this.#at(event));
    if (this.#isDoubleTap(event)) this.toggle(...this.#at(event));
  }

  #isDoubleTap({ timeStamp: time, clientX: x, clientY: y }) {
    const last = this.#tap;
    const double = this.#fingers.size === 1 && time - last.time < DOUBLE_TAP && Math.hypot(x - last.x, y - last.y) < NEAR;
    this.#tap = { time: double ? -Infinity : time, x, y };
    return double;
  }

  #move(event) {
    const before = this.#fingers.get(event.pointerId);
    if (!before) return;
    const after = this.#at(event);
    const other = [...this.#fingers].find(([id]) => id !== event.pointerId)?.[1];
    this.#fingers.set(event.pointerId, after);
    if (other) this.#pinch(before, after, other);
    else if (this.open) this.#place(this.#scale, this.#x + after[0] - before[0], this.#y + after[1] - before[1]);
  }

  #pinch(before, after, other) {
    const spread = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
    this.#scaleBy(spread(after) / spread(before), (after[0] + other[0]) / 2, (after[1] + other[1]) / 2);
  }

  #wheel(event) {
    if (!this.#image) return;
    event.preventDefault();
    this.#scaleBy(Math.exp(-event.deltaY / 300), ...this.#at(event));
  }

  #scaleBy(factor, x, y) {
    this.#enlarge(Math.max(1, Math.min(LARGEST, this.#scale * factor)), x, y);
  }

  #at(event) {
    const { left, top, width, height } = this.#frame.getBoundingClientRect();
    return [event.clientX - left - width / 2, event.clientY - top - height / 2];
  }
}
