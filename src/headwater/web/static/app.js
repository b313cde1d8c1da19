// What the pages do by themselves: parts that renew, questions before what cannot be undone, choosing all rows.
"use strict";

// A part with data-live is fetched again every data-every milliseconds, while somebody can see it.
for (const part of document.querySelectorAll("[data-live]")) {
  const every = Number(part.dataset.every);
  const renew = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(part.dataset.live, { credentials: "same-origin", redirect: "error" });
        if (answer.ok) {
          const html = await answer.text();
          // Nobody wants a list to move under their keyboard, or what they have opened to close.
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
    }
    setTimeout(renew, every);
  };
  setTimeout(renew, every);
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

// A button with data-copy puts that text on the clipboard.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.classList.add("done");
});
