// Choosing the parts of a page by pointing at them. The copy stands in a frame that runs nothing; a layer above it
// takes the mouse, and asks the frame what is below.
"use strict";

const form = document.getElementById("watch");
const frame = document.querySelector(".copied iframe");
const over = document.querySelector(".copied .over");
const pane = document.querySelector(".copied .window");
const would = document.getElementById("would");
const told = document.getElementById("picking");
const PARTS = ["item", "title", "summary", "date", "link", "image"];
const isWatched = () => form.elements.watch.value === "1";
const LONGEST_WAY = 6;
let picking = null;
let aimed = null;

const page = () => frame.contentDocument;
// Not form.elements.item: that is a function of the collection.
const input = (part) => form.querySelector(`[name="${part}"]`);
const cssOf = (text) => text.replace(/@[\w-]+$/, "").trim();
const find = (root, css) => {
  try {
    return css ? [...root.querySelectorAll(css)] : [];
  } catch {
    return [];
  }
};

// An element by its name and those of its classes that look as if they would last.
const nameOf = (element) => {
  const classes = [...element.classList].filter((each) => /^[A-Za-z_][\w-]*$/.test(each) && !/\d{2,}|^(odd|even|first|last|active|current|selected|new)$/.test(each));
  return element.localName + classes.slice(0, 2).map((each) => `.${CSS.escape(each)}`).join("");
};

// The list that an element belongs to: the nearest around it that has brothers of its kind.
const selectItem = (element) => {
  for (let each = element; each && each !== page().body; each = each.parentElement) {
    const kind = nameOf(each);
    const alike = [...each.parentElement.children].filter((brother) => brother.localName === each.localName);
    if (alike.length < 2 || each.localName === "br") continue;
    const shared = alike.every((brother) => brother.matches(kind)) ? kind : each.localName;
    const around = each.parentElement === page().body ? "body" : nameOf(each.parentElement);
    return find(page(), shared).length === alike.length ? shared : `${around} > ${shared}`;
  }
  return nameOf(element);
};

// The way from an item to one of its parts, as short as it still finds it first.
const selectPart = (element, item) => {
  let way = "";
  for (let each = element, steps = 0; each && each !== item && steps < LONGEST_WAY; each = each.parentElement, steps++) {
    way = way ? `${nameOf(each)} > ${way}` : nameOf(each);
    if (item.querySelector(way) === element) return way;
  }
  return way;
};

// The way from the page to one element, as short as it still finds it first.
const selectWatched = (element) => {
  let way = "";
  for (let each = element; each && each !== page().body; each = each.parentElement) {
    const name = each.id && /^[A-Za-z_][\w-]*$/.test(each.id) ? `#${CSS.escape(each.id)}` : nameOf(each);
    way = way ? `${name} > ${way}` : name;
    if (page().querySelector(way) === element) return way;
  }
  return way;
};

const mark = () => {
  const document = page();
  if (!document?.body) return;
  for (const each of find(document, "[data-picked]")) each.removeAttribute("data-picked");
  if (isWatched()) {
    const watched = find(document, cssOf(input("watched").value))[0];
    if (watched) watched.dataset.picked = "item";
    return;
  }
  const items = find(document, cssOf(input("item").value));
  for (const item of items) item.dataset.picked = "item";
  for (const part of PARTS.slice(1)) {
    const css = cssOf(input(part).value);
    for (const item of items) {
      const found = find(item, css)[0];
      if (found && !found.dataset.picked) found.dataset.picked = part;
    }
  }
};

let asked = 0;
const show = async () => {
  mark();
  const number = ++asked;
  const answer = await fetch("/sources/watch/items", { method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin" });
  if (!answer.ok || number !== asked) return;
  would.innerHTML = await answer.text();
  const counts = would.querySelector("[data-counts]");
  const found = counts ? JSON.parse(counts.dataset.counts) : {};
  for (const [part, count] of Object.entries(found)) {
    document.getElementById(`count-${part}`).textContent = part === "item" ? counts.dataset.all : counts.dataset.of.replace("#", count);
  }
};

const aim = (element) => {
  aimed?.removeAttribute("data-aimed");
  aimed = element;
  aimed?.setAttribute("data-aimed", "");
};

const stop = () => {
  picking = null;
  aim(null);
  told.textContent = "";
  over.parentElement.parentElement.classList.remove("picking");
  for (const button of form.querySelectorAll("[data-pick]")) button.ariaPressed = "false";
};

const begin = (part) => {
  stop();
  picking = part;
  told.textContent = form.dataset.wait;
  over.parentElement.parentElement.classList.add("picking");
  form.querySelector(`[data-pick=${part}]`).ariaPressed = "true";
  aim(find(page(), cssOf(input(part === "watched" ? "watched" : "item").value))[0] ?? page().body.firstElementChild);
  pane.focus();
};

const pick = (element) => {
  const items = cssOf(input("item").value);
  let chosen = "";
  if (picking === "item") chosen = selectItem(element);
  else if (picking === "watched") chosen = selectWatched(element);
  else if (picking === "next") chosen = nameOf(element.closest("a") ?? element);
  else {
    const part = picking === "link" ? (element.closest("a") ?? element) : element;
    const item = items ? part.closest(items) : null;
    if (!item || item === part) return;
    chosen = selectPart(part, item);
  }
  const field = input(picking);
  field.value = chosen;
  stop();
  field.focus();
  void show();
};

const below = (event) => {
  const box = frame.getBoundingClientRect();
  const found = page().elementFromPoint(event.clientX - box.left, event.clientY - box.top);
  return found && found !== page().documentElement && found !== page().body ? found : null;
};

over.addEventListener("mousemove", (event) => picking && aim(below(event)));
over.addEventListener("click", (event) => {
  if (!picking) begin(isWatched() ? "watched" : input("item").value ? "title" : "item");
  const found = below(event);
  if (found) pick(found);
});

// By keyboard: arrows go to the neighbour, out and in; Enter picks.
const STEPS = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling", ArrowUp: "parentElement", ArrowDown: "firstElementChild" };
pane.addEventListener("keydown", (event) => {
  if (!picking) return;
  if (event.key === "Escape") stop();
  else if (event.key === "Enter" && aimed) pick(aimed);
  else if (event.key in STEPS) {
    const next = aimed?.[STEPS[event.key]];
    if (next && next !== page().body && next !== page().documentElement) aim(next);
    aimed?.scrollIntoView({ block: "nearest" });
  } else return;
  event.preventDefault();
});

for (const button of form.querySelectorAll("[data-pick]")) {
  button.addEventListener("click", () => (picking === button.dataset.pick ? stop() : begin(button.dataset.pick)));
}
form.querySelector("[data-shown]").addEventListener("change", (event) => {
  if (event.target.name === "browser") form.requestSubmit(form.querySelector("[value=show]"));
  else void show();
});

const fit = () => {
  frame.style.height = `${Math.max(pane.clientHeight, page().documentElement.scrollHeight)}px`;
  mark();
};
frame.addEventListener("load", fit);
if (page()?.readyState === "complete" && page().body?.childElementCount) fit();
