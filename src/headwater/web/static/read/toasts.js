// What happened, said for six seconds, with a way to undo it.
import { say } from "./state.js";

const SHOWN_MS = 6000;
const MOST_UNDONE = 50;
const place = document.getElementById("toasts");
const undoable = []; // the latest last

export const undo = async () => {
  const last = undoable.pop();
  if (!last) return;
  last.toast?.remove();
  await last.back();
};

export const toast = (text, back = null) => {
  const shown = document.createElement("div");
  shown.className = "toast";
  const said = document.createElement("span");
  said.textContent = text;
  shown.append(said);
  if (back) {
    const entry = { back, toast: shown };
    undoable.push(entry);
    if (undoable.length > MOST_UNDONE) undoable.shift();
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = say("undo");
    button.addEventListener("click", () => {
      undoable.splice(undoable.indexOf(entry), 1);
      shown.remove();
      back();
    });
    shown.append(button);
  }
  place.replaceChildren(shown);
  setTimeout(() => shown.remove(), SHOWN_MS);
};
