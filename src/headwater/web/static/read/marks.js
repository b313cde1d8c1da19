// Marking entries: read, starred, put aside, tagged. The page changes at once; the server is told meanwhile.
import { ask, change, list, pane, say } from "./state.js";
import { toast } from "./toasts.js";
import { bump, bumpUnread, refreshCounts } from "./tree.js";
import { isUnread, rowOf, rows } from "./rows.js";

const article = () => pane.querySelector("[data-article]");
const isOpen = (number) => article()?.dataset.article === String(number);
const told = (promise) => promise.then((sent) => sent || toast(say("failed"))).catch(() => toast(say("failed")));

const press = (field, isOn) => {
  for (const button of pane.querySelectorAll(`[data-toggle="${field}"]`)) {
    button.setAttribute("aria-pressed", String(isOn));
    button.value = isOn ? "no" : "yes";
    if (button.dataset.on) {
      const label = isOn ? button.dataset.on : button.dataset.off;
      button.setAttribute("aria-label", label);
      button.title = `${label}${/ \(.*\)$/.exec(button.title)?.[0] ?? ""}`;
    }
  }
};

const showRead = (row, number, isRead) => {
  if (row && isUnread(row) === isRead) {
    row.classList.toggle("un", !isRead);
    bumpUnread(row.dataset.feed, isRead ? -1 : 1);
  }
  if (isOpen(number)) {
    article().dataset.read = isRead ? "yes" : "no";
    press("is_read", isRead);
  }
};

export const setRead = (numbers, isRead, { isToasted = false } = {}) => {
  for (const number of numbers) showRead(rowOf(number), number, isRead);
  told(change(numbers, { is_read: isRead }));
  if (!isToasted || !numbers.length) return;
  const text = isRead ? say("marked", { count: numbers.length }) : say("unread");
  toast(text, () => setRead(numbers, !isRead));
};

const FIELDS = {
  is_starred: { name: "starred", count: "starred", on: "starred", off: "unstarred" },
  read_later: { name: "later", count: "later", on: "later", off: "not_later" },
};

const setMark = (field, number, isOn, { isToasted = true } = {}) => {
  const { name, count, on, off } = FIELDS[field];
  const row = rowOf(number);
  if (row) row.dataset[name] = isOn ? "yes" : "no";
  if (isOpen(number)) press(field, isOn);
  bump(count, isOn ? 1 : -1);
  told(change([number], { [field]: isOn }));
  if (isToasted) toast(say(isOn ? on : off), () => setMark(field, number, !isOn, { isToasted: false }));
};

// Change a mark of an entry to its opposite.
export const toggle = (field, number) => {
  if (!number) return;
  const row = rowOf(number);
  const button = isOpen(number) ? pane.querySelector(`[data-toggle="${field}"]`) : null;
  const isPressed = button?.getAttribute("aria-pressed") === "true";
  if (field === "is_read") {
    const isRead = row ? !isUnread(row) : isPressed;
    setRead([number], !isRead);
    return;
  }
  setMark(field, number, row ? row.dataset[FIELDS[field].name] !== "yes" : !isPressed);
};

// What the article shows is as old as its loading: the row knows better.
export const syncArticle = () => {
  const row = article() && rowOf(article().dataset.article);
  if (!row) return;
  press("is_starred", row.dataset.starred === "yes");
  press("read_later", row.dataset.later === "yes");
  press("is_read", !isUnread(row));
  article().dataset.read = isUnread(row) ? "no" : "yes";
};

export const readUpTo = (row) => {
  const all = rows();
  const numbers = all
    .slice(0, all.indexOf(row) + 1)
    .filter(isUnread)
    .map((each) => each.dataset.item);
  setRead(numbers, true, { isToasted: true });
};

// The whole list, up to the time at which it was shown: what came since stays unread.
export const readAll = async () => {
  const form = list.querySelector("[data-all-read]");
  try {
    const answer = await ask(form.action, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      headers: { Accept: "application/json" },
    });
    const { marked, entry_ids: numbers } = await answer.json();
    for (const row of rows()) row.classList.remove("un");
    syncArticle();
    refreshCounts();
    const back = async () => {
      for (const number of numbers) rowOf(number)?.classList.add("un");
      await change(numbers, { is_read: false });
      syncArticle();
      refreshCounts();
    };
    toast(say("marked", { count: marked }), numbers.length ? back : null);
  } catch {
    toast(say("offline"));
  }
};

export const saveTags = async (form, forget) => {
  const number = article().dataset.article;
  const tags = form.elements.tags.value
    .split(/[,，、]/)
    .map((each) => each.trim())
    .filter(Boolean);
  form.closest("details").open = false;
  forget(number);
  await told(change([number], { tags }));
  const place = pane.querySelector("[data-tag-list]");
  place.replaceChildren(
    ...tags.map((tag) => {
      const link = document.createElement("a");
      link.className = "badge";
      link.href = `/read?${new URLSearchParams({ tag })}`;
      link.textContent = tag;
      return link;
    })
  );
  toast(say("tagged"));
};
