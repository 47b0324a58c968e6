"use strict";
// Draws the page's JSON. One object for each experiment; text only through textContent.

const MARGIN = { left: 62, right: 14, top: 12, bottom: 44 };
const SVG = "http://www.w3.org/2000/svg";
const PERCENT = new Set(["accuracy"]);

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** A strategy's colours, for a light and for a dark background: page.css chooses. */
function toned(node, { light, dark }) {
  node.classList.add("toned");
  node.style.setProperty("--light", light);
  node.style.setProperty("--dark", dark);
  return node;
}

/** About `count` round numbers that span [low, high]. */
function ticks(low, high, count) {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

const shown = (metric, value) => (PERCENT.has(metric) ? `${(100 * value).toFixed(1)} %` : value.toPrecision(3));

/** Learning curves: a metric chosen by radio buttons, strategies by the legend, a label count by pointer or arrow keys. */
class Chart {
  constructor(section, group) {
    this.group = group;
    this.clip = `clip-${section.dataset.group}`;
    this.metric = group.metrics[0][0];
    this.hidden = new Set();
    this.at = null;
    this.box = section.querySelector(".chart");
    this.readout = section.querySelector(".readout");
    this.metrics(section.querySelector(".metrics"), `metric-${section.dataset.group}`);
    this.legend(section.querySelector(".legend"));
    this.box.addEventListener("pointermove", (event) => this.point(event));
    this.box.addEventListener("pointerleave", () => this.read(null));
    this.box.addEventListener("blur", () => this.read(null));
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.draw();
    new ResizeObserver(() => { if (this.width !== this.room) this.draw(); }).observe(this.box);
  }

  /** Pixels across; the text keeps its size on a telephone. */
  get room() {
    return Math.max(320, Math.round(this.box.clientWidth) || 900);
  }

  get height() {
    return Math.min(420, Math.round(0.4 * this.width) + 120);
  }

  metrics(fieldset, name) {
    for (const [metric, words] of this.group.metrics) {
      const radio = element("input", { type: "radio", name, value: metric, checked: metric === this.metric });
      radio.addEventListener("change", () => { this.metric = metric; this.draw(); });
      fieldset.append(element("label", {}, radio, ` ${words}`));
    }
  }

  legend(place) {
    for (const { name, dashes, ...strategy } of this.group.strategies) {
      const sample = svg("svg", { width: 26, height: 10, "aria-hidden": "true" },
        toned(svg("line", { class: "sample", x1: 0, x2: 26, y1: 5, y2: 5, "stroke-dasharray": dashes }), strategy));
      const button = element("button", { type: "button" }, sample, name);
      button.setAttribute("aria-pressed", "true");
      button.addEventListener("click", () => {
        if (!this.hidden.delete(name)) this.hidden.add(name);
        button.setAttribute("aria-pressed", String(!this.hidden.has(name)));
        this.draw();
      });
      place.append(button);
    }
  }

  /** Strategies in view that recorded this metric. */
  get lines() {
    return this.group.strategies
      .filter(({ name, curves }) => !this.hidden.has(name) && curves[this.metric])
      .map((strategy) => ({ ...strategy, ...strategy.curves[this.metric] }));
  }

  draw() {
    const { left, right, top, bottom } = MARGIN;
    const width = (this.width = this.room);
    const height = this.height;
    // Axes span all strategies, hidden ones too, so that nothing jumps when one is hidden.
    const all = this.group.strategies.map(({ curves }) => curves[this.metric]).filter(Boolean);
    const xs = all.flatMap((c) => c.labels);
    const ys = all.flatMap((c) => c.mean.flatMap((m, i) => [m - (c.std[i] ?? 0), m + (c.std[i] ?? 0)]));
    let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    if (x0 === x1) [x0, x1] = [x0 - 1, x1 + 1];
    if (y0 === y1) [y0, y1] = [y0 - 0.01, y1 + 0.01];
    if (PERCENT.has(this.metric)) [y0, y1] = [Math.max(0, y0), Math.min(1, y1)];
    this.x = (v) => left + ((v - x0) / (x1 - x0)) * (width - left - right);
    this.y = (v) => height - bottom - ((v - y0) / (y1 - y0)) * (height - top - bottom);
    const words = this.group.metrics.find(([metric]) => metric === this.metric)[1];
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${words} by number of labels` });
    this.axes(picture, ticks(x0, x1, width / 90), ticks(y0, y1, 8), words);
    picture.append(svg("clipPath", { id: this.clip }, svg("rect", { x: left, y: top - 3, width: width - left - right + 3, height: height - top - bottom + 6 })));
    const inside = svg("g", { "clip-path": `url(#${this.clip})` });
    for (const line of this.lines) inside.append(this.band(line));
    for (const line of this.lines) inside.append(this.line(line));
    this.cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, visibility: "hidden" });
    picture.append(inside, this.cursor);
    this.tip = element("div", { className: "tip", hidden: true });
    this.box.replaceChildren(picture, this.tip);
    this.read(null);
  }

  axes(picture, across, up, words) {
    const { width, height } = this;
    const { left, right, top, bottom } = MARGIN;
    for (const v of up) {
      const text = PERCENT.has(this.metric) ? `${+(100 * v).toPrecision(6)} %` : String(v);
      picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: this.y(v), y2: this.y(v) }),
        svg("text", { x: left - 8, y: this.y(v) + 4, "text-anchor": "end" }, text));
    }
    for (const v of across) {
      picture.append(svg("line", { class: "axis", x1: this.x(v), x2: this.x(v), y1: height - bottom, y2: height - bottom + 5 }),
        svg("text", { x: this.x(v), y: height - bottom + 19, "text-anchor": "middle" }, String(v)));
    }
    picture.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
      svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "labels"),
      svg("text", { x: 14, y: (top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(top + height - bottom) / 2})` }, words));
  }

  path(labels, values) {
    return labels.map((n, i) => `${this.x(n).toFixed(1)},${this.y(values[i]).toFixed(1)}`);
  }

  line({ name, dashes, labels, mean, ...strategy }) {
    const points = this.path(labels, mean).join(" ");
    return toned(svg("polyline", { class: "line", "data-strategy": name, "stroke-dasharray": dashes, points }), strategy);
  }

  band({ labels, mean, std, ...strategy }) {
    const upper = this.path(labels, mean.map((m, i) => m + (std[i] ?? 0)));
    const lower = this.path(labels, mean.map((m, i) => m - (std[i] ?? 0)));
    return toned(svg("polygon", { class: "band", points: [...upper, ...lower.reverse()].join(" ") }), strategy);
  }

  get counts() {
    return [...new Set(this.lines.flatMap(({ labels }) => labels))].sort((a, b) => a - b);
  }

  point(event) {
    const rect = this.box.getBoundingClientRect();
    const x = ((event.clientX - rect.left) / rect.width) * this.width;
    const distance = (n) => Math.abs(this.x(n) - x);
    this.read(this.counts.reduce((best, n) => (best === null || distance(n) < distance(best) ? n : best), null));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.read(null);
    if (!step || !this.counts.length) return;
    event.preventDefault();
    const i = this.at === null ? (step > 0 ? 0 : this.counts.length - 1) : this.counts.indexOf(this.at) + step;
    this.read(this.counts[Math.max(0, Math.min(this.counts.length - 1, i))]);
    this.readout.textContent = this.tip.innerText;
  }

  /** Values of all lines at a label count, in a box beside the cursor; null hides it. */
  read(labels) {
    this.at = labels;
    this.tip.hidden = labels === null;
    this.cursor.setAttribute("visibility", labels === null ? "hidden" : "visible");
    if (labels === null) return;
    const rows = this.lines
      .map((line) => ({ ...line, i: line.labels.indexOf(labels) }))
      .filter(({ i }) => i >= 0)
      .sort((a, b) => b.mean[b.i] - a.mean[a.i])
      .map(({ name, i, mean, std, ...strategy }) => {
        const dot = toned(element("span", { className: "dot", textContent: "■ " }), strategy);
        const spread = std[i] === null ? "" : ` ± ${shown(this.metric, std[i])}`;
        return element("tr", {}, element("th", { scope: "row" }, dot, name), element("td", { textContent: shown(this.metric, mean[i]) + spread }));
      });
    this.tip.replaceChildren(element("b", { textContent: `${labels} labels` }), element("table", {}, ...rows));
    for (const end of ["x1", "x2"]) this.cursor.setAttribute(end, this.x(labels));
    const share = this.x(labels) / this.width;
    const aside = share < 0.5 ? { left: `calc(${100 * share}% + 12px)`, right: "auto" } : { left: "auto", right: `calc(${100 - 100 * share}% + 12px)` };
    const below = PERCENT.has(this.metric); // accuracy rises and leaves room below, all else falls
    Object.assign(this.tip.style, aside, below ? { top: "auto", bottom: "18%" } : { top: "3%", bottom: "auto" });
  }
}

/** Picked points round by round, of one strategy and seed. */
class Picks {
  constructor(section, group) {
    this.group = group;
    this.place = section.querySelector(".rounds");
    this.strategy = section.querySelector("select.strategy");
    this.seed = section.querySelector("select.seed");
    this.known = group.strategies.filter(({ runs }) => runs.some(({ rounds }) => rounds.length));
    section.querySelector(".picked").hidden = !this.known.length;
    if (!this.known.length) return;
    this.strategy.append(...this.known.map(({ name }) => element("option", { textContent: name })));
    this.strategy.selectedIndex = Math.max(0, this.known.findIndex(({ name }) => name !== "random"));
    this.strategy.addEventListener("change", () => this.seeds());
    this.seed.addEventListener("change", () => this.draw());
    this.seeds();
  }

  get runs() {
    return this.known[this.strategy.selectedIndex].runs;
  }

  seeds() {
    const before = this.seed.value;
    this.seed.replaceChildren(...this.runs.map(({ seed }) => element("option", { textContent: seed })));
    if (this.runs.some(({ seed }) => String(seed) === before)) this.seed.value = before;
    this.draw();
  }

  draw() {
    const { rounds } = this.runs[this.seed.selectedIndex];
    this.place.replaceChildren(...rounds.map((round) => this.round(round)));
  }

  round({ round, labels, queried, picks }) {
    const more = queried > picks.length ? `, ${picks.length} shown` : "";
    const title = element("h4", {}, `Round ${round}`, element("span", { textContent: `at ${labels} labels` }), element("span", { textContent: `${queried} queried${more}` }));
    const classes = this.classes(picks.map(([, , label]) => label).filter((label) => label !== null));
    const list = element("ul", {}, ...picks.map((pick) => this.pick(...pick)));
    const counted = classes ? [element("p", { className: "classes", textContent: classes })] : [];
    return element("div", { className: "round" }, title, element("div", {}, list, ...counted));
  }

  /** How often each class was queried, the most frequent first. */
  classes(labels) {
    if (!labels.length) return "";
    const count = new Map();
    for (const label of labels) count.set(label, (count.get(label) ?? 0) + 1);
    return "Classes: " + [...count].sort((a, b) => b[1] - a[1]).map(([label, n]) => `${label}\u00a0×\u00a0${n}`).join(", ");
  }

  pick(position, score, label, image) {
    const words = [`point ${position}`, label === null ? "" : `class ${label}`, score === null ? "" : `score ${score}`].filter(Boolean).join(", ");
    const item = element("li", { title: words });
    if (image !== null) item.append(element("img", { src: `data:image/png;base64,${this.group.images[image]}`, alt: words, loading: "lazy" }));
    else item.append(`#${position}`);
    if (label !== null) item.append(element("b", { textContent: label }));
    if (score !== null) item.append(element("span", { textContent: score }));
    return item;
  }
}

JSON.parse(document.getElementById("data").textContent).forEach((group, i) => {
  const section = document.querySelector(`section[data-group="${i}"]`);
  new Chart(section, group);
  new Picks(section, group);
});
