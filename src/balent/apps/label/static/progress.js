// How far the work is: accuracy, learning curve, classes, people, advice, downloads.

import { curve } from "./curve.js";
import { element, named } from "./elements.js";
import { listenToKeys } from "./keys.js";
import { fillHelp, openHelp } from "./shell.js";
import { setPhase } from "./state.js";
import { capital, count, counted, kappaWord, percent, person, range } from "./words.js";

const TOO_FEW = "too few random checks yet";
const FEW_ITEMS = 10; // that two people have both labelled: kappa says little

export function start({ status, main }) {
  const columns = (status) => element("div", { class: "columns" },
    [advice, classes, people, suspicious, leftOut, downloads].map((section) => section(status)));
  const show = (status) => main.replaceChildren(...[accuracy, learning, columns].map((part) => part(status)).filter(Boolean));
  listenToKeys((key) => ({ "?": openHelp })[key]);
  fillHelp([[["?"], "this help"]]);
  show(status);
  setPhase("ready");
  return (status) => main.contains(document.activeElement) || show(status);
}

function section(title, ...content) {
  return element("section", { class: "card" }, element("h3", {}, title), ...content);
}

function accuracy({ audit, labelled, items, skipped, flagged, rate, counted: included, model }) {
  const facts = [
    [count(labelled), `of ${count(items)} labelled`], [count(skipped), "skipped"], [count(flagged), "flagged"],
    [count(audit.answered), audit.skipped ? `random checks (${count(audit.skipped)} skipped)` : "random checks"],
    rate !== null && [count(Math.round(rate)), "labels per minute"], [count(model.rounds), "rounds of training"],
  ].filter(Boolean);
  const [sentence, ...more] = (audit.sentence || TOO_FEW).replaceAll("–", "\u2060–\u2060").split("; "); // no line break in a range
  return element("section", { class: "card lead" }, element("p", { class: "over" }, "Accuracy"), element("h2", {}, sentence),
    element("p", { class: "hint" }, more.join("; ")),
    element("dl", { class: "facts" }, facts.map(([number, what]) => element("div", {}, element("dt", {}, what), element("dd", {}, number)))),
    included < labelled && element("p", { class: "hint" }, `computed with ${counted(included, "label")}; the newest follow shortly`));
}

function advice({ advice }) {
  return advice.length > 0 && section("Advice", element("ul", {}, advice.map((sentence) => element("li", {}, capital(sentence)))));
}

function learning({ curve: points, goal }) {
  if (!points.length) return null;
  const plot = element("div", { class: "plot" });
  new ResizeObserver(([{ contentRect }]) => plot.replaceChildren(curve(points, goal, Math.max(240, contentRect.width)))).observe(plot);
  return section("Learning curve", plot, element("p", { class: "hint" }, "accuracy on random checks, with its interval"));
}

function classes({ classes, recall, looks }) {
  const most = Math.max(1, ...Object.values(classes));
  const known = Object.keys(recall).length > 0;
  const rows = looks.map(({ name }) => {
    const labels = classes[name] ?? 0;
    const bar = element("span", { class: "bar" });
    bar.style.width = `${(100 * labels) / most}%`;
    return element("li", {}, element("a", { href: `/history?${new URLSearchParams({ class: name })}` }, named(name)),
      element("span", { class: "track" }, bar), element("span", { class: "number" }, count(labels)),
      known && element("span", { class: "recall", title: "share of this class that the model finds" }, recall[name] ? `recall ${range(recall[name])}` : ""));
  });
  return section("Classes", element("ul", { class: known ? "bars with-recall" : "bars" }, rows));
}

function people({ people, now, agreement, disagreements }) {
  if (![...Object.keys(people), ...now.map(({ who }) => who)].some(Boolean)) return null; // somebody alone knows
  const here = new Set(now.map(({ who }) => who ?? ""));
  const rows = Object.entries(people).map(([who, labels]) => element("li", {}, element("span", {}, named(person(who))),
    here.has(who) && element("span", { class: "badge good" }, "here now"), element("span", { class: "number" }, counted(labels, "label"))));
  const pairs = agreement.map(({ people, items, kappa }) => element("li", {},
    element("span", {}, named(person(people[0])), " and ", named(person(people[1]))),
    element("span", { class: "number" }, kappa === null || items < FEW_ITEMS ? "too few yet" : `κ ${kappa.toFixed(2)}, ${kappaWord(kappa)}`,
      ` (${counted(items, "item")})`)));
  return section("People", element("ul", { class: "lines" }, rows),
    pairs.length > 0 && [element("h4", {}, "Agreement"), element("ul", { class: "lines" }, pairs)],
    disagreements > 0 && element("p", {}, element("a", { class: "chip", href: "/resolve" }, `Resolve ${counted(disagreements, "disagreement")}`)));
}

function suspicious({ suspicious }) {
  if (!suspicious.length) return null;
  const rows = suspicious.map(({ id, label, guess, probability }) => element("li", {}, element("span", { class: "id" }, named(id)),
    element("span", { class: "number" }, named(label), " → ", named(guess), ` ${percent(probability)}`)));
  return section("Labels to look at again", element("ul", { class: "lines" }, rows),
    element("p", {}, element("a", { class: "chip", href: "/history?show=suspicious" }, "Look at them")));
}

function leftOut({ left_out: some, left_out_total: total }) {
  if (!total) return null;
  const rows = some.slice(0, 8).map(({ id, reason }) => element("li", {}, element("span", { class: "id" }, named(id)), element("span", { class: "number" }, reason)));
  return section(`Left out: ${counted(total, "file")}`, element("ul", { class: "lines" }, rows), total > 8 && element("p", { class: "hint" }, "and others"));
}

function downloads({ formats }) {
  const links = formats.map((format) =>
    element("a", { class: "chip", href: `/api/export?${new URLSearchParams({ format })}`, download: true }, format));
  return section("Download the labels", element("p", { class: "downloads" }, links));
}
