// A small form for a new class.

import { post } from "./api.js";
import { button, element, keyCap } from "./elements.js";

/** {node, open}; added({looks, version}, name) is called when the server has the class. */
export function classForm(added) {
  const called = "name of the new class";
  const name = element("input", { name: "name", placeholder: called, "aria-label": called, maxlength: 200, autocomplete: "off" });
  const problem = element("span", { class: "problem", role: "alert" });
  const node = element("form", { class: "new-class", hidden: true }, name,
    element("button", { class: "main" }, "Add", keyCap("↵")), button({ class: "quiet", onclick: () => close() }, "Cancel", keyCap("Esc")), problem);

  function open() {
    node.hidden = false;
    problem.textContent = "";
    name.value = "";
    name.focus();
  }

  function close() {
    node.hidden = true;
    name.blur();
  }

  async function submit(event) {
    event.preventDefault();
    const wanted = name.value.trim();
    if (!wanted) return close();
    try {
      const classes = await post("/api/classes", { action: "add", name: wanted });
      close();
      added(classes, wanted);
    } catch (error) {
      problem.textContent = error.message;
    }
  }

  node.addEventListener("submit", submit);
  node.addEventListener("keydown", (event) => event.key === "Escape" && close());
  return { node, open };
}
