// The keyboard. Single keys can be turned off; then Ctrl K and what the browser itself does remain.
import { list } from "./state.js";

const help = document.getElementById("keys");
const AFTER_G_MS = 1500;
const isOn = () => (localStorage.getItem("headwater-keys") ?? list.dataset.keys) !== "off";

export const showHelp = () => (help.open ? help.close() : help.showModal());

const nameOf = (event) => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return event.shiftKey && /^[a-z]$/.test(key) ? `Shift ${key}` : key;
};

const isTyping = (target) =>
  target.closest("input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable=true]");

export const startKeys = ({ single, afterG, palette }) => {
  const box = help.querySelector("[data-keys-on]");
  box.checked = isOn();
  box.addEventListener("change", () => {
    localStorage.setItem("headwater-keys", box.checked ? "on" : "off");
    const given = new FormData(document.querySelector("[data-preferences]"));
    const body = new URLSearchParams({ form_token: given.get("form_token"), single_keys: box.checked ? "yes" : "no" });
    fetch("/read/preferences", { method: "POST", body, credentials: "same-origin", redirect: "manual" }).catch(() => {});
  });
  let isAfterG = 0;
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      palette();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape" && !event.target.closest("dialog")) event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) {
      if (event.key === "?" && help.open) help.close();
      return;
    }
    const name = nameOf(event);
    if (name !== "Escape" && !isOn()) return;
    if ((name === " " || name === "Enter") && event.target.closest("a, button, summary, audio, video, label")) {
      const isRow = event.target.closest("[data-item]");
      if (!isRow || name === "Enter") return;
    }
    const action = Date.now() < isAfterG ? afterG[name] : single[name];
    isAfterG = name === "g" && Date.now() >= isAfterG ? Date.now() + AFTER_G_MS : 0;
    if (!action) return;
    event.preventDefault();
    action();
  });
};
