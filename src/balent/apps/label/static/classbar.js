// The buttons of the classes: key, name, criteria, and the guess.
//
// All buttons have the same size, whatever is guessed, so that nothing moves from one item to the next. The number of
// columns follows from the longest name and is balanced: ten classes become two rows of five, not one of eight.

import { button, element, isolated, keyCap, named } from "./elements.js";
import { percent } from "./words.js";

const LONG = 150; // px; longer names are wrapped
const GAP = 8;
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const ink = document.createElement("canvas").getContext("2d");

export class ClassBar {
  #looks = null;
  #buttons = new Map();
  #choose;

  /** choose(name, event) is called when a class is pressed. */
  constructor(choose) {
    this.#choose = choose;
    this.node = element("section", { id: "classes", "aria-label": "Classes" });
    new ResizeObserver(() => this.#arrange()).observe(this.node);
  }

  show(looks) {
    if (JSON.stringify(looks) === JSON.stringify(this.#looks)) return;
    this.#looks = looks;
    this.#buttons = new Map(looks.map((look) => [look.name, this.#button(look)]));
    this.node.replaceChildren(...this.#buttons.values());
    if (!looks.length) this.node.append(element("p", { class: "hint" }, "There are no classes yet. Press n to add one."));
    this.#arrange();
  }

  /** The action of a key, for keys.js. */
  actionOf(key) {
    const look = this.#looks.find((look) => look.key && look.key.toLowerCase() === key);
    return look && ((event) => this.#choose(look.name, event));
  }

  guess(name, probability) {
    for (const [other, node] of this.#buttons) {
      const share = other === name ? probability : null;
      node.classList.toggle("guess", other === name);
      node.querySelector(".share").textContent = share === null ? "" : percent(share);
      node.querySelector(".level").style.width = share === null ? "0" : `${100 * share}%`;
    }
  }

  /** Answers the press of a key with a short light. */
  flash(name) {
    if (!STILL.matches) this.#buttons.get(name)?.animate([{ backgroundColor: "var(--pressed)" }, {}], { duration: 350, easing: "ease-out" });
  }

  #button(look) {
    const label = `label as ${isolated(look.name)}${look.key ? `, key ${look.key}` : ""}`;
    const title = look.note ? `${isolated(look.name)}: ${look.note}` : isolated(look.name);
    const node = button({ class: "class", "aria-label": label, title, "aria-keyshortcuts": look.key || null,
                          onclick: (event) => this.#choose(look.name, event) },
      look.key && keyCap(look.key),
      element("span", { class: "name" }, named(look.name), look.note && element("small", {}, look.note)),
      element("span", { class: "share" }), element("span", { class: "level" }));
    node.dataset.class = look.name;
    return node;
  }

  #arrange() {
    if (!this.#looks?.length) return;
    const first = this.node.firstElementChild;
    ink.font = getComputedStyle(first).font;
    const { length } = this.#looks;
    const longest = Math.min(LONG, Math.max(...this.#looks.map((look) => ink.measureText(look.name).width)));
    const width = this.node.clientWidth;
    const around = (width < 600 ? 30 : 66) + (first.querySelector("kbd")?.offsetWidth ?? 0);
    const fit = Math.max(1, Math.floor((width + GAP) / (longest + around)));
    this.node.style.setProperty("--columns", Math.ceil(length / Math.ceil(length / fit)));
  }
}
