// Requests to the server: JSON in, JSON out.
//
// There are two kinds of failure. Refused carries the server's sentence and will not work by trying again, except 401,
// which ends when the link from the terminal is opened. Everything else is Unreachable (no network, no answer, 5xx, a
// proxy in the way) and may work later, so that no answer is given up because of it.

import { unturned } from "./elements.js";
import { setConnection } from "./state.js";

const PATIENCE = 15000; // ms until a request without an answer counts as unreachable
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;
const REFUSALS = [400, 401, 404, 409, 413, 415, 422];

class Unreachable extends Error {}

export class Refused extends Error {
  constructor(status, sentence) {
    super(unturned(sentence));
    this.status = status;
  }
}

export const get = (path, query = {}) => call(`${path}?${new URLSearchParams(query)}`);

export function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return call(path, { method: "POST", headers, body: JSON.stringify(body), keepalive: true });
}

/** Sends something from a page that is being closed. */
export function farewell(path, body) {
  navigator.sendBeacon(path, new Blob([JSON.stringify(body)], { type: "application/json" }));
}

/** The result of task(), which is tried until it neither fails for want of a connection nor is locked out. */
export async function patiently(task) {
  for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    try {
      return await task();
    } catch (error) {
      if (!(error instanceof Unreachable) && error.status !== 401) throw error;
    }
    await pause(wait);
  }
}

/** Waits, but no longer than until the browser says that it is online again. */
function pause(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    addEventListener("online", resolve, { once: true });
  });
}

async function call(path, options = {}) {
  const { status, body } = await answer(path, options);
  setConnection(status === 401 ? "locked" : "up");
  if (status !== 200) throw new Refused(status, body.error ?? `the server answered ${status}`);
  return body;
}

async function answer(path, options) {
  try {
    const response = await fetch(path, { ...options, signal: AbortSignal.timeout(PATIENCE) });
    if (!response.ok && !REFUSALS.includes(response.status)) throw new Unreachable();
    return { status: response.status, body: await response.json() };
  } catch {
    setConnection("offline");
    throw new Unreachable("no connection to the server");
  }
}
