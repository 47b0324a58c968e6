// What surrounds every view: header, messages, help.

import { byId, button, element, isolated, keyCap, named } from "./elements.js";
import { watchState } from "./state.js";
import { count, counted, person } from "./words.js";

const LOCKED = "This page is locked. Please open the link from the terminal again. Your answers are kept.";
const TOAST = 6000; // ms

let hiding = 0;

export function startShell(view, outbox) {
  document.querySelector(`[data-link="${view}"]`)?.setAttribute("aria-current", "page");
  outbox.addEventListener("change", () => showSending(outbox));
  outbox.addEventListener("refused", ({ detail }) => toast(`An answer was not saved: ${detail.error.message}`));
  watchState(() => showSending(outbox));
}

export function showStatus(status) {
  const others = status.now.map(({ who }) => who).filter((who) => who !== status.who);
  byId("project").replaceChildren(named(status.project));
  document.title = `${isolated(status.project)} · balent label`;
  showResolve(status);
  showCounts(status.labelled, status.items);
  showAccuracy(status.audit.sentence);
  showNow(others);
}

export function showCounts(labelled, items) {
  byId("labelled").textContent = `${count(labelled)} of ${count(items)} labelled`;
  byId("done").max = items || 1;
  byId("done").value = labelled;
}

export function showResolve({ disagreements }) {
  document.querySelector('[data-link="resolve"]').hidden = !disagreements;
}

export function showAccuracy(sentence) {
  byId("accuracy").textContent = sentence;
  byId("accuracy").title = sentence;
}

/** Other people who label now. */
export function showNow(people) {
  const names = people.slice(0, 2).map((who) => isolated(person(who))).join(", ");
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

/** rows: [[keys, what they do], …] */
export function fillHelp(rows) {
  const dialog = byId("help");
  const lines = rows.map(([keys, what]) => element("div", {}, element("dt", {}, keys.map(keyCap)), element("dd", {}, what)));
  dialog.replaceChildren(
    element("h2", { id: "help-title" }, "Keys"), element("dl", {}, lines),
    button({ class: "quiet", onclick: () => dialog.close() }, "Close", keyCap("Esc")));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}

export function openHelp() {
  byId("help").showModal();
}

function showSending(outbox) {
  const { state } = document.body.dataset;
  document.body.dataset.unsent = outbox.size;
  byId("sending").textContent = state !== "offline" ? "" :
    outbox.size ? `${counted(outbox.size, "answer waits", "answers wait")} for the connection` : "no connection";
  byId("banner").textContent = state === "locked" ? LOCKED : "";
  byId("banner").hidden = state !== "locked";
}
