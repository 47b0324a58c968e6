// window.balent.timings: how long a person waited, for tests and benchmarks.
//
// One entry per label: {item, shown: ms from the key press to the next item painted, acknowledged: ms to the
// server's 200}; null until known.

const KEPT = 1000;
const open = new Map(); // id of the event -> {entry, pressed}
let unshown = null;

window.balent = { timings: [] };

export function labelled(id, item, pressed) {
  const entry = { item, shown: null, acknowledged: null };
  unshown = { entry, pressed };
  open.set(id, unshown);
  window.balent.timings.push(entry);
  if (window.balent.timings.length > KEPT) window.balent.timings.shift();
}

/** To be called in the task that puts the next item into the page. */
export function shown() {
  const waiting = unshown;
  unshown = null;
  if (waiting) afterPaint(() => (waiting.entry.shown = performance.now() - waiting.pressed));
}

export function acknowledged(id) {
  const { entry, pressed } = open.get(id) ?? {};
  if (entry) entry.acknowledged = performance.now() - pressed;
  open.delete(id);
}

/** A message that is posted in an animation frame arrives after that frame was painted. */
function afterPaint(callback) {
  requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = callback;
    channel.port2.postMessage(null);
  });
}
