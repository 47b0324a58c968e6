// Elements of the page: made here, and only here.
//
// Text becomes a text node, never markup. Names that people gave (files, classes, people) go into <bdi>, so that
// right-to-left characters cannot reorder their surroundings; in attributes and options, isolating characters do the same.

const RIGHT_TO_LEFT = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc]/;
const SVG = "http://www.w3.org/2000/svg";

export const byId = (id) => document.getElementById(id);

/** An element; attributes named on… are listeners, children that are null or false are left out. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A name in the text of the page. */
export const named = (name) => element("bdi", {}, name);

/** A name in an attribute, an option or the title of the window. */
export const isolated = (name) => (RIGHT_TO_LEFT.test(name) ? `\u2068${name}\u2069` : name);

/** A sentence that the server made: names in it cannot be told from the rest, so marks that turn the direction are shown. */
export const unturned = (sentence) => sentence.replace(/[\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

export const keyCap = (key) => element("kbd", { "aria-hidden": "true" }, key);

/** A button that gives the focus back after a click, so that the next key belongs to the page again. */
export function button(attributes, ...children) {
  const node = element("button", { type: "button", ...attributes }, ...children);
  node.addEventListener("click", (event) => event.detail > 0 && node.blur());
  return node;
}
