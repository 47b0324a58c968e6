// What has been answered, newest first: search, label again, retract.
//
// A change is shown at once and sent by the outbox; a row that has changed stays where it is until the list is loaded again.

import { get, patiently } from "./api.js";
import { button, element, isolated, named } from "./elements.js";
import { excerpt, thumbnail } from "./item.js";
import { listenToKeys } from "./keys.js";
import { fillHelp, openHelp } from "./shell.js";
import { setPhase } from "./state.js";
import { ago, counted, percent } from "./words.js";

const PAGE = 60;
const TYPING = 200; // ms of silence before a search is sent
const SHOW = { all: "all", labelled: "labelled", skipped: "skipped", flagged: "flagged", suspicious: "look again", changed: "changed", mine: "mine" };
const HELP = [[["/"], "search"], [["?"], "this help"]];
const NONE = "Nothing has been labelled yet.";
const NO_FIT = "Nothing fits.";

export function start({ status, outbox, main }) {
  const query = { q: "", show: "all", class: "", who: "", ...Object.fromEntries(new URLSearchParams(location.search)) };
  let { looks } = status;
  let seen = new Set();
  let request = 0;

  const search = element("input", { type: "search", placeholder: "search names and texts", "aria-label": "Search", value: query.q, oninput: typed });
  const chips = element("div", { id: "chips", role: "group", "aria-label": "Show" });
  const list = element("ol", { id: "history" });
  const total = element("p", { class: "total", role: "status" });
  const more = button({ class: "quiet", onclick: load, hidden: true }, "show more");
  main.replaceChildren(element("div", { id: "filters" }, search, chips), total, list, more);
  listenToKeys((key) => ({ "/": () => search.focus(), "?": openHelp })[key]);
  fillHelp(HELP);
  new IntersectionObserver(([entry]) => entry.isIntersecting && load(), { rootMargin: "600px" }).observe(more);
  let typing = 0;
  reload();

  function typed() {
    clearTimeout(typing);
    typing = setTimeout(() => change({ q: search.value }), TYPING);
  }

  function change(part) {
    Object.assign(query, part);
    const told = Object.entries(query).filter(([, value]) => value && value !== "all");
    history.replaceState(null, "", `/history?${new URLSearchParams(told)}`);
    reload();
  }

  function reload() {
    seen = new Set();
    request += 1;
    showChips();
    load();
  }

  async function load() {
    const mine = ++request;
    more.hidden = true;
    const from = seen.size;
    const response = await patiently(() => get("/api/history", { ...query, from, n: PAGE }));
    if (mine === request) show(response, from);
  }

  /** Rows that new answers have pushed onto the next page come twice; they are shown once. */
  function show({ items, total: number }, from) {
    const fresh = items.filter(({ item }) => !seen.has(item)).map(row);
    items.forEach(({ item }) => seen.add(item));
    if (from) list.append(...fresh);
    else list.replaceChildren(...fresh);
    const narrowed = Object.values(query).some((value) => value && value !== "all");
    total.textContent = number ? counted(number, "item") : narrowed ? NO_FIT : NONE;
    more.hidden = !items.length || seen.size >= number;
    setPhase("ready");
  }

  function showChips() {
    const shows = Object.entries(SHOW).map(([show, name]) => chip(name, query.show === show, () => change({ show })));
    const narrowed = ["class", "who"].filter((part) => query[part])
      .map((part) => chip([named(query[part]), " ✕"], true, () => change({ [part]: "" })));
    chips.replaceChildren(...shows, ...narrowed);
  }

  function chip(name, chosen, choose) {
    return button({ class: "chip", "aria-pressed": String(chosen), onclick: choose }, name);
  }

  function row(data) {
    const title = data.media ? element("p", { class: "id", title: isolated(data.id) }, named(data.id)) :
      element("p", { class: "excerpt", dir: "auto", title: isolated(data.id) }, excerpt(data, " · "));
    const node = element("li", {}, data.media && thumbnail(data),
      element("div", { class: "what" }, title, element("p", { class: "details" }, details(data))),
      element("div", { class: "change" }, classChoice(data), retractButton(data)));
    node.dataset.item = data.item;
    return node;
  }

  function details(data) {
    const { suspicious } = data;
    const time = element("time", { datetime: data.when, title: new Date(data.when).toLocaleString() }, ago(data.when));
    return [
      element("span", {}, data.who && [named(data.who), ", "], time),
      data.skipped && element("span", { class: "badge" }, "skipped"),
      data.flagged !== null && element("span", { class: "badge warn" }, "flagged", data.flagged && ": ", named(data.flagged)),
      suspicious && element("span", { class: "badge warn" }, "look again: the model says ", named(suspicious.guess),
        ` ${percent(suspicious.probability)}`),
      data.audit && element("span", { class: "badge" }, "random check"),
      data.disagree && element("span", { class: "badge warn" }, "people disagree"),
      data.changed && element("span", { class: "badge warn" }, "the file has changed since"),
      data.corrected && element("span", { class: "badge good" }, "corrected"),
    ];
  }

  function classChoice(data) {
    const options = looks.map(({ name }) => element("option", { value: name, selected: name === data.label }, isolated(name)));
    const none = !data.label && element("option", { value: "", selected: true, disabled: true }, "no label");
    return element("select", { "aria-label": `Class of ${isolated(data.id)}`, onchange: ({ target }) => relabel(data, target.value) }, none, options);
  }

  function relabel(data, label) {
    outbox.add({ event: "label", item: data.item, label, replace: true });
    replace({ ...data, label, skipped: false, flagged: null, suspicious: null, changed: false, disagree: false, corrected: true, who: status.who, when: new Date().toISOString() });
  }

  function replace(data) {
    const old = list.querySelector(`[data-item="${data.item}"]`);
    old.replaceWith(row(data));
  }

  function retractButton(data) {
    const name = data.flagged !== null && !data.label ? "unflag" : "retract";
    return button({ class: "quiet", "aria-label": `${name} ${isolated(data.id)}`, onclick: () => retract(data) }, name);
  }

  function retract({ item }) {
    outbox.add({ event: "retract", item });
    const old = list.querySelector(`[data-item="${item}"]`);
    old.classList.add("retracted");
    old.querySelector(".change").replaceChildren("retracted: it will be asked again");
  }

  return (status) => ({ looks } = status);
}
