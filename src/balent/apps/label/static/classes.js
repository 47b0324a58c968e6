// The classes: names, keys and criteria, changed in place; two classes can become one.
//
// A class is not renamed while answers with its old name are on their way: the server would refuse them.

import { Refused, post } from "./api.js";
import { button, element, isolated, named } from "./elements.js";
import { listenToKeys } from "./keys.js";
import { fillHelp, openHelp, toast } from "./shell.js";
import { setPhase } from "./state.js";
import { counted } from "./words.js";

export function start({ status, outbox, main }) {
  let { looks, classes: counts, version } = status;
  const list = element("ol", { id: "class-list" });
  main.replaceChildren(element("h2", {}, "Classes"),
    element("p", { class: "hint" }, "Keys, names and criteria can be changed in place. A key is one letter or digit. Criteria say what belongs to a class; they are shown below its name while labelling."),
    list, addForm());
  listenToKeys((key) => ({ "?": openHelp })[key]);
  fillHelp([[["?"], "this help"]]);
  show();
  setPhase("ready");

  function show() {
    list.replaceChildren(...looks.map(row));
  }

  function row(look) {
    const inputs = [field("key", "Key", look.key, { maxlength: 1, class: "key" }), field("name", "Name", look.name, { required: true, dir: "auto" }),
                    criteria(look.note)];
    const save = element("button", { class: "main", hidden: true }, "Save");
    const form = element("form", { "aria-label": `Class ${isolated(look.name)}`, onsubmit: (event) => submit(event, look) },
      inputs, element("span", { class: "number" }, counted(counts[look.name] ?? 0, "label")),
      element("span", { class: "buttons" }, save, looks.length > 1 && button({ class: "quiet", onclick: () => askMerge(look, form) }, "Merge …")));
    form.addEventListener("input", () => (save.hidden = inputs.every((input) => input.value === look[input.name])));
    return element("li", {}, form);
  }

  function field(name, label, value, attributes) {
    return element("input", { name, value, "aria-label": label, autocomplete: "off", ...attributes });
  }

  /** Grows with its text; enter saves. */
  function criteria(text) {
    const enter = (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      event.target.form.requestSubmit();
    };
    return element("textarea", { name: "note", rows: 1, "aria-label": "Criteria", placeholder: "criteria", dir: "auto", onkeydown: enter }, text);
  }

  function values(form) {
    const { key, name, note } = Object.fromEntries(new FormData(form));
    return { key: key.trim().toLowerCase(), name: name.trim(), note: note.replace(/\s+/g, " ").trim() };
  }

  function submit(event, look) {
    event.preventDefault();
    const { key, name, note } = values(event.target);
    const described = (key !== look.key || note !== look.note) && { action: "describe", name: look.name, key, note };
    const renamed = name !== look.name && { action: "rename", name: look.name, to: name };
    apply([described, renamed].filter(Boolean));
  }

  async function apply(changes) {
    if (outbox.size) return toast("Some answers are not sent yet. Please try again when they are.");
    try {
      for (const change of changes) await applyOne(change);
      show();
    } catch (error) {
      toast(error instanceof Refused ? error.message : "The server cannot be reached. Nothing was changed.");
    }
  }

  async function applyOne(change) {
    ({ looks, version } = await post("/api/classes", change));
    if (!change.to) return;
    counts = { ...counts, [change.to]: (counts[change.to] ?? 0) + (counts[change.name] ?? 0), [change.name]: 0 };
  }

  function askMerge(look, form) {
    const options = looks.filter(({ name }) => name !== look.name).map(({ name }) => element("option", { value: name }, isolated(name)));
    const target = element("select", { "aria-label": "Merge into" }, options);
    const question = element("div", { class: "question", role: "alertdialog", "aria-label": "Merge" },
      element("span", {}, "Merge ", element("strong", {}, named(look.name)), " into "), target,
      element("p", { class: "hint" }, `${counted(counts[look.name] ?? 0, "label")} will change, and the class will be gone.`),
      button({ class: "main", onclick: () => apply([{ action: "merge", name: look.name, to: target.value }]) }, "Merge"),
      button({ class: "quiet", onclick: () => question.remove() }, "Cancel"));
    form.parentElement.querySelector(".question")?.remove();
    form.after(question);
    target.focus();
  }

  function addForm() {
    return element("form", { id: "add", "aria-label": "New class", onsubmit: add },
      field("key", "Key", "", { maxlength: 1, class: "key", placeholder: "key" }),
      field("name", "Name", "", { required: true, placeholder: "new class" }),
      criteria(""),
      element("button", { class: "main" }, "Add"));
  }

  async function add(event) {
    event.preventDefault();
    const { key, name, note } = values(event.target);
    const before = version;
    await apply([{ action: "add", name, note, ...(key && { key }) }]);
    if (version !== before) event.target.reset();
  }

  /** Another person's changes are shown unless something is being edited here. */
  return (status) => {
    const editing = main.contains(document.activeElement) || list.querySelector(".main:not([hidden])");
    if (editing) return;
    ({ looks, classes: counts, version } = status);
    show();
  };
}
