// Fetches the changing part of the page again and again, while somebody can see it.
"use strict";
const live = document.getElementById("live");
const every = Number(live.dataset.every);

async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch("/live", { credentials: "same-origin" });
      if (answer.ok) {
        const html = await answer.text();
        // Nobody wants a list to move under their pointer or keyboard.
        if (!live.matches(":focus-within")) live.innerHTML = html;
      }
      live.classList.toggle("stale", !answer.ok);
    } catch {
      live.classList.add("stale");
    }
  }
  setTimeout(refresh, every);
}
setTimeout(refresh, every);
