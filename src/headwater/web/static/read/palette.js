// "Do anything": folders, feeds and actions by a few letters.
import { say } from "./state.js";

const dialog = document.getElementById("palette");
const field = dialog.querySelector("input");
const matches = dialog.querySelector("ul");
const MOST = 12;
let actions = [];
let shown = [];
let chosen = 0;

const feeds = () =>
  [...document.querySelectorAll("#tree a.node")].map((node) => ({
    name: (node.querySelector(".cut") ?? node).textContent.trim(),
    more: node.querySelector(".n:not([hidden])")?.textContent ?? "",
    go: () => (location.href = node.href),
  }));

const places = () =>
  [...document.querySelectorAll(".rail > a:not(.logo)")].map((link) => ({
    name: link.textContent.trim(),
    more: "",
    go: () => (location.href = link.href),
  }));

// Letters in order are enough; those that begin the name come first.
const rank = (name, words) => {
  const text = name.toLowerCase();
  const at = text.indexOf(words);
  if (at >= 0) return at;
  let from = 0;
  for (const letter of words) {
    from = text.indexOf(letter, from) + 1;
    if (!from) return -1;
  }
  return 100 + from;
};

const choose = (place) => {
  chosen = Math.max(0, Math.min(place, shown.length - 1));
  [...matches.children].forEach((each, at) => each.setAttribute("aria-selected", String(at === chosen)));
  const now = matches.children[chosen];
  if (now) {
    field.setAttribute("aria-activedescendant", now.id);
    now.scrollIntoView({ block: "nearest" });
  } else field.removeAttribute("aria-activedescendant");
};

const draw = () => {
  const words = field.value.trim().toLowerCase();
  shown = [...actions, ...feeds(), ...places()]
    .map((each) => ({ ...each, rank: words ? rank(each.name, words) : 0 }))
    .filter((each) => each.rank >= 0)
    .sort((one, other) => one.rank - other.rank)
    .slice(0, MOST);
  matches.replaceChildren(
    ...shown.map((each, at) => {
      const row = document.createElement("li");
      row.id = `palette-${at}`;
      row.role = "option";
      row.append(Object.assign(document.createElement("bdi"), { className: "cut", textContent: each.name }));
      row.append(Object.assign(document.createElement("span"), { className: "soft", textContent: each.more }));
      row.addEventListener("click", () => run(at));
      return row;
    })
  );
  dialog.querySelector("[data-none]").hidden = shown.length > 0;
  choose(0);
};

const run = (at) => {
  const action = shown[at];
  dialog.close();
  action?.go();
};

export const openPalette = (begin = "") => {
  if (dialog.open) {
    dialog.close();
    return;
  }
  field.value = begin;
  draw();
  dialog.showModal();
  field.focus();
};

export const startPalette = (doable) => {
  actions = doable.map(({ key, name, go }) => ({ name: say(name), more: key ?? "", go }));
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      choose(chosen + steps[event.key]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      run(chosen);
    }
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
};
