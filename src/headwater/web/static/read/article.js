// The article: opened beside the list, or instead of it on a phone; the next ones are fetched ahead.
import { ask, isPhone, list, main, pane, say } from "./state.js";
import { currentRow, linkOf, neighbour, pointAt, rowOf, rows } from "./rows.js";
import { setRead, syncArticle } from "./marks.js";
import { dockPlayer, startPlayers } from "./player.js";
import { toast } from "./toasts.js";

const KEPT = 30; // articles in memory
const AHEAD = 2;
const SKELETON_MS = 200;
const parts = new Map(); // by address, the latest last
const empty = pane.querySelector(":scope > .empty")?.cloneNode(true);
let scrolledTo = 0; // the list on a phone, under the article
let wanted = null;

const addressOf = (number, text = "") => {
  const query = new URLSearchParams(list.dataset.query);
  if (text) query.set("text", text);
  return `/read/items/${number}?${query}`;
};

export const load = (number, text = "") => {
  const address = addressOf(number, text);
  if (!parts.has(address)) {
    const part = ask(address).then((answer) => answer.text());
    part.catch(() => parts.delete(address));
    parts.set(address, part);
    if (parts.size > KEPT) parts.delete(parts.keys().next().value);
  }
  return parts.get(address);
};

export const forget = (number) => {
  for (const address of [...parts.keys()]) {
    if (address.startsWith(`/read/items/${number}?`)) parts.delete(address);
  }
};

export const openNumber = () => pane.querySelector("[data-article]")?.dataset.article ?? null;

const skeleton = () => {
  const post = document.createElement("div");
  post.className = "post loading";
  for (let line = 0; line < 7; line += 1) post.append(Object.assign(document.createElement("div"), { className: "skeleton" }));
  pane.replaceChildren(post);
};

const turnLink = (row, rel) => {
  const link = document.createElement("a");
  link.rel = rel;
  link.href = linkOf(row).href;
  link.dataset.do = rel === "next" ? "next" : "previous";
  const small = document.createElement("small");
  small.textContent = rel === "next" ? `${say("next")} ` : `${say("previous")} `;
  small.append(Object.assign(document.createElement("kbd"), { textContent: rel === "next" ? "j" : "k" }));
  const title = row.querySelector(".ttl bdi");
  const words = document.createElement("bdi");
  words.textContent = title.textContent;
  const language = title.closest("[lang]")?.lang;
  if (language) words.lang = language;
  link.append(small, words);
  return link;
};

const finish = (row) => {
  const all = rows();
  const at = all.indexOf(row);
  const place = pane.querySelector("[data-place]");
  const hasMore = list.querySelector("[data-more]") !== null;
  const count = hasMore ? `${all.length}+` : all.length;
  if (place && at >= 0) place.textContent = say("place", { place: at + 1, count });
  const turn = pane.querySelector("[data-turn]");
  if (turn && at >= 0) {
    const before = all[at - 1] ? turnLink(all[at - 1], "prev") : document.createElement("span");
    turn.replaceChildren(before, ...(all[at + 1] ? [turnLink(all[at + 1], "next")] : []));
  }
  if (localStorage.getItem("headwater-summary") === "hidden") showSummary(false);
  syncArticle();
  startPlayers(pane);
};

const showSummary = (isShown) => {
  const summary = pane.querySelector("#summary");
  if (!summary) return false;
  summary.hidden = !isShown;
  pane.querySelector(".article-bar [data-do=summary]")?.setAttribute("aria-pressed", String(isShown));
  return true;
};

export const toggleSummary = () => {
  const isHidden = pane.querySelector("#summary")?.hidden;
  if (!showSummary(isHidden)) {
    toast(say("no_summary"));
    return;
  }
  localStorage.setItem("headwater-summary", isHidden ? "shown" : "hidden");
};

const put = (html, row) => {
  dockPlayer(pane);
  pane.innerHTML = html;
  finish(row);
};

