// Answers on their way to the server: kept in localStorage until they are acknowledged, sent in order, one at a time.
//
// Each answer has a key of its own in localStorage, so that writing one can never overwrite another, whichever page of
// the tab or which other tab has it. The keys sort by time.
//
// Every event has its own id and the server applies an id once, so sending again is harmless. This is why a tab may
// adopt the answers of another tab that seems to be gone (no sign of life for 30 seconds) without asking. An answer
// names its person: those of somebody else who used this browser wait for that person's link.
//
// Events: "change" (the number of answers changed), "acknowledged" {entry}, "refused" {entry, error}.

import { patiently, post } from "./api.js";
import { TAB, keysStarting, randomName, read, remove, write } from "./storage.js";

const HEARTBEAT = 10000;
const ORPHANED = 30000;
const OWN = `outbox:${TAB}:`;
const ANSWERS = ["label", "skip"]; // a flag marks an item, which is still to be answered
const ANSWERED_ELSEWHERE = [404, 409];

let serial = 0;

const itemsOf = (entry) => entry.items ?? [entry.item];

export class Outbox extends EventTarget {
  #entries = [];
  #keys = new Map(); // id of the event -> its key in localStorage
  #acknowledged = new Map(); // item -> time of the last acknowledged answer
  #refused = new Set();
  #sending = false;
  #who;

  constructor(who) {
    super();
    this.#who = who;
    keysStarting(localStorage, OWN).sort().forEach((key) => this.#take(key));
    setInterval(() => this.#beat(), HEARTBEAT);
    this.#beat();
  }

  get size() {
    return this.#entries.length;
  }

  /** Labels that the server does not count yet. */
  get labels() {
    return this.#entries.filter((entry) => entry.event === "label" && !entry.replace).flatMap(itemsOf).length;
  }

  add(event) {
    const entry = { id: randomName(), tab: TAB, who: this.#who, ...event };
    this.#keep(entry);
    this.#changed();
    this.#send();
    return entry;
  }

  /** Whether this item, in an answer to a request of the time `asked`, is out of date: it has been answered since. */
  overtakes(item, asked) {
    const last = this.#entries.findLast((entry) => entry.event !== "flag" && itemsOf(entry).includes(item));
    if (last) return last.event !== "retract";
    return this.#refused.has(item) || this.#acknowledged.get(item) >= asked;
  }

  async #send() {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#entries.length) await this.#sendFirst();
    this.#sending = false;
  }

  async #sendFirst() {
    const entry = this.#entries[0];
    try {
      await patiently(() => post("/api/event", entry));
      this.#settle(entry, "acknowledged");
    } catch (error) {
      this.#settle(entry, "refused", error);
    }
  }

  #settle(entry, outcome, error) {
    this.#entries.shift();
    remove(localStorage, this.#keys.get(entry.id));
    this.#keys.delete(entry.id);
    if (ANSWERS.includes(entry.event)) this.#remember(entry, error);
    this.#changed();
    this.dispatchEvent(new CustomEvent(outcome, { detail: { entry, error } }));
  }

  #remember(entry, error) {
    for (const item of itemsOf(entry)) {
      if (!error) this.#acknowledged.set(item, performance.now());
      else if (ANSWERED_ELSEWHERE.includes(error.status)) this.#refused.add(item);
    }
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }

  #keep(entry) {
    const key = `${OWN}${Date.now()}-${String((serial += 1)).padStart(6, "0")}`;
    write(localStorage, key, entry);
    this.#entries.push(entry);
    this.#keys.set(entry.id, key);
  }

  #take(key) {
    const entry = read(localStorage, key, null);
    if ((entry?.who ?? this.#who) !== this.#who) return;
    if (entry) this.#keep({ ...entry, who: this.#who });
    remove(localStorage, key);
  }

  #beat() {
    write(localStorage, `alive:${TAB}`, Date.now());
    keysStarting(localStorage, "outbox:").sort().filter(isOrphan).forEach((key) => this.#take(key));
    keysStarting(localStorage, "alive:").filter(isOrphan).forEach((key) => remove(localStorage, key));
    this.#changed();
    this.#send();
  }
}

function isOrphan(key) {
  const [, tab] = key.split(":");
  return Date.now() - read(localStorage, `alive:${tab}`, 0) > ORPHANED;
}
