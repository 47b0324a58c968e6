// The state of the page, one word in <body data-state>.
//
// Two things decide it: the connection (up, offline, locked) and what the view is doing (starting, ready, waiting,
// done). A broken connection hides the second, because it is what a person has to know first.

let connection = "up";
let phase = "starting";
const watchers = [];

export const connected = () => connection === "up";

export function setConnection(value) {
  connection = value;
  publish();
}

export function setPhase(value) {
  phase = value;
  publish();
}

/** Calls watcher(state) now and after every change. */
export function watchState(watcher) {
  watchers.push(watcher);
  watcher(document.body.dataset.state);
}

function publish() {
  const state = connection === "up" ? phase : connection;
  if (state === document.body.dataset.state) return;
  document.body.dataset.state = state;
  watchers.forEach((watcher) => watcher(state));
}
