// Starts the view that the address names.
//
// A view is a module with start(app), which fills <main> and returns a function that is called with every new status.

import { farewell, get, patiently } from "./api.js";
import { byId, element } from "./elements.js";
import { Outbox } from "./outbox.js";
import { showStatus, startShell } from "./shell.js";
import { PAGE, TAB, openStorage } from "./storage.js";

const VIEWS = { "/": "label", "/grid": "grid", "/history": "history", "/progress": "progress", "/classes": "classes", "/resolve": "resolve" };
const STATUS_EVERY = 10000;

const askStatus = () => patiently(() => get("/api/status", { tab: TAB }));

async function start(view) {
  if (location.search === "?again") history.replaceState(null, "", location.pathname);
  document.body.dataset.view = view;
  const [module, status] = await Promise.all([import(`./${view}.js`), askStatus()]);
  openStorage(status.key);
  const app = { status, outbox: new Outbox(status.who), main: byId("view") };
  startShell(view, app.outbox);
  showStatus(status);
  const update = module.start(app);
  app.refresh = async () => {
    const { who } = app.status;
    app.status = await askStatus();
    if (app.status.who !== who) return location.reload(); // somebody else has opened a link in this browser
    if (view !== "label") showStatus(app.status);
    update(app.status);
  };
  // Items of a closed page go to others at once, unless some of them are answered and the answers are still on their way.
  addEventListener("pagehide", () => app.outbox.size || farewell("/api/leave", { tab: TAB, page: PAGE }));
  setInterval(() => document.hidden || app.refresh(), STATUS_EVERY);
}

start(VIEWS[location.pathname] ?? "label").catch((error) => {
  byId("view").replaceChildren(element("p", { class: "sentence" }, `This page could not start: ${error.message}`));
});
