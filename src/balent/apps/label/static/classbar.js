// The buttons of the classes: key, name, criteria, and the guess. A class can also be found by its name.
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
  #scrolls = false;
  #enabled = true;

  /** choose(name, event) is called when a class is pressed. */
  constructor(choose) {
    this.#choose = choose;
    this.node = element("section", { id: "classes", "aria-label": "Classes" });
    this.find = element("form", { class: "above-classes", hidden: true, onsubmit: (event) => this.#chooseFound(event) },
      element("input", { type: "search", placeholder: "part of a class name", "aria-label": "Find a class", autocomplete: "off",
                         oninput: () => this.#showFound() }),
      element("button", { class: "main" }, "Label", keyCap("enter")),
      button({ class: "quiet", onclick: () => this.#closeFind() }, "Cancel", keyCap("Esc")));
    this.find.addEventListener("keydown", ({ key }) => key === "Escape" && this.#closeFind());
    new ResizeObserver(() => this.#arrange()).observe(this.node);
  }

  show(looks) {
    if (JSON.stringify(looks) === JSON.stringify(this.#looks)) return;
    this.#looks = looks;
    this.#buttons = new Map(looks.map((look) => [look.name, this.#button(look)]));
    this.node.replaceChildren(...this.#buttons.values());
    this.#arrange();
  }

  /** The action of a key, for keys.js. */
  actionOf(key) {
    const look = this.#looks.find((look) => look.key && look.key.toLowerCase() === key);
    return look ? (event) => this.#choose(look.name, event) : { "/": () => this.openFind() }[key];
  }

  /** Whether some class can be reached only by pointing at it or by its name. */
  get needsFind() {
    return this.#looks.some((look) => !look.key);
  }

  guess(name, probability) {
    for (const [other, node] of this.#buttons) {
      const share = other === name ? probability : null;
      node.classList.toggle("guess", other === name);
      node.querySelector(".share").textContent = share === null ? "" : percent(share);
      node.querySelector(".level").style.width = share === null ? "0" : `${100 * share}%`;
    }
    if (this.#scrolls) this.#buttons.get(name)?.scrollIntoView({ block: "nearest" });
  }

  /** Answers the press of a key with a short light. */
  flash(name) {
    if (!STILL.matches) this.#buttons.get(name)?.animate([{ backgroundColor: "var(--pressed)" }, {}], { duration: 350, easing: "ease-out" });
  }

  /** Without an item there is nothing to label. */
  enable(on) {
    if (on === this.#enabled) return;
    this.#enabled = on;
    for (const node of this.#buttons.values()) node.disabled = !on;
  }

  // By name

  openFind() {
    this.find.hidden = false;
    this.find.reset();
    this.#showFound();
    this.find.querySelector("input").focus();
  }

  #closeFind() {
    this.find.hidden = true;
    for (const node of this.#buttons.values()) node.hidden = false;
    document.activeElement.blur();
  }

  /** Names that have every word that was typed; those that begin with it come first. */
  #found() {
    const typed = this.find.querySelector("input").value.toLowerCase().trim();
    const names = [...this.#buttons.keys()].filter((name) => typed.split(/\s+/).every((word) => name.toLowerCase().includes(word)));
    return typed ? names.sort((a, b) => b.toLowerCase().startsWith(typed) - a.toLowerCase().startsWith(typed)) : [];
  }

  #showFound() {
    const found = this.#found();
    const label = this.find.querySelector(".main");
    for (const [name, node] of this.#buttons) node.hidden = found.length > 0 && !found.includes(name);
    label.disabled = !found.length;
    label.replaceChildren("Label ", found.length ? named(found[0]) : "…", keyCap("enter"));
  }

  #chooseFound(event) {
    event.preventDefault();
    const [name] = this.#found();
    if (!name) return;
    this.#closeFind();
    this.#choose(name, event);
  }

  // How it looks

  #button(look) {
    const title = look.note ? `${isolated(look.name)}: ${look.note}` : isolated(look.name);
    const node = button({ class: "class", title, "aria-keyshortcuts": look.key || null, disabled: !this.#enabled,
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
    const longest = Math.max(...this.#looks.map((look) => ink.measureText(look.name).width));
    const width = this.node.clientWidth;
    const around = (width < 600 ? 30 : 94) + (first.querySelector("kbd")?.offsetWidth ?? 0);
    const fit = Math.max(1, Math.floor((width + GAP) / (Math.min(longest, LONG) + around)));
    this.node.classList.toggle("tight", longest > LONG || width < 600);
    this.node.style.setProperty("--columns", Math.ceil(length / Math.ceil(length / fit)));
    this.node.classList.toggle("noted", this.#looks.some((look) => look.note));
    const room = first.querySelector(".name").clientWidth; // a name of two lines must not run into the probability
    for (const [name, node] of this.#buttons) node.classList.toggle("long", ink.measureText(name).width > room);
    this.#scrolls = this.node.scrollHeight > this.node.clientHeight + 1;
  }
}
