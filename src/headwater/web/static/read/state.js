// What the reader's scripts share: words in the page's language, requests, and changes that wait for the network.
export const list = document.getElementById("list");
export const pane = document.getElementById("article");
export const main = document.getElementById("content");
export const isPhone = () => matchMedia("(max-width: 720px)").matches;

const words = JSON.parse(document.getElementById("words").content.textContent);
export const say = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

export const ask = async (address, options = {}) => {
  const answer = await fetch(address, { credentials: "same-origin", redirect: "error", ...options });
  if (!answer.ok) throw Object.assign(new Error(`${answer.status}`), { status: answer.status });
  return answer;
};

// Changes are kept until the server has them: offline ones are sent when the network is back.
const QUEUE = `headwater-changes-${list.dataset.user}`;
const MOST_AT_ONCE = 1000;
const RETRY_MS = 4000;
const waiting = () => JSON.parse(localStorage.getItem(QUEUE) ?? "[]");
const keep = (changes) => localStorage.setItem(QUEUE, JSON.stringify(changes));
let sending = null;

const sendAll = async () => {
  for (let changes = waiting(); changes.length; changes = waiting()) {
    try {
      await ask("/api/entries", {
        method: "PATCH",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(changes[0]),
        keepalive: true,
      });
    } catch (error) {
      if (!error.status || error.status >= 500) return false; // later
      keep(waiting().slice(1));
      throw error;
    }
    keep(waiting().slice(1));
  }
  return true;
};

export const flush = () => {
  sending ??= sendAll()
    .then((sent) => {
      if (!sent) setTimeout(() => flush().catch(() => {}), RETRY_MS);
      return sent;
    })
    .finally(() => (sending = null));
  return sending;
};

export const change = (numbers, changes) => {
  const parts = [];
  for (let at = 0; at < numbers.length; at += MOST_AT_ONCE) {
    parts.push({ entry_ids: numbers.slice(at, at + MOST_AT_ONCE).map(Number), ...changes });
  }
  keep([...waiting(), ...parts]);
  return flush();
};

export const hasWaiting = () => waiting().length > 0;