const fetchAhead = (row) => {
  const all = rows();
  const at = all.indexOf(row);
  if (navigator.onLine) for (const each of all.slice(at + 1, at + 1 + AHEAD)) load(each.dataset.item).catch(() => {});
};

export const open = async (row, { isMarked = true, isRemembered = true, focus = true } = {}) => {
  if (!row) return;
  const number = row.dataset.item;
  const wasClosed = !main.classList.contains("has-item");
  wanted = number;
  if (isPhone() && wasClosed) scrolledTo = scrollY;
  pointAt(row, { focus: focus && !isPhone() });
  const loading = setTimeout(skeleton, SKELETON_MS);
  let html;
  try {
    html = await load(number);
  } catch (error) {
    clearTimeout(loading);
    if (error.status) location.href = linkOf(row).href;
    else toast(say(navigator.onLine ? "failed" : "not_loaded"));
    return;
  }
  clearTimeout(loading);
  if (wanted !== number) return; // another one was opened meanwhile
  main.classList.add("has-item");
  put(html, row);
  pane.scrollTop = 0;
  if (isPhone()) scrollTo(0, 0);
  if (isRemembered) {
    const address = linkOf(row).href;
    if (isPhone() && wasClosed) history.pushState({ item: number }, "", address);
    else history.replaceState({ item: number }, "", address);
  }
  if (isMarked && row.classList.contains("un")) setRead([number], true);
  fetchAhead(row);
};

export const turn = async (by, fits) => {
  const row = await neighbour(by, fits);
  if (row) await open(row);
  else toast(say(by > 0 ? "end" : "top"));
};

export const showText = async (text) => {
  const number = openNumber();
  const top = isPhone() ? scrollY : pane.scrollTop;
  try {
    put(await load(number, text), rowOf(number));
    if (isPhone()) scrollTo(0, top);
    else pane.scrollTop = top;
  } catch {
    toast(say("offline"));
  }
};

export const toggleFullText = () => {
  const versions = [...pane.querySelectorAll("[data-text]")].map((each) => each.dataset.text);
  if (!versions.includes("full_text")) {
    toast(say("no_full_text"));
    return;
  }
  showText(pane.querySelector("[data-version]").dataset.version === "full_text" ? "feed" : "full_text");
};

const showList = () => {
  main.classList.remove("has-item");
  wanted = null;
  dockPlayer(pane);
  if (empty) pane.replaceChildren(empty.cloneNode(true));
  scrollTo(0, scrolledTo);
};

// Back to the list: on a phone it is shown again, elsewhere it gets the focus.
export const close = () => {
  const row = currentRow();
  if (isPhone() && main.classList.contains("has-item")) {
    if (history.state?.item) history.back();
    else {
      history.replaceState(null, "", list.dataset.here);
      showList();
    }
  } else if (row) {
    linkOf(row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }
};

export const share = async () => {
  const post = pane.querySelector("[data-article]");
  if (!post?.dataset.url) return;
  if (navigator.share) {
    await navigator.share({ title: post.dataset.title, url: post.dataset.url }).catch(() => {});
  } else {
    await navigator.clipboard.writeText(post.dataset.url);
    toast(say("copied"));
  }
};

export const startArticle = () => {
  addEventListener("popstate", () => {
    const number = new URLSearchParams(location.search).get("item");
    const row = number && rowOf(number);
    if (row) open(row, { isMarked: false, isRemembered: false });
    else if (isPhone()) showList();
  });
  const number = openNumber();
  if (!number) {
    const asked = rowOf(new URLSearchParams(location.search).get("item") ?? 0);
    if (asked) {
      open(asked, { isRemembered: false, focus: false }); // offline, the page came without it
      return;
    }
    const first = rows()[0];
    if (first) load(first.dataset.item).catch(() => {});
    return;
  }
  main.classList.add("has-item");
  const row = rowOf(number);
  if (row) {
    pointAt(row, { focus: false });
    fetchAhead(row);
  }
  finish(row);
  if (pane.querySelector("[data-article]").dataset.read === "no") setRead([number], true);
};
