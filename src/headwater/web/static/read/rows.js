// The rows of the list: which there are, which is open, more of them, and reading by scrolling past.
import { ask, list } from "./state.js";

const entries = document.getElementById("entries");
export const rows = () => (entries ? [...entries.querySelectorAll("[data-item]")] : []);
export const rowOf = (number) => entries?.querySelector(`[data-item="${number}"]`) ?? null;
export const linkOf = (row) => row.querySelector("a");
export const isUnread = (row) => row.classList.contains("un");

let pointed = null; // the row that keys move from
export const currentRow = () => pointed ?? entries?.querySelector("[data-item]:has([aria-current])") ?? null;

export const pointAt = (row, { focus = true } = {}) => {
  pointed = row;
  for (const link of entries.querySelectorAll("a[aria-current]")) link.removeAttribute("aria-current");
  linkOf(row).setAttribute("aria-current", "true");
  if (focus) linkOf(row).focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
};

// The row `by` places from the current one that fits; more rows are loaded when there are too few.
export const neighbour = async (by, fits = () => true) => {
  const from = currentRow();
  for (;;) {
    const all = rows();
    const at = from ? all.indexOf(from) : by > 0 ? -1 : all.length;
    const found = by > 0 ? all.slice(at + 1).find(fits) : all.slice(0, Math.max(at, 0)).reverse().find(fits);
    if (found || by < 0 || !(await loadMore())) return found ?? null;
  }
};

let loading = null;
export const loadMore = () => {
  const more = entries?.querySelector("[data-more]");
  if (!more) return Promise.resolve(false);
  loading ??= ask(more.dataset.more)
    .then((answer) => answer.text())
    .then((html) => {
      const part = document.createElement("template");
      part.innerHTML = html;
      const day = [...entries.querySelectorAll("[data-day]")].at(-1)?.textContent;
      const first = part.content.querySelector("[data-day]");
      if (first && first.textContent === day) first.remove();
      more.closest("li").replaceWith(part.content);
      watchRows();
      return true;
    })
    .catch(() => false)
    .finally(() => (loading = null));
  return loading;
};

// Rows that leave the list at its top are read, if the person wants that.
let onPassed = null;
const seen = new WeakSet();
const passing = new IntersectionObserver((changes) => {
  const passed = [];
  for (const { target, isIntersecting, boundingClientRect, rootBounds } of changes) {
    if (isIntersecting) seen.add(target);
    else if (seen.has(target) && rootBounds && boundingClientRect.bottom <= rootBounds.top + 1) passed.push(target);
  }
  if (passed.length) onPassed?.(passed);
});
const nearing = new IntersectionObserver((changes) => changes.some((each) => each.isIntersecting) && loadMore(), {
  rootMargin: "800px",
});

const watchRows = () => {
  if (onPassed) for (const row of rows()) if (isUnread(row)) passing.observe(row);
  const more = entries?.querySelector("[data-more]");
  if (more) nearing.observe(more);
};

export const startRows = (markPassed) => {
  onPassed = list.dataset.onScroll === "yes" ? markPassed : null;
  watchRows();
  // A picture that cannot be had leaves no hole.
  document.addEventListener(
    "error",
    ({ target }) => {
      if (!(target instanceof HTMLImageElement)) return;
      if (target.hasAttribute("data-icon")) target.remove();
      else target.closest(".th, .art")?.classList.add("none");
    },
    true
  );
};
