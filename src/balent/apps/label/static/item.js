// An item on the page: an image, a text, the row of a table, or only its id.
//
// Images are decoded before they are handed out, so that putting one into the page takes no time. One that cannot be
// loaded is tried again while the connection is down, and otherwise replaced by a sentence.

import { element, isolated, named } from "./elements.js";
import { connected } from "./state.js";
import { capital } from "./words.js";

const ATTEMPTS = 3;
const SHORT = 240; // characters; a short text is shown in large letters
const LEGEND = "one of the words that weigh most for the guess";
const SHARP = 2; // images enlarged at least this much show their pixels; less would only make edges uneven

const MAKERS = { images: imageOf, text: textOf, table: rowOf, features: idOf };

/** {data, node}, where the node of an image is null until it is decoded; `ready` is called at that time. */
export function prepare(data, ready) {
  const made = MAKERS[data.kind](data);
  if (made instanceof Node) return { data, node: made };
  const prepared = { data, node: null };
  made.then((node) => ready(Object.assign(prepared, { node })));
  return prepared;
}

export const mediaOf = (data, size) => `${data.media}${data.media.includes("?") ? "&" : "?"}size=${size}`;

/** A small picture of an item, for lists and grids. */
export function thumbnail(data) {
  if (data.media) return element("img", { src: mediaOf(data, "small"), alt: "", class: "thumbnail", decoding: "async",
                                          onload: ({ target }) => sharpen(target, target.getBoundingClientRect()) });
  return element("span", { class: "thumbnail snippet", dir: "auto" }, excerpt(data, "\n"));
}

/** The beginning of a text or of a row; the id of an item that has neither. */
export function excerpt({ text, columns, id }, separator) {
  const cells = Object.entries(columns ?? {}).map(([name, value]) => `${name}: ${value === null || value === "" ? "–" : value}`);
  return (text ?? (cells.join(separator) || id)).slice(0, 400);
}

export async function decoded(url, alt) {
  const image = element("img", { alt, decoding: "sync", draggable: "false" });
  image.src = url;
  await image.decode();
  return image;
}

/** Shows the pixels of an image that is enlarged; `zoom` is the enlargement beyond fitting the frame. */
export function sharpen(image, frame, zoom = 1) {
  const scale = zoom * Math.min(frame.width / image.naturalWidth, frame.height / image.naturalHeight);
  image.classList.toggle("pixelated", scale >= SHARP);
}

async function imageOf(data) {
  for (let failures = 0; failures < ATTEMPTS; failures += connected() ? 1 : 0) {
    try {
      return await decoded(mediaOf(data, "screen"), `Image ${isolated(data.id)}`);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  return element("p", { class: "sentence" }, capital(await reasonOf(data)));
}

/** Why there is no image, as the server says it. */
async function reasonOf(data) {
  const unknown = "this image cannot be shown; skip or flag it";
  return fetch(mediaOf(data, "screen")).then((response) => response.json()).then(({ error }) => error ?? unknown, () => unknown);
}

/** Marks are counted in code points, while JavaScript's strings count UTF-16 units. */
function textOf(data) {
  const points = Array.from(data.text);
  const text = element("div", { class: points.length < SHORT ? "text short" : "text", tabindex: "0", dir: "auto" });
  let end = 0;
  for (const [from, to] of data.marks ?? []) {
    text.append(points.slice(end, from).join(""), element("mark", { title: LEGEND }, points.slice(from, to).join("")));
    end = to;
  }
  text.append(points.slice(end).join(""));
  return text;
}

function rowOf(data) {
  const cells = Object.entries(data.columns).map(([name, value]) =>
    element("div", {}, element("dt", {}, named(name)), element("dd", {}, value === null || value === "" ? element("span", { class: "missing" }, "–") : named(String(value)))));
  return element("dl", { class: "row", tabindex: "0" }, cells);
}

function idOf(data) {
  return element("p", { class: "sentence" }, named(data.id),
    element("small", {}, "Only the features of this item are known: look at the original to label it."));
}
