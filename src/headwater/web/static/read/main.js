// The reader, put together: what a click, a key, a swipe and a form do.
import { isPhone, list, main, pane, say } from "./state.js";
import { toast, undo } from "./toasts.js";
import { currentRow, isUnread, linkOf, neighbour, pointAt, startRows } from "./rows.js";
import { readAll, readUpTo, saveTags, setRead, toggle } from "./marks.js";
import * as article from "./article.js";
import { openPalette, startPalette } from "./palette.js";
import { showHelp, startKeys } from "./keys.js";
import { startTouch } from "./touch.js";
import { startOffline } from "./offline.js";
import { startTree, toggleTree } from "./tree.js";

const go = (address) => (location.href = address);
const refresh = () => go(list.dataset.here);
const target = () => article.openNumber() ?? currentRow()?.dataset.item;
const next = () => article.turn(1);
const previous = () => article.turn(-1);

const openOrClose = () => {
  const row = currentRow();
  if (row && article.openNumber() === row.dataset.item && isPhone()) article.close();
  else if (row) article.open(row);
  else next();
};

const scrollOn = () => {
  const page = isPhone() ? document.scrollingElement : pane;
  const isAtEnd = page.scrollTop + page.clientHeight >= page.scrollHeight - 4;
  if (!article.openNumber() || isAtEnd) next();
  else page.scrollBy({ top: page.clientHeight * 0.9, behavior: "smooth" });
};

const nextSource = () => {
  const feed = currentRow()?.dataset.feed;
  article.turn(1, (row) => row.dataset.feed !== feed);
};

const openTags = () => {
  const opener = pane.querySelector("[data-tags-of]");
  if (!opener) return;
  opener.parentElement.open = true;
  pane.querySelector("[data-tags] input[name=tags]").focus();
};

const search = () => {
  if (matchMedia("(max-width: 1180px)").matches) toggleTree(true);
  document.querySelector("#tree input[type=search]").focus();
};

const openOriginal = () => {
  const original = pane.querySelector("[data-original]");
  if (original) window.open(original.href, "_blank", "noopener,noreferrer");
};

const back = () => {
  if (main.classList.contains("tree-open")) toggleTree(false);
  else article.close();
};

const upToHere = () => currentRow() && readUpTo(currentRow());

const single = {
  j: next,
  k: previous,
  n: () => article.turn(1, isUnread),
  "Shift j": nextSource,
  Enter: openOrClose,
  o: openOrClose,
  " ": scrollOn,
  u: back,
  Escape: back,
  m: () => toggle("is_read", target()),
  s: () => toggle("is_starred", target()),
  l: () => toggle("read_later", target()),
  t: openTags,
  v: openOriginal,
  f: article.toggleFullText,
  y: article.toggleSummary,
  "Shift s": article.share,
  "Shift m": upToHere,
  "Shift a": readAll,
  z: undo,
  r: refresh,
  a: () => go("/read/add"),
  "/": search,
  "?": showHelp,
  ArrowDown: async () => focusRow(1),
  ArrowUp: async () => focusRow(-1),
};

const focusRow = async (by) => {
  const row = await neighbour(by);
  if (row) pointAt(row);
};

const hasPlace = (path) => document.querySelector(`.rail a[href="${path}"]`);
const place = (path) => () => hasPlace(path) && go(path);
const afterG = {
  u: () => go("/read?view=unread"),
  s: () => go("/read?view=starred"),
  l: () => go("/read?view=later"),
  a: () => go("/read?view=all"),
  b: () => go("/bookmarks"),
  f: () => openPalette(),
  o: place("/"),
  c: place("/sources"),
  p: place("/pipelines"),
  r: place("/runs"),
};

const doable = [
  { key: "Shift a", name: "mark_all", go: readAll },
  { key: "r", name: "refresh", go: refresh },
  { key: "a", name: "add", go: () => go("/read/add") },
  { name: "arrange", go: () => go("/read/feeds") },
  { name: "connect", go: () => go("/connect") },
  { key: "?", name: "help", go: showHelp },
];

const buttons = {
  next,
  previous,
  summary: article.toggleSummary,
  share: article.share,
  help: showHelp,
  "read-to-here": upToHere,
};

const isPlain = (event) => !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button);

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.pop[open]")) {
    if (!menu.contains(event.target) || event.target.closest("[data-do]")) menu.open = false;
  }
  if (!isPlain(event)) return;
  const row = event.target.closest("[data-item]");
  if (row && event.target.closest("a") === linkOf(row)) {
    event.preventDefault();
    article.open(row);
    return;
  }
  const button = event.target.closest("[data-do]");
  if (button && buttons[button.dataset.do]) {
    event.preventDefault();
    buttons[button.dataset.do]();
    return;
  }
  const text = event.target.closest("[data-text]");
  if (text) {
    event.preventDefault();
    article.showText(text.dataset.text);
    return;
  }
  const size = event.target.closest("[data-size]:not(html)");
  if (size) {
    event.preventDefault();
    document.documentElement.dataset.size = size.dataset.size;
    document.cookie = `headwater_size=${size.dataset.size}; path=/; max-age=31536000; samesite=lax`;
    for (const each of size.parentElement.children) each.toggleAttribute("aria-current", each === size);
    return;
  }
  if (event.target.closest("[data-back]") && isPhone()) {
    event.preventDefault();
    article.close();
  }
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-mark]")) {
    event.preventDefault();
    toggle(event.submitter.dataset.toggle, article.openNumber());
  } else if (form.matches("[data-tags]")) {
    event.preventDefault();
    saveTags(form, article.forget);
  } else if (form.matches("[data-all-read]")) {
    event.preventDefault();
    readAll();
  }
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.pop[open]");
  if (!menu) return;
  event.preventDefault();
  menu.open = false;
  menu.querySelector("summary").focus();
});

startRows((passed) => setRead(passed.filter(isUnread).map((row) => row.dataset.item), true));
startTree();
startPalette(doable);
startKeys({ single, afterG, palette: openPalette });
startTouch({
  onRead: (row) => toggle("is_read", row.dataset.item),
  onStar: (row) => toggle("is_starred", row.dataset.item),
  onTurn: (by) => article.turn(by),
});
article.startArticle();
startOffline(article.load);
addEventListener("unhandledrejection", () => toast(say("failed")));
