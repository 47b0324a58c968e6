// Key presses: one listener, and a function from keys to actions that each view provides.
//
// Keys are compared in lower case. A layout without Latin letters or plain digits (Russian, French) is read by the
// position of the key. Nothing happens while somebody types, with ctrl, alt or meta held, or while a dialog is open.

const MAY_REPEAT = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"];

/** actionOf(key) is a function of the event, or undefined. */
export function listenToKeys(actionOf) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]") || pressesButton(event)) return;
    const action = spellings(event).map(actionOf).find(Boolean);
    if (!action) return;
    event.preventDefault();
    if (!event.repeat || MAY_REPEAT.includes(event.key)) action(event);
  });
}

function spellings(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const position = /^(?:Key|Digit)(.)$/.exec(event.code)?.[1].toLowerCase();
  return position && !event.shiftKey && !/^[a-z0-9]$/.test(key) ? [key, position] : [key];
}

const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");

/** Space and Enter belong to the button or link that has the focus. */
const pressesButton = (event) => [" ", "Enter"].includes(event.key) && event.target.closest?.("button, a[href]");
