// Many items guessed as one class: mark the wrong ones, confirm the rest with one key.
//
// The next page is asked for while one is looked at, so that it is there at once. Items that were marked stay
// unanswered; this tab does not show them again under the same class. What has not been on the screen is not confirmed:
// the first press scrolls there.

import { Refused, get, patiently } from "./api.js";
import { button, element, isolated, keyCap, named } from "./elements.js";
import { thumbnail } from "./item.js";
import { listenToKeys } from "./keys.js";
import { announce, fillHelp, openHelp, toast } from "./shell.js";
import { setPhase } from "./state.js";
import { PAGE, TAB, read, write } from "./storage.js";
import { Undo } from "./undo.js";
import { capital, count, counted, percent } from "./words.js";

const FULL = 24; // items
const LONGEST = 300; // seconds
const MOST = 600; // items that a request names
const BELOW = "0px 0px -60px 0px"; // the buttons cover what is there
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const POLL = 3000; // ms until it is asked again whether there is something
const HELP = [
  [["1", "2", "…"], "choose the class", "a class"],
  [["←", "↑", "↓", "→"], "move"],
  [["space"], "mark a wrong one", "an item"],
  [["enter"], "confirm the rest and go on", "confirm"],
  [["u", "backspace"], "undo, page by page", "undo"],
  [["?"], "this help"],
];

export function start(app) {
  const view = new GridView(app);
  return (status) => view.update(status);
}

class GridView {
  #outbox;
  #class = null;
  #queue = [];
  #shown = [];
  #known = new Set(); // items that came for this class: waiting, shown or confirmed
  #wrong = new Set();
  #shownAt = 0;
  #seen = 0; // tiles that have been on the screen
  #timer = 0;
  #undo = new Undo("grid");
  #watcher = new IntersectionObserver((entries) => this.#see(entries), { threshold: 0.5, rootMargin: BELOW });

