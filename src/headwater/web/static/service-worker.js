// Keeps what the reader loaded, and shows it when there is no network. Everything else goes to the server untouched.
const PAGES = "headwater-pages-1";
const FILES = "headwater-files-1";
const MOST_PAGES = 600;
const MOST_FILES = 600;
const WAIT_MS = 5000; // for a slow network, when there is a copy

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) =>
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((name) => ![PAGES, FILES].includes(name)).map((name) => caches.delete(name))))
      .then(() => clients.claim())
  )
);

const kindOf = (url) => {
  if (url.pathname === "/read" || /^\/read\/(rows|items\/\d+)$/.test(url.pathname)) return PAGES;
  if (url.pathname.startsWith("/static/") || ["/picture", "/manifest.webmanifest"].includes(url.pathname)) return FILES;
  return null;
};

// An article is kept once, whatever list it was opened from.
const keyOf = (url) => {
  const part = /^\/read\/items\/(\d+)$/.exec(url.pathname);
  const text = url.searchParams.get("text");
  return part ? `${url.origin}${url.pathname}${text ? `?text=${encodeURIComponent(text)}` : ""}` : url.href;
};

const trim = async (cache, most) => {
  const keys = await cache.keys();
  await Promise.all(keys.slice(0, Math.max(0, keys.length - most)).map((key) => cache.delete(key)));
};

const keep = async (kind, key, answer) => {
  const cache = await caches.open(kind);
  await cache.delete(key); // so that it is the youngest
  await cache.put(key, answer);
  await trim(cache, kind === PAGES ? MOST_PAGES : MOST_FILES);
};

// What one person has read, pictures too, is not kept for the next; nor what arrives after they have left.
let leavings = 0;
const forgetAll = () => {
  leavings += 1;
  return Promise.all([PAGES, FILES].map((name) => caches.delete(name)));
};

const fromNetwork = async (event, kind, key) => {
  const before = leavings;
  const answer = await fetch(event.request);
  if (answer.ok && !answer.redirected && before === leavings) event.waitUntil(keep(kind, key, answer.clone()));
  else if (answer.redirected && new URL(answer.url).pathname === "/login") await forgetAll(); // another person may sign in
  return answer;
};

const find = async (kind, key, url) => {
  const cache = await caches.open(kind);
  const exact = await cache.match(key);
  if (exact || url.pathname !== "/read") return exact;
  // The list of an article that was opened inside it, else the list one begins with.
  const list = new URL(url);
  list.searchParams.delete("item");
  list.searchParams.delete("text");
  return (await cache.match(list.href)) ?? cache.match(`${url.origin}/read`);
};

const answer = async (event, kind, url) => {
  const key = keyOf(url);
  if (kind === FILES && url.pathname === "/picture") {
    const copy = await find(kind, key, url);
    if (copy) return copy;
  }
  const network = fromNetwork(event, kind, key);
  network.catch(() => {});
  const late = new Promise((done) => setTimeout(done, WAIT_MS)).then(() => find(kind, key, url)).then((copy) => copy ?? network);
  try {
    return await Promise.race([network, late]);
  } catch (error) {
    const copy = await find(kind, key, url);
    if (copy) return copy;
    throw error;
  }
};

addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.origin !== location.origin) return;
  if (event.request.method === "POST" && url.pathname === "/logout") event.waitUntil(forgetAll());
  if (event.request.method !== "GET") return;
  const kind = kindOf(url);
  if (kind) event.respondWith(answer(event, kind, url));
});
