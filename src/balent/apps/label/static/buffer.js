// The next items: leased from the server, decoded ahead, handed out without a wait.
//
// The server's answer is the truth about what this tab holds, with two exceptions: items that were answered while the
// request was under way, and items that were just undone, which come first until they are answered again.

import { get, patiently } from "./api.js";
import { prepare } from "./item.js";
import { PAGE, TAB } from "./storage.js";

const FULL = 8;
const LOW = 6;
const MOST = 24;
const REMEMBERED = 16; // items that were shown, for undo without a wait

export class Buffer {
  #items = [];
  #recent = [];
  #outbox;
  #ready;
  #answered;
  #shown = null;
  #fetching = false;

  /** ready() is called when an item can be taken, answered(response) after every answer of the server. */
  constructor(outbox, ready, answered) {
    this.#outbox = outbox;
    this.#ready = ready;
    this.#answered = answered;
  }

  /** The first item that can be shown, or null. */
  take() {
    const waitsForUndone = this.#items[0]?.undone && !this.#items[0].node;
    const index = waitsForUndone ? -1 : this.#items.findIndex((prepared) => prepared.node);
    this.#shown = index < 0 ? null : this.#items.splice(index, 1)[0];
    if (this.#shown) this.#recent = [this.#shown, ...this.#recent].slice(0, REMEMBERED);
    return this.#shown;
  }

  /** Puts an item in front, before the one on the screen. */
  putBack(data) {
    const again = this.#recent.find((prepared) => prepared.data.item === data.item) ?? this.#prepare(data);
    Object.assign(again, { data, undone: true });
    this.#items = [again, this.#shown, ...this.#items].filter((prepared) => prepared);
    this.#shown = null;
  }

  get low() {
    return this.#items.length + (this.#shown ? 1 : 0) < LOW;
  }

  async refill() {
    if (this.#fetching) return;
    this.#fetching = true;
    const { asked, response } = await patiently(() => this.#ask());
    this.#fetching = false;
    this.#merge(response.items, asked);
    this.#answered(response);
  }

  /** Answers that are on their way count as unanswered for the server: more are asked for in their place. */
  async #ask() {
    const asked = performance.now();
    const n = Math.min(FULL + this.#outbox.size, MOST);
    return { asked, response: await get("/api/next", { n, tab: TAB, page: PAGE }) };
  }

  #merge(items, asked) {
    const undone = this.#items.filter((prepared) => prepared.undone);
    const here = new Set([this.#shown, ...undone].map((prepared) => prepared?.data.item));
    const fresh = items.filter(({ item }) => !here.has(item) && !this.#outbox.overtakes(item, asked));
    this.#items = [...undone, ...fresh.map((data) => this.#renewed(data) ?? this.#prepare(data))];
  }

  /** An item that is decoded already, with the newest guess. */
  #renewed(data) {
    const known = this.#items.find((prepared) => prepared.data.item === data.item);
    if (known && data.kind !== "images") return null;
    return known && Object.assign(known, { data });
  }

  #prepare(data) {
    return prepare(data, () => this.#ready());
  }
}
