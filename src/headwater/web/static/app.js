// What pages do in the browser: parts that renew, questions before what cannot be undone, ticking all rows, menus.
"use strict";

// The time zone, so that the server can show local times from the next page on.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone && !document.cookie.includes(`headwater_zone=${zone}`)) {
  document.cookie = `headwater_zone=${zone}; path=/; max-age=31536000; samesite=lax`;
}

// A part with data-live is fetched again when the server says that something has changed, at most once a second; and
// now and then anyway, because "3 min ago" ages. Where no stream can be had, it is fetched every few seconds.
const liveParts = [...document.querySelectorAll("[data-live]")];
const RENEW_MS = 1000;
const AGE_MS = 30000;
const ASK_MS = 5000;
const renew = async (part) => {
  try {
    const answer = await fetch(part.dataset.live, { credentials: "same-origin", redirect: "error" });
    if (answer.ok) {
      const html = await answer.text();
      // A list does not move under the keyboard, and what was opened stays open.
      if (!part.matches(":focus-within")) {
        const states = new Map([...part.querySelectorAll("details[id]")].map((each) => [each.id, each.open]));
        part.innerHTML = html;
        for (const each of part.querySelectorAll("details[id]")) {
          if (states.has(each.id)) each.open = states.get(each.id);
        }
      }
    }
    part.classList.toggle("stale", !answer.ok);
  } catch {
    part.classList.add("stale");
  }
};
if (liveParts.length) {
  let last = Date.now();
  let planned = null;
  let stream = null;
  const renewAll = () => {
    clearTimeout(planned);
    planned = null;
    last = Date.now();
    for (const part of liveParts) void renew(part);
  };
  const renewSoon = () => {
    planned ??= setTimeout(renewAll, Math.max(0, last + RENEW_MS - Date.now()));
  };
  // Browsers open few connections to one site: a page that is not seen gives its own back.
  const listen = () => {
    if (document.hidden) {
      stream?.close();
      stream = null;
    } else if (!stream) {
      stream = new EventSource("/events");
      stream.addEventListener("changed", renewSoon);
    }
  };
  document.addEventListener("visibilitychange", listen);
  window.addEventListener("pagehide", () => stream?.close());
  listen();
  setInterval(() => {
    const every = stream?.readyState === EventSource.OPEN ? AGE_MS : ASK_MS;
    if (!document.hidden && Date.now() - last >= every) renewAll();
  }, ASK_MS);
}

// A part with data-load is fetched once, after the page is there.
for (const part of document.querySelectorAll("[data-load]")) {
  fetch(part.dataset.load, { credentials: "same-origin", redirect: "error" })
    .then(async (answer) => {
      if (answer.ok) part.innerHTML = await answer.text();
    })
    .catch(() => part.classList.add("stale"));
}

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.confirm ?? event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// A box with data-all ticks every box of that name in its form.
document.addEventListener("change", (event) => {
  const name = event.target.dataset?.all;
  if (!name) return;
  for (const box of event.target.form.querySelectorAll(`input[type=checkbox][name="${CSS.escape(name)}"]`)) {
    box.checked = event.target.checked;
  }
});

// How many boxes of a name are ticked.
const countTicked = (form) => {
  for (const place of form?.querySelectorAll("[data-ticked]") ?? []) {
    const name = CSS.escape(place.dataset.ticked);
    const count = form.querySelectorAll(`input[name="${name}"]:checked`).length;
    place.textContent = count || "";
  }
};
document.addEventListener("change", (event) => {
  countTicked(event.target.form);
  if ("submit" in event.target.dataset) event.target.form.requestSubmit();
});

// A field with data-filter hides the rows of a table that lack its words.
document.addEventListener("input", (event) => {
  const table = document.getElementById(event.target.dataset?.filter ?? "");
  if (!table) return;
  const words = event.target.value.toLowerCase().trim();
  for (const row of table.querySelectorAll("[data-words]")) {
    row.hidden = !row.dataset.words.toLowerCase().includes(words);
  }
});

// A form with data-preview shows what it would make, a moment after each change.
for (const form of document.querySelectorAll("[data-preview]")) {
  const PAUSE_MS = 400;
  const place = document.getElementById(form.dataset.into);
  let planned = null;
  let number = 0;
  const preview = async () => {
    const mine = ++number;
    const answer = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)), credentials: "same-origin" });
    if (answer.ok && mine === number) place.innerHTML = await answer.text();
  };
  form.addEventListener("input", () => {
    clearTimeout(planned);
    planned = setTimeout(() => void preview(), PAUSE_MS);
  });
  void preview();
}

// A button with data-copy puts that text on the clipboard; one with data-copy-address, an address on this site.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-address]");
  if (!button) return;
  const text = button.dataset.copy ?? new URL(button.dataset.copyAddress, location.href).href;
  await navigator.clipboard.writeText(text);
  button.classList.add("done");
});

// A menu closes when something else is clicked, or by Escape.
const closeMenus = (target) => {
  for (const menu of document.querySelectorAll("details[name=menu][open]")) {
    if (!target || !menu.contains(target)) menu.open = false;
  }
};
document.addEventListener("click", (event) => closeMenus(event.target));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus();
});

// A file dropped on a form with data-drop is sent by it.
for (const form of document.querySelectorAll("[data-drop]")) {
  const isOver = (event, over) => {
    event.preventDefault();
    form.classList.toggle("over", over);
  };
  form.addEventListener("dragover", (event) => isOver(event, true));
  form.addEventListener("dragleave", (event) => isOver(event, false));
  form.addEventListener("drop", (event) => {
    isOver(event, false);
    const field = form.querySelector("input[type=file]");
    field.files = event.dataTransfer.files;
    if (field.files.length) form.requestSubmit();
  });
}

// Rows of a table: arrow keys go from row to row, x ticks the row, Enter opens it.
for (const table of document.querySelectorAll("table[data-keys]")) {
  const rows = () => [...table.tBodies[0].rows];
  const go = (row) => row?.querySelector("th a, td a")?.focus();
  table.addEventListener("keydown", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = rows().indexOf(row);
    if (event.key === "ArrowDown") go(rows()[place + 1]);
    else if (event.key === "ArrowUp") go(rows()[place - 1]);
    else if (event.key === "Home") go(rows()[0]);
    else if (event.key === "End") go(rows().at(-1));
    else if (event.key === "x") row.querySelector("input[type=checkbox]")?.click();
    else return;
    event.preventDefault();
  });
}
