// The place where one item is shown: fixed in size, so that nothing around it moves.
//
// data-item is the number of the item that is visible, and absent when there is none.

import { element } from "./elements.js";
import { sharpen } from "./item.js";
import { Zoom } from "./zoom.js";

export class Stage {
  #size = { width: 0, height: 0 };

  constructor() {
    this.node = element("section", { id: "item", "aria-label": "Item" });
    this.zoom = new Zoom(this.node);
    new ResizeObserver(([{ contentRect }]) => this.#resized(contentRect)).observe(this.node);
  }

  show({ data, node }) {
    const image = node instanceof HTMLImageElement ? node : null;
    this.zoom.attach(image, data);
    if (image) sharpen(image, this.#size);
    this.node.replaceChildren(node);
    this.node.dataset.item = data.item;
    if (!image) node.scrollTop = 0; // costs a layout, and an image has nothing to scroll
  }

  /** Shows a sentence in place of an item. */
  say(sentence) {
    this.zoom.attach(null, null);
    delete this.node.dataset.item;
    this.node.replaceChildren(sentence);
  }

  /** The action of a key, for keys.js. */
  actionOf(key) {
    const scroll = (share) => () => this.node.firstElementChild.scrollBy({ top: share * this.#size.height });
    return {
      z: () => this.zoom.toggle(),
      Escape: () => this.zoom.close(),
      ArrowDown: scroll(0.15), ArrowUp: scroll(-0.15), PageDown: scroll(0.8), PageUp: scroll(-0.8),
    }[key];
  }

  #resized({ width, height }) {
    this.#size = { width, height };
    const image = this.node.querySelector("img");
    this.zoom.close();
    if (image) sharpen(image, this.#size);
  }
}
