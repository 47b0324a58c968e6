// What surrounds every view: header, messages, help.

import { byId, button, element, isolated, named, unturned } from "./elements.js";
import { watchState } from "./state.js";
import { count, counted } from "./words.js";

const LOCKED = "This page is locked. Please open your link again: the one from the terminal, or the one that you were sent. Your answers are kept.";
const STOPPED = "The model has stopped. Labelling goes on with random checks.";
const MODEL = {
  starting: () => "the model is starting",
  features: ({ done, of }) => `computing features: ${count(done)} of ${count(of)}`,
};
const TOAST = 6000; // ms
const TOUCH = matchMedia("(pointer: coarse) and (hover: none)");

let hiding = 0;
let model = { state: "ready", note: "" };

export function startShell(view, outbox) {
  document.querySelector(`[data-link="${view}"]`)?.setAttribute("aria-current", "page");
  outbox.addEventListener("change", () => showState(outbox.size));
  outbox.addEventListener("refused", ({ detail }) => toast(`An answer was not saved: ${detail.error.message}`));
  watchState((state) => {
    showState(outbox.size);
    announce(state === "offline" ? "No connection. Your answers are kept." : "");
  });
  byId("help").addEventListener("click", ({ target }) => target === byId("help") && target.close());
}

export function showStatus(status) {
  const others = status.now.map(({ who }) => who).filter((who) => who !== status.who);
  byId("project").replaceChildren(named(status.project), status.who ? element("small", {}, named(status.who)) : "");
  document.title = `${isolated(status.project)} · balent label`;
  showResolve(status);
  showCounts(status.labelled, status.items);
  showAccuracy(status.audit.sentence);
  showModel(status.model);
  showNow(others);
}

export function showCounts(labelled, items) {
  byId("labelled").textContent = `${count(labelled)} of ${count(items)} labelled`;
  byId("done").max = items || 1;
  byId("done").value = labelled;
}

export function showResolve({ disagreements }) {
  document.querySelector('[data-link="resolve"]').hidden = !disagreements && document.body.dataset.view !== "resolve";
}

export function showAccuracy(sentence) {
  const [short, more] = sentence.split("; ");
  byId("accuracy").textContent = short.replace(/^(too few|no figure) yet/, "accuracy");
  byId("accuracy").title = more ?? "";
}

/** What the model does now; something that it has to say is said once. */
export function showModel(now) {
  const note = unturned(now.note);
  if (note && note !== model.note && now.state !== "stopped") toast(note);
  model = { ...now, note };
  showState(Number(document.body.dataset.unsent));
}

/** Other people who label now. */
export function showNow(people) {
  const names = people.slice(0, 2).map((who) => (who ? isolated(who) : "another tab")).join(", ");
  const more = people.length > 2 ? ` and ${count(people.length - 2)} more` : "";
  byId("now").textContent = people.length ? `${names}${more} ${people.length > 1 ? "label" : "labels"} now` : "";
}

export function toast(sentence) {
  const node = byId("toast");
  node.textContent = sentence;
  node.classList.add("shown");
  clearTimeout(hiding);
  hiding = setTimeout(() => node.classList.remove("shown"), TOAST);
}

/** Says something to a screen reader. */
export function announce(sentence) {
  byId("announce").textContent = sentence;
}

/** rows: [[keys, what they do, the same by touch], …]; a row without the last one is for keyboards only. */
export function fillHelp(rows) {
  const known = TOUCH.matches ? rows.filter(([, , touch]) => touch) : rows;
  const lines = known.map(([keys, what, touch]) =>
    element("div", {}, element("dt", {}, TOUCH.matches ? touch : keys.map((key) => element("kbd", {}, key))), element("dd", {}, what)));
  byId("help").replaceChildren(
    element("h2", { id: "help-title" }, TOUCH.matches ? "Help" : "Keys"), element("dl", {}, lines),
    button({ class: "quiet", onclick: () => byId("help").close() }, "Close", element("kbd", { "aria-hidden": "true" }, "Esc")));
}

export function openHelp() {
  byId("help").showModal();
}

function showState(unsent) {
  const { state } = document.body.dataset;
  const waiting = unsent ? `no connection: ${counted(unsent, "answer")} kept` : "no connection";
  document.body.dataset.unsent = unsent;
  byId("state").textContent = state === "offline" ? waiting : MODEL[model.state]?.(model) ?? "";
  const problem = state === "locked" ? LOCKED : model.state === "stopped" ? model.note || STOPPED : "";
  if (byId("banner").textContent !== problem) byId("banner").textContent = problem;
  byId("banner").hidden = !problem;
}
