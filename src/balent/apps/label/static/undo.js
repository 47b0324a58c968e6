// What can be undone: a stack that survives a reload, one per view and tab.

import { read, write } from "./storage.js";

const STEPS = 200;

export class Undo {
  #key;
  #stack;

  constructor(view) {
    this.#key = `undo:${view}`;
    this.#stack = read(sessionStorage, this.#key, []);
  }

  get last() {
    return this.#stack.at(-1);
  }

  /** step: {id of the event, items: what was shown, what: the answer in words} */
  push(step) {
    this.#stack = [...this.#stack.slice(1 - STEPS), step];
    this.#save();
  }

  pop() {
    const step = this.#stack.pop();
    this.#save();
    return step;
  }

  /** Forgets steps that cannot be undone any more. */
  drop(isGone) {
    this.#stack = this.#stack.filter((step) => !isGone(step));
    this.#save();
  }

  /** Long texts may fill the storage; the older half is given up then. */
  #save() {
    while (!write(sessionStorage, this.#key, this.#stack) && this.#stack.length) {
      this.#stack.splice(0, Math.ceil(this.#stack.length / 2));
    }
  }
}
