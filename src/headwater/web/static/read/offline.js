// Reading without a network: the service worker keeps what was loaded; the first unread articles are loaded ahead.
import { flush, hasWaiting } from "./state.js";
import { isUnread, rows } from "./rows.js";
import { refreshCounts } from "./tree.js";

const LOADED_AHEAD = 20;
const PAUSE_MS = 150;

const loadAhead = async (load) => {
  for (const row of rows().filter(isUnread).slice(0, LOADED_AHEAD)) {
    if (!navigator.onLine || document.hidden) return;
    await load(row.dataset.item).catch(() => {});
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
};

export const startOffline = (load) => {
  refreshCounts();
  addEventListener("offline", refreshCounts);
  addEventListener("online", () => {
    flush()
      .then(refreshCounts)
      .catch(() => {});
  });
  if (hasWaiting()) flush().catch(() => {});
  if (!("serviceWorker" in navigator)) return;
  navigator.serviceWorker
    .register("/service-worker.js")
    .then(() => navigator.serviceWorker.ready)
    .then(() => setTimeout(() => loadAhead(load), 1500))
    .catch(() => {}); // a private window, or a site without https: reading works all the same
};
