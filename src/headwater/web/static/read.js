// Reading: articles open beside the list, by mouse and by key; the next one is fetched ahead.
"use strict";

const pane = document.getElementById("article");
const help = document.getElementById("keys");
const links = () => [...document.querySelectorAll("[data-item]")];
const isWide = () => matchMedia("(min-width: 721px)").matches;
const parts = new Map(); // articles that were fetched, the latest last
const KEPT = 20;
let place = links().findIndex((link) => link.hasAttribute("aria-current"));

const load = (number) => {
  if (!parts.has(number)) {
    const part = fetch(`/items/${number}/part`, { credentials: "same-origin", redirect: "error" }).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.text();
    });
    part.catch(() => parts.delete(number));
    parts.set(number, part);
    if (parts.size > KEPT) parts.delete(parts.keys().next().value);
  }
  return parts.get(number);
};

const point = (to) => {
  const all = links();
  if (!all.length) return null;
  place = Math.max(0, Math.min(to, all.length - 1));
  const link = all[place];
  for (const each of all) each.classList.toggle("pointed", each === link);
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
  return link;
};

const open = async (link) => {
  if (!link) return;
  if (!isWide()) {
    location.href = link.href;
    return;
  }
  const number = link.dataset.item;
  for (const each of links()) {
    if (each === link) each.setAttribute("aria-current", "true");
    else each.removeAttribute("aria-current");
  }
  try {
    const html = await load(number);
    if (!link.hasAttribute("aria-current")) return; // another one was opened meanwhile
    pane.innerHTML = html;
    pane.scrollTop = 0;
    const address = new URL(location.href);
    address.searchParams.set("item", number);
    history.replaceState(null, "", address);
    pane.classList.remove("stale");
  } catch {
    location.href = link.href;
  }
  const next = links()[links().indexOf(link) + 1];
  if (next) load(next.dataset.item);
};

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-item]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || !isWide()) return;
  event.preventDefault();
  point(links().indexOf(link));
  open(link);
});

const showHelp = () => (help.open ? help.close() : help.showModal());
document.querySelector("[data-help]")?.addEventListener("click", showHelp);

const keysOn = document.querySelector("[data-keys-on]");
keysOn.checked = localStorage.getItem("headwater-keys") !== "off";
keysOn.addEventListener("change", () => localStorage.setItem("headwater-keys", keysOn.checked ? "on" : "off"));

const scrollOn = () => {
  const atEnd = pane.scrollTop + pane.clientHeight >= pane.scrollHeight - 4;
  if (atEnd || !isWide()) open(point(place + 1));
  else pane.scrollBy({ top: pane.clientHeight * 0.9 });
};

const places = { o: "/", s: "/sources", p: "/pipelines", r: "/runs", u: "/items" };
let afterG = false;
const actions = {
  j: () => open(point(place + 1)),
  k: () => open(point(place - 1)),
  n: () => point(place + 1),
  p: () => point(place - 1),
  o: () => open(links()[Math.max(place, 0)]),
  v: () => {
    const original = pane.querySelector("[data-original]");
    if (original) window.open(original.href, "_blank", "noopener,noreferrer");
  },
  u: () => point(place),
  r: () => location.reload(),
  " ": scrollOn,
  "/": () => document.querySelector(".list input[type=search]").focus(),
  "?": showHelp,
  g: () => {
    afterG = true;
    setTimeout(() => (afterG = false), 1000);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !keysOn.checked) return;
  if (event.target.closest("input, select, textarea, dialog")) {
    if (event.key === "Escape" && !event.target.closest("dialog")) event.target.blur();
    return;
  }
  if (event.key === " " && event.target.closest("button, summary")) return;
  if (afterG && places[event.key]) {
    location.href = places[event.key];
    return;
  }
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
});
