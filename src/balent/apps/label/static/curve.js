// The learning curve: accuracy on random checks over the number of labels, with its interval as a band.

import { svg } from "./elements.js";
import { count, percent, range } from "./words.js";

const HEIGHT = 280;
const MARGIN = { left: 48, right: 16, top: 12, bottom: 40 };
const LETTERS = 70; // px that a number on the lower axis needs

/** A picture of the given width. points: [{labels, right, of, low, high}, …], at least one; goal: the accuracy to reach, or 0. */
export function curve(points, goal, width) {
  const most = Math.max(...points.map((point) => point.labels));
  const x = (labels) => MARGIN.left + (labels / most) * (width - MARGIN.left - MARGIN.right);
  const y = (share) => MARGIN.top + (1 - share) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const at = (share) => (point) => `${x(point.labels)},${y(share(point))}`;
  const high = points.map(at((point) => point.high));
  const low = points.map(at((point) => point.low)).reverse();
  return svg("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": summary(points.at(-1)) },
    levels(y, width), ticks(most, x, width), goal > 0 && target(goal, y, width),
    svg("polygon", { class: "band", points: [...high, ...low].join(" ") }),
    svg("polyline", { class: "line", points: points.map(at(accuracy)).join(" ") }),
    points.map((point) => dot(point, x, y)));
}

const accuracy = ({ right, of }) => right / of;

const summary = (point) => `Learning curve: after ${count(point.labels)} labels, accuracy ${percent(accuracy(point))}, interval ${range(point)}`;

function dot(point, x, y) {
  const [cx, cy] = [x(point.labels), y(accuracy(point))];
  const bar = svg("line", { class: "interval", x1: cx, x2: cx, y1: y(point.low), y2: y(point.high) });
  const said = svg("title", {}, `${count(point.labels)} labels: right on ${count(point.right)} of ${count(point.of)} (${range(point)})`);
  return svg("g", { class: "point" }, said, svg("circle", { class: "reach", cx, cy, r: 14 }), bar, svg("circle", { cx, cy, r: 3.5 }));
}

function levels(y, width) {
  return [0, 0.25, 0.5, 0.75, 1].map((share) => svg("g", {},
    svg("line", { class: "level", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(share), y2: y(share) }),
    svg("text", { x: MARGIN.left - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share))));
}

function target(goal, y, width) {
  const above = y(goal) - 6 > MARGIN.top + 8 ? -6 : 16;
  return svg("g", { class: "target" }, svg("line", { x1: MARGIN.left, x2: width - MARGIN.right, y1: y(goal), y2: y(goal) }),
    svg("text", { x: MARGIN.left + 6, y: y(goal) + above }, `target ${percent(goal)}`));
}

function ticks(most, x, width) {
  const step = roundStep(most / Math.max(2, Math.floor(width / LETTERS / 1.5)));
  const marks = Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
  return [
    ...marks.map((labels) => svg("text", { x: x(labels), y: HEIGHT - 22, "text-anchor": "middle" }, count(labels))),
    svg("text", { class: "axis", x: width - MARGIN.right, y: HEIGHT - 4, "text-anchor": "end" }, "labels"),
  ];
}

/** The next 1, 2 or 5 times a power of ten. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
}
