// What the browser keeps: per tab (sessionStorage) or for all tabs (localStorage), apart for each project.
//
// The name of the tab is in sessionStorage only while no page is open in the tab: a page takes it when it starts and
// puts it back when it is left. So a reload keeps the name, while a duplicated tab, which gets a copy of
// sessionStorage, finds none and makes its own. Two tabs with one name would be given the same items.

let scope = "balent:";

export const TAB = sessionStorage.getItem("balent:tab") ?? randomName();

/** When this page was opened: the server tells the pages of a tab apart by it. */
export const PAGE = Math.round(performance.timeOrigin);

sessionStorage.removeItem("balent:tab");
addEventListener("pagehide", () => sessionStorage.setItem("balent:tab", TAB));
addEventListener("pageshow", ({ persisted }) => persisted && location.reload()); // what an old page remembers is out of date

/** From here on, keys belong to this project: another one may be served at the same address tomorrow. */
export function openStorage(project) {
  scope = `balent:${project}:`;
}

export function read(area, key, otherwise) {
  try {
    return JSON.parse(area.getItem(scope + key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Whether it was written: storage may be full. */
export function write(area, key, value) {
  try {
    area.setItem(scope + key, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

export const remove = (area, key) => area.removeItem(scope + key);

export function keysStarting(area, start) {
  return Object.keys(area).filter((key) => key.startsWith(scope + start)).map((key) => key.slice(scope.length));
}

export function randomName() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // crypto.randomUUID needs https
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
