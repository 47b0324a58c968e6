// One item after the other: look, press a key, see the next one.
//
// An answer goes into the outbox and the next item onto the screen within the same key press. Nothing here waits for
// the server; when the buffer is empty the page says so and asks again every half second.

import { Buffer } from "./buffer.js";
import { ClassBar } from "./classbar.js";
import { classForm } from "./classform.js";
import { button, byId, element, isolated, keyCap, named } from "./elements.js";
import { excerpt } from "./item.js";
import { listenToKeys } from "./keys.js";
import { pause } from "./pause.js";
import { announce, fillHelp, openHelp, showAccuracy, showCounts, showModel, showNow, showResolve, toast } from "./shell.js";
import { Stage } from "./stage.js";
import { setPhase, watchState } from "./state.js";
import { read, write } from "./storage.js";
import { acknowledged, labelled, shown } from "./timings.js";
import { Undo } from "./undo.js";
import { percent } from "./words.js";

const LONGEST = 300; // seconds; nobody looks at one item for longer
const POLL = 500;
const POLL_DONE = 5000;
const KEEP_ALIVE = 20000;
const AWAY = 60000; // ms without a key: the items of this tab may go to others

const help = (kind, finds) => [
  [["1", "2", "…"], "label as this class and go on", "a class"],
  [["space"], "accept the guess"],
  [["/"], "find a class by its name", finds && "find"],
  [["s"], "skip an item that cannot be labelled", "skip"],
  [["f"], "flag for a second look, and stay", "flag"],
  [["u", "backspace"], "take back the last answer, step by step", "undo"],
  [["n"], "add classes", "new class"],
  kind === "images" ? [["z"], "zoom; drag to move", "pinch, double tap"] : [["↑", "↓"], "scroll"],
  [["?"], "this help"],
];
const NO_CLASSES = "What kinds of items are there? Name at least two classes. You can add and rename classes at any time.";
const ONE_CLASS = "A model needs at least two classes. Please add another one.";

export function start(app) {
  const view = new LabelView(app);
  return (status) => view.update(status);
}

class LabelView {
  #app;
  #current = null;
  #response = null;
  #labelled;
  #shownAt = 0;
  #activeAt = 0;
  #timer = 0;
  #stage = new Stage();
  #undo = new Undo("label");
  #bar = new ClassBar((name, event) => this.#answer("label", event, name));
  #form = classForm((classes, names) => this.#added(classes, names));
  #buffer;

  constructor(app) {
    this.#app = app;
    this.#labelled = app.status.labelled + app.outbox.labels;
    this.#buffer = new Buffer(app.outbox, () => this.#current || this.#advance(), (response) => this.#received(response));
    this.#build();
    this.#listen();
    this.#showUndo();
    this.#buffer.refill();
  }

  update(status) {
    if (status.version !== this.version) this.#showClasses(status.looks, status.version);
    showResolve(status);
  }

