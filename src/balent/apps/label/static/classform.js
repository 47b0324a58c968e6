// A small form for new classes.

import { post } from "./api.js";
import { button, element, keyCap } from "./elements.js";

const CALLED = "new classes, separated by commas";

/** {node, open}; added({looks, version}, names) is called when the server has the classes. */
export function classForm(added) {
  const field = element("input", { name: "name", placeholder: CALLED, "aria-label": CALLED, autocomplete: "off", dir: "auto" });
  const problem = element("span", { class: "problem", role: "alert" });
  const node = element("form", { class: "above-classes", hidden: true }, field,
    element("button", { class: "main" }, "Add", keyCap("enter")), button({ class: "quiet", onclick: () => close() }, "Cancel", keyCap("Esc")), problem);

  function open() {
    node.hidden = false;
    problem.textContent = "";
    field.value = "";
    field.focus();
  }

  function close() {
    node.hidden = true;
    field.blur();
  }

  /** Names that were added disappear from the field; the first that is refused stays there, with the reason. */
  async function submit(event) {
    event.preventDefault();
    const names = field.value.split(",").map((name) => name.trim()).filter(Boolean);
    let classes = null;
    const done = [];
    try {
      for (const name of names) {
        classes = await post("/api/classes", { action: "add", name });
        done.push(name);
      }
      close();
    } catch (error) {
      problem.textContent = error.message;
      field.value = names.slice(done.length).join(", ");
    }
    if (classes) added(classes, done);
  }

  node.addEventListener("submit", submit);
  node.addEventListener("keydown", (event) => event.key === "Escape" && close());
  return { node, open };
}
