// The tree: its numbers, which folders are open, and the drawer that it is on narrow screens.
import { ask, list, main } from "./state.js";

const REFRESH_MS = 60_000;
const CLOSED = "headwater-closed-folders";
const tree = document.getElementById("tree");
const fresh = document.querySelector(".fresh");
const opener = document.querySelector("[data-open-tree]");

const places = (key) => document.querySelectorAll(`[data-count="${key}"]`);

const inWords = new Intl.NumberFormat("en");

const show = (key, count) => {
  for (const place of places(key)) {
    const number = place.matches(".n") ? place : place.querySelector(".n");
    if (!number) continue;
    number.textContent = inWords.format(count);
    number.hidden = !count && !place.matches(".n");
    place.classList.toggle("u", count > 0);
  }
  if (key === "unread") {
    const title = list.querySelector("[data-number]");
    if (title) title.textContent = inWords.format(count);
    if (navigator.setAppBadge) navigator.setAppBadge(count).catch(() => {});
  }
};

// Whether the server can be reached: the browser alone does not know.
const showOffline = (isOffline) => (list.querySelector("[data-offline]").hidden = !isOffline);

const current = (key) => {
  const place = places(key)[0];
  return Number((place?.querySelector(".n") ?? place)?.textContent.replaceAll(",", "")) || 0;
};

export const bump = (key, by) => show(key, Math.max(0, current(key) + by));

// One entry of a feed was marked: the feed, the folders it is in and the total change.
export const bumpUnread = (feed, by) => {
  const node = tree.querySelector(`[data-count="feed-${feed}"]`);
  if (!node?.querySelector(".n")) return;
  bump(`feed-${feed}`, by);
  for (let at = node.closest(".branch"); at; at = at.parentElement.closest(".branch")) {
    bump(at.querySelector(".folder").dataset.count, by);
  }
  bump("unread", by);
};

export const refreshCounts = async () => {
  try {
    const answer = await ask(`/read/counts?${list.dataset.query}&since=${list.dataset.shownAt}`);
    const counts = await answer.json();
    show("unread", counts.unread);
    show("starred", counts.starred);
    show("later", counts.later);
    for (const [feed, count] of Object.entries(counts.feeds)) show(`feed-${feed}`, count);
    for (const [folder, count] of Object.entries(counts.folders)) show(`folder-${folder}`, count);
    const link = fresh.querySelector("a");
    fresh.hidden = !counts.fresh;
    link.textContent = link.dataset.fresh.replace("{count}", counts.fresh);
    showOffline(false);
  } catch (error) {
    showOffline(!error.status);
  }
};

export const toggleTree = (open = !main.classList.contains("tree-open")) => {
  main.classList.toggle("tree-open", open);
  opener.setAttribute("aria-expanded", String(open));
  if (open) tree.querySelector("a, button, input").focus();
  else if (tree.contains(document.activeElement)) opener.focus();
};

const closedFolders = () => new Set(JSON.parse(localStorage.getItem(CLOSED) ?? "[]"));

export const startTree = () => {
  const closed = closedFolders();
  for (const folder of tree.querySelectorAll("details[data-folder]")) {
    if (closed.has(folder.dataset.folder)) folder.open = false;
    folder.addEventListener("toggle", () => {
      const now = closedFolders();
      if (folder.open) now.delete(folder.dataset.folder);
      else now.add(folder.dataset.folder);
      localStorage.setItem(CLOSED, JSON.stringify([...now]));
    });
  }
  opener.addEventListener("click", () => toggleTree());
  tree.querySelector("[data-close-tree]").addEventListener("click", () => toggleTree(false));
  document.addEventListener("click", (event) => {
    if (main.classList.contains("tree-open") && event.target === main) toggleTree(false);
  });
  tree.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  setInterval(() => document.hidden || refreshCounts(), REFRESH_MS);
  document.addEventListener("visibilitychange", () => document.hidden || refreshCounts());
};
