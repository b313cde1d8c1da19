// Trying an operation of the API: the form's fields become a request, and the answer is shown below it.
"use strict";

const SHOWN = 20000;

const tell = async (answer) => {
  const text = await answer.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // Not JSON: shown as it is.
  }
  return `${answer.status} ${answer.statusText}\n\n${shown.slice(0, SHOWN)}${shown.length > SHOWN ? "\n…" : ""}`;
};

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.try");
  if (!form) return;
  event.preventDefault();
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const field of form.querySelectorAll("[data-in]")) {
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.value) query.append(field.name, field.value);
  }
  const key = document.getElementById("api-key").value.trim();
  const body = form.elements.namedItem("body")?.value;
  const headers = { ...(key && { Authorization: `Bearer ${key}` }), ...(body && { "Content-Type": "application/json" }) };
  const shown = form.querySelector("pre");
  shown.hidden = false;
  try {
    const address = query.size ? `${path}?${query}` : path;
    shown.textContent = await tell(await fetch(address, { method: form.dataset.method, headers, body: body || undefined, credentials: "same-origin" }));
  } catch (error) {
    shown.textContent = String(error);
  }
});

// A link to an operation opens it.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
};
window.addEventListener("hashchange", open);
open();
