// Disagreements, one after the other: who said what, and a key press decides.
//
// Going back shows the last item again, to be decided anew: a later decision counts. What people said before is kept.

import { get, patiently } from "./api.js";
import { ClassBar } from "./classbar.js";
import { button, element, keyCap, named } from "./elements.js";
import { prepare } from "./item.js";
import { listenToKeys } from "./keys.js";
import { finished } from "./pause.js";
import { announce, fillHelp, openHelp, toast } from "./shell.js";
import { Stage } from "./stage.js";
import { setPhase } from "./state.js";
import { ago, counted, person } from "./words.js";

const help = (kind) => [
  [["1", "2", "…"], "decide for this class and go on", "a class"],
  [["/"], "find a class by its name"],
  [["s"], "leave it for later", "later"],
  [["u", "backspace"], "decide the last one again", "back"],
  kind === "images" ? [["z"], "zoom; drag to move", "pinch, double tap"] : [["↑", "↓"], "scroll"],
  [["?"], "this help"],
];

export function start({ status, outbox, main }) {
  const stage = new Stage();
  const answers = element("div", { id: "about" });
  const bar = new ClassBar((name) => decide(name));
  const past = []; // what was decided here, the last one last
  const undo = button({ id: "undo", class: "quiet", "aria-keyshortcuts": "u", onclick: back }, keyCap("u"), "back");
  let queue = [];

  main.replaceChildren(stage.node, answers, bar.find, bar.node, element("div", { id: "actions" },
    button({ id: "skip", class: "quiet", "aria-keyshortcuts": "s", onclick: later }, keyCap("s"), "later"), undo,
    button({ class: "quiet", "aria-keyshortcuts": "?", onclick: openHelp }, keyCap("?"), "help")));
  bar.show(status.looks);
  fillHelp(help(status.kind));
  listenToKeys((key) => bar.actionOf(key) ?? { s: later, u: back, Backspace: back, "?": openHelp }[key] ?? stage.actionOf(key));
  load();

  async function load() {
    const asked = performance.now();
    const { items } = await patiently(() => get("/api/disagreements"));
    queue = items.filter(({ item }) => !outbox.overtakes(item, asked)).map((data) => prepare(data, show));
    show();
  }

  function show() {
    const [first] = queue;
    setPhase(first ? (first.node ? "ready" : "waiting") : "done");
    bar.enable(Boolean(first));
    undo.disabled = !past.length;
    if (!first) stage.say(finished("there are no disagreements"));
    else if (first.node) stage.show(first);
    answers.replaceChildren(...(first ? describe(first.data) : []));
  }

  function describe(data) {
    const said = data.answers.map(({ who, label, when }) =>
      element("span", { class: "said" }, named(person(who)), " said ", element("strong", {}, named(label)),
        element("small", {}, ` ${ago(when)}`)));
    const left = ` · ${counted(queue.length, "disagreement")}`;
    return [element("p", { id: "why" }, said), element("p", { id: "file" }, named(data.id), left)];
  }

  function decide(label) {
    if (!queue[0]?.node) return;
    const [decided] = queue.splice(0, 1);
    const { data } = decided;
    past.push(decided);
    outbox.add({ event: "resolve", item: data.item, label });
    bar.flash(label);
    announce(`decided: ${label}`);
    show();
  }

  function back() {
    if (!past.length) return toast("There is nothing to go back to.");
    queue.unshift(past.pop());
    announce("decide the last one again");
    show();
  }

  function later() {
    queue.push(...queue.splice(0, 1));
    show();
  }

  return (status) => bar.show(status.looks);
}