  constructor({ status, outbox, main }) {
    this.#outbox = outbox;
    this.chips = element("section", { id: "chips", "aria-label": "Classes" });
    this.how = element("p", { id: "how", class: "hint" });
    this.tiles = element("section", { id: "tiles", "aria-label": "Items", onkeydown: (event) => this.#enter(event) });
    this.confirm = button({ id: "confirm", class: "main", "aria-keyshortcuts": "Enter", onclick: () => this.#confirmRest() });
    this.undoButton = button({ id: "undo", class: "quiet", "aria-keyshortcuts": "u", onclick: () => this.#undoLast() }, keyCap("u"), "undo");
    const help = button({ id: "keys", class: "quiet", onclick: openHelp }, keyCap("?"), "help");
    main.replaceChildren(element("div", { id: "choice" }, this.chips, this.how), this.tiles, element("div", { id: "actions" }, this.confirm, this.undoButton, help));
    outbox.addEventListener("refused", ({ detail }) => this.#undo.drop(({ id }) => id === detail.entry.id));
    outbox.addEventListener("acknowledged", () => this.#shown.length || this.#load());
    listenToKeys((key) => this.#actionOf(key));
    fillHelp(HELP);
    this.update(status);
    this.#choose(new URLSearchParams(location.search).get("class") ?? status.looks[0]?.name);
  }

  update({ looks, classes }) {
    this.looks = looks;
    if (this.chips.contains(document.activeElement)) return;
    this.chips.replaceChildren(...looks.map(({ name, key }) => this.#chip(name, key, classes[name] ?? 0)));
  }

  #chip(name, key, labels) {
    return button({ class: "chip", "aria-pressed": String(name === this.#class), "aria-keyshortcuts": key || null,
                    onclick: () => this.#choose(name) },
      key && keyCap(key), named(name), element("small", {}, count(labels)));
  }

  #markChosen() {
    for (const chip of this.chips.children) {
      const chosen = chip.querySelector("bdi").textContent === this.#class;
      chip.ariaPressed = String(chosen);
      if (chosen) chip.scrollIntoView({ block: "nearest", inline: "center" });
    }
  }

  #actionOf(key) {
    const look = this.looks.find((look) => look.key && look.key.toLowerCase() === key);
    if (look) return () => this.#choose(look.name);
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns(), ArrowDown: this.#columns() };
    if (key in steps) return () => this.#move(steps[key]);
    const undo = () => this.#undoLast();
    return { Enter: () => this.#confirmRest(), u: undo, Backspace: undo, " ": () => this.#move(0), "?": openHelp }[key];
  }

  /** Enter confirms even when a tile has the focus. */
  #enter(event) {
    if (event.key !== "Enter") return;
    event.preventDefault();
    if (!event.repeat) this.#confirmRest();
  }

  #columns() {
    return getComputedStyle(this.tiles).gridTemplateColumns.split(" ").length;
  }

  #move(step) {
    const tiles = [...this.tiles.querySelectorAll(".tile")];
    const at = tiles.indexOf(document.activeElement);
    tiles[Math.max(0, Math.min(tiles.length - 1, at < 0 ? 0 : at + step))]?.focus();
  }

  #choose(name) {
    if (!name) return this.#say("There are no classes yet.", "done");
    this.#class = name;
    this.#queue = [];
    this.#shown = [];
    this.#known = new Set();
    history.replaceState(null, "", `/grid?${new URLSearchParams({ class: name })}`);
    this.#markChosen();
    this.#say("Looking for items …");
    this.#load();
  }

  async #load() {
    const name = this.#class;
    const asked = performance.now();
    const without = [...this.#left(), ...this.#known].slice(-MOST);
    try {
      const response = await patiently(() => get("/api/grid", { class: name, n: FULL, tab: TAB, page: PAGE, without }));
      if (name === this.#class) this.#received(response, asked);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#say(error.message, "done");
    }
  }

  #received({ items, message }, asked) {
    const left = this.#left();
    const fresh = items.filter(({ item }) => !this.#known.has(item) && !left.includes(item) && !this.#outbox.overtakes(item, asked));
    fresh.forEach(({ item }) => this.#known.add(item));
    fresh.forEach(thumbnail); // starts loading the images
    this.#queue.push(...fresh);
    if (this.#shown.length || this.#outbox.size) return;
    if (this.#queue.length) this.#deal(this.#queue.splice(0, FULL));
    else this.#wait(message || "the model guesses no more items as this class");
  }

  /** Says why there is nothing, and asks again after a while. */
  #wait(message) {
    this.#say(capital(message), "done");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#shown.length || document.hidden || this.#load(), POLL);
  }

  #deal(items) {
    this.#shown = items;
    this.#wrong.clear();
    this.#shownAt = performance.now();
    this.#seen = 0;
    this.#watcher.disconnect();
    this.how.replaceChildren("The model takes these items for ", element("strong", {}, named(this.#class)), ". Mark the wrong ones, then confirm the rest.");
    this.tiles.replaceChildren(...items.map((data) => this.#tile(data)));
    for (const tile of this.tiles.children) this.#watcher.observe(tile);
    this.tiles.firstElementChild.focus({ preventScroll: true });
    scrollTo(0, 0);
    setPhase("ready");
    this.#showConfirm();
    if (!this.#queue.length) this.#load();
  }

  #tile(data) {
    const share = data.probability === undefined ? "" : percent(data.probability);
    const node = element("button", { type: "button", class: "tile", title: isolated(data.id), "aria-pressed": "false",
                                     onclick: () => this.#toggle(data.item, node) },
      thumbnail(data), data.media && element("span", { class: "unseen" }, data.id), element("small", {}, share));
    node.dataset.item = data.item;
    return node;
  }

  #toggle(item, node) {
    const wrong = !this.#wrong.delete(item);
    if (wrong) this.#wrong.add(item);
    node.ariaPressed = String(wrong);
    this.#showConfirm();
  }

  #see(entries) {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) this.#seen = Math.max(this.#seen, [...this.tiles.children].indexOf(target) + 1);
    }
  }

  #scrollOn() {
    this.tiles.children[this.#seen].scrollIntoView({ block: "start", behavior: STILL.matches ? "auto" : "smooth" });
  }

  #confirmRest() {
    if (!this.#shown.length) return;
    if (this.#seen < this.#shown.length) return this.#scrollOn();
    const rest = this.#shown.filter(({ item }) => !this.#wrong.has(item));
    write(sessionStorage, `left:${this.#class}`, [...this.#left(), ...this.#wrong]);
    if (rest.length) this.#send(rest);
    this.#shown = [];
    if (this.#queue.length) return this.#deal(this.#queue.splice(0, FULL));
    this.#say("Looking for items …");
    this.#load();
  }

  #send(rest) {
    const seconds = Math.min(LONGEST, Math.round((performance.now() - this.#shownAt) / 10 / rest.length) / 100);
    const { id } = this.#outbox.add({ event: "label", items: rest.map(({ item }) => item), label: this.#class, seconds });
    this.#undo.push({ id, items: rest, what: this.#class });
    announce(`${counted(rest.length, "item")} labelled ${this.#class}`);
  }

  #undoLast() {
    const step = this.#undo.pop();
    if (!step) return toast("There is nothing to undo.");
    this.#outbox.add({ event: "retract", items: step.items.map(({ item }) => item) });
    if (step.what !== this.#class) this.#choose(step.what);
    this.#queue = [...this.#shown, ...this.#queue];
    this.#deal(step.items);
    announce(`undone: ${counted(step.items.length, "item")}`);
  }

  #left() {
    return read(sessionStorage, `left:${this.#class}`, []);
  }

  #say(sentence, phase = "waiting") {
    setPhase(phase);
    this.how.replaceChildren();
    this.tiles.replaceChildren(element("p", { class: "sentence" }, sentence));
    this.#showConfirm();
  }

  #showConfirm() {
    const rest = this.#shown.length - this.#wrong.size;
    this.confirm.disabled = !this.#shown.length;
    const start = !this.#shown.length ? "Confirm" : rest ? `Confirm ${count(rest)} as\u00a0` : "None is\u00a0";
    this.confirm.replaceChildren(start, this.#shown.length ? named(this.#class) : "", keyCap("enter"));
    this.undoButton.disabled = !this.#undo.last;
  }
}
