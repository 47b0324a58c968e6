// What stands in place of an item when there is none, and what is said about a model that is not ready.

import { element } from "./elements.js";
import { count } from "./words.js";

const MODEL = {
  starting: "the model is starting: these are random checks",
  features: "the model is not ready yet: these are random checks",
  stopped: "the model has stopped",
};

/** response: the last answer to /api/next, or null. */
export function pause(state, response) {
  if (state === "offline") return sentence("No connection. Your answers are kept in this browser.");
  if (state === "done") return finished(response.message || "Every item is labelled");
  const { model, message } = response ?? {};
  return sentence(message || "Looking for the next items …", model?.state === "features" && features(model));
}

export function notice({ state, note }) {
  return [MODEL[state], note].filter(Boolean).join("; ");
}

const sentence = (...content) => element("div", { class: "sentence" }, ...content);

function finished(message) {
  return sentence(element("span", { class: "tick", "aria-hidden": "true" }, "✓"), message, element("a", { href: "/progress" }, "See the progress"));
}

function features({ done, of }) {
  return element("small", {}, `computing features: ${count(done)} of ${count(of)}`,
    element("progress", { max: of || 1, value: done, "aria-label": "Features" }));
}