  #build() {
    this.why = element("p", { id: "why" });
    this.id = element("p", { id: "file" });
    const about = element("div", { id: "about" }, this.why, this.id);
    this.none = element("p", { id: "no-classes" });
    this.#app.main.replaceChildren(this.#stage.node, about, this.none, this.#form.node, this.#bar.find, this.#bar.node, this.#actions());
    this.#bar.node.classList.toggle("open", read(localStorage, "criteria", false));
    this.#showClasses(this.#app.status.looks, this.#app.status.version);
  }

  #actions() {
    const act = (id, key, action, ...name) =>
      button({ id, class: "quiet", "aria-keyshortcuts": key, onclick: action }, key && keyCap(key), ...name);
    return element("div", { id: "actions", role: "group", "aria-label": "Actions" },
      act("accept", "Space", (event) => this.#accept(event), "accept ", element("bdi", { id: "accept-what" })),
      act("skip", "s", (event) => this.#answer("skip", event), "skip"),
      act("flag", "f", () => this.#flag(), "flag"),
      act("find", "/", () => this.#bar.openFind(), "find"),
      act("new", "n", () => this.#form.open(), "new class"),
      act("closer", "z", () => this.#stage.zoom.toggle(), "zoom"),
      act("criteria", null, () => this.#toggleCriteria(), "criteria"),
      act("keys", "?", openHelp, "help"),
      act("undo", "u", () => this.#undoLast(), "undo ", element("bdi", { id: "undo-what" })));
  }

  #listen() {
    listenToKeys((key) => this.#bar.actionOf(key) ?? this.#actionOf(key));
    this.#app.outbox.addEventListener("acknowledged", ({ detail }) => this.#acknowledged(detail.entry));
    this.#app.outbox.addEventListener("refused", ({ detail }) => this.#refused(detail.entry));
    for (const sign of ["keydown", "pointerdown"]) addEventListener(sign, () => (this.#activeAt = performance.now()));
    setInterval(() => this.#keepAlive(), KEEP_ALIVE);
    watchState((state) => this.#current || this.#stage.say(pause(state, this.#response)));
  }

  #actionOf(key) {
    return {
      " ": (event) => this.#accept(event),
      s: (event) => this.#answer("skip", event),
      f: () => this.#flag(),
      u: () => this.#undoLast(),
      Backspace: () => this.#undoLast(),
      n: () => this.#form.open(),
      "?": openHelp,
    }[key] ?? this.#stage.actionOf(key);
  }

  // Answers

  #accept(event) {
    if (this.#current?.data.guess) this.#answer("label", event, this.#current.data.guess);
  }

  #answer(kind, { timeStamp }, label) {
    if (!this.#current) return;
    const { data } = this.#current;
    const seconds = Math.min(LONGEST, Math.max(0, Math.round((timeStamp - this.#shownAt) / 10) / 100));
    const { id } = this.#app.outbox.add({ event: kind, item: data.item, label, seconds });
    this.#undo.push({ id, event: kind, items: [data], what: label ?? "skip" });
    if (kind === "label") labelled(id, data.item, timeStamp);
    this.#advance();
    this.#count(kind, 1);
    this.#bar.flash(label);
    this.#announce(label ? `labelled ${label}` : "skipped");
    if (this.#buffer.low) this.#buffer.refill();
  }

  /** A flag is a mark: the item stays, and is still to be answered. */
  #flag() {
    if (!this.#current || this.#current.data.flagged) return;
    const { data } = this.#current;
    const { id } = this.#app.outbox.add({ event: "flag", item: data.item });
    this.#undo.push({ id, event: "flag", items: [data], what: "flag" });
    this.#showFlag(true);
  }

  /** Taking back an answer also takes back a flag of the same item. */
  #undoLast() {
    const step = this.#undo.pop();
    if (!step) return toast("There is nothing to undo.");
    const [data] = step.items;
    this.#app.outbox.add({ event: "retract", item: data.item });
    this.#undo.drop(({ event, items }) => event === "flag" && items[0].item === data.item);
    if (step.event !== "flag") this.#again({ ...data, flagged: false });
    else if (this.#current?.data.item === data.item) this.#showFlag(false);
    this.#count(step.event, -1);
    this.#announce(`undone: ${step.what}`);
  }

  /** For those who hear the page: what was done, and what is shown now. */
  #announce(done) {
    const { data } = this.#current ?? {};
    const guess = data?.guess && !data.audit ? `; guess: ${data.guess}, ${percent(data.probability)}` : "";
    announce(`${done}; ${data ? `next: ${data.media ? data.id : excerpt(data, "; ")}${guess}` : "waiting for items"}`);
  }

  #again(data) {
    this.#buffer.putBack(data);
    this.#advance();
  }

  #showFlag(flagged) {
    this.#current.data.flagged = flagged;
    this.#describe(this.#current.data);
    this.#showUndo();
    announce(flagged ? "flagged" : "not flagged");
  }

  #count(kind, change) {
    if (kind === "label") this.#labelled += change;
    this.#showCounts();
    this.#showUndo();
  }

  #acknowledged(entry) {
    acknowledged(entry.id);
    if (this.#buffer.low) this.#buffer.refill();
  }

  #refused(entry) {
    this.#undo.drop(({ id }) => id === entry.id);
    this.#showUndo();
    this.#buffer.refill();
  }

  // Items

  #advance() {
    this.#current = this.#buffer.take();
    if (this.#current) this.#show(this.#current);
    else this.#wait();
  }

  #show(prepared) {
    this.#stage.show(prepared);
    this.#bar.enable(true);
    shown();
    this.#shownAt = performance.now();
    this.#describe(prepared.data);
    setPhase("ready");
  }

  #describe({ id, why, audit, guess, probability, marks, flagged }) {
    const legend = marks?.length ? [" · ", element("mark", {}, "marked"), " words weigh most for the guess"] : [];
    this.why.replaceChildren(audit ? "random check: please decide without help" : why, ...legend);
    this.id.replaceChildren(...(flagged ? [element("span", { class: "badge warn" }, "flagged"), " "] : []), named(id));
    this.id.title = isolated(id);
    this.#bar.guess(audit ? null : guess, probability);
    byId("accept").disabled = audit || !guess;
    byId("accept-what").textContent = audit || !guess ? "the guess" : guess;
  }

  #wait() {
    const done = this.#response?.done;
    this.#describe({ id: "", why: "", guess: null });
    this.#bar.enable(false);
    setPhase(done ? "done" : this.#response ? "waiting" : "starting");
    this.#stage.say(pause(document.body.dataset.state, this.#response));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#current || this.#buffer.refill(), done ? POLL_DONE : POLL);
  }

  #received(response) {
    this.#response = response;
    if (!this.#current) this.#advance();
    if (response.version !== this.version) this.#app.refresh?.();
    showModel(response.model);
    showAccuracy(response.sentence);
    showNow(response.now);
    this.#syncCount(response.labelled + this.#app.outbox.labels);
  }

  /** The server lags behind the keys: its number is taken when it is larger, or when nothing is on its way. */
  #syncCount(known) {
    this.#labelled = this.#app.outbox.size ? Math.max(this.#labelled, known) : known;
    this.#showCounts();
  }

  #showCounts() {
    showCounts(this.#labelled, this.#response?.items_total ?? this.#app.status.items);
  }

  #showUndo() {
    const { last } = this.#undo;
    byId("undo").disabled = !last;
    byId("undo-what").textContent = last?.what ?? "";
  }

  /** Keeps the items of this tab while somebody is here. */
  #keepAlive() {
    if (!document.hidden && performance.now() - this.#activeAt < AWAY) this.#buffer.refill();
  }

  // Classes

  #showClasses(looks, version) {
    this.version = version;
    this.#bar.show(looks);
    this.none.hidden = looks.length > 1;
    this.none.textContent = looks.length ? ONE_CLASS : NO_CLASSES;
    if (!looks.length) this.#form.open();
    fillHelp(help(this.#app.status.kind, this.#bar.needsFind));
    byId("find").hidden = !this.#bar.needsFind;
    byId("closer").hidden = this.#app.status.kind !== "images";
    byId("criteria").hidden = !looks.some((look) => look.note);
    if (this.#current) this.#describe(this.#current.data);
  }

  #added({ looks, version }, names) {
    this.#showClasses(looks, version);
    const keys = looks.filter((look) => names.includes(look.name) && look.key).map(({ name, key }) => `${key} is ${isolated(name)}`);
    toast(`Added. ${keys.join(", ")}`);
  }

  #toggleCriteria() {
    write(localStorage, "criteria", this.#bar.node.classList.toggle("open"));
  }
}
