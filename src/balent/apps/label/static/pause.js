// What stands in place of an item when there is none.

import { element } from "./elements.js";
import { capital, count } from "./words.js";

/** response: the last answer to /api/next, or null. */
export function pause(state, response) {
  if (state === "offline") return sentence("No connection. Your answers are kept in this browser and sent later.", element("small", {}, "If balent label has ended, run the same command again: this page goes on by itself."));
  if (state === "done") return finished(response.message || "every item is labelled");
  const { model, message } = response ?? {};
  return sentence(capital(message || "looking for the next items …"), model?.state === "features" && features(model));
}

/** Nothing is left to do: a sentence, and where to go from here. */
export function finished(message) {
  return sentence(element("span", { class: "tick", "aria-hidden": "true" }, "✓"), element("strong", {}, capital(message)),
    element("p", { class: "links" }, element("a", { class: "chip", href: "/progress" }, "See the progress"),
      element("a", { class: "chip", href: "/history" }, "Look through the labels")));
}

const sentence = (...content) => element("div", { class: "sentence" }, ...content);

function features({ done, of }) {
  return element("small", {}, `computing features: ${count(done)} of ${count(of)}`,
    element("progress", { max: of || 1, value: done, "aria-label": "Features" }));
}
