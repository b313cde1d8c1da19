// A feed is dragged onto a folder: its form is sent with that folder chosen.
let dragged = null;

document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.("[data-drag]") ?? null;
  if (dragged) event.dataTransfer.effectAllowed = "move";
});

document.addEventListener("dragover", (event) => {
  const folder = event.target.closest("[data-drop]");
  if (!dragged || !folder) return;
  event.preventDefault();
  folder.classList.add("drop-here");
});

document.addEventListener("dragleave", (event) => event.target.closest?.("[data-drop]")?.classList.remove("drop-here"));

document.addEventListener("drop", (event) => {
  const folder = event.target.closest("[data-drop]");
  if (!dragged || !folder) return;
  event.preventDefault();
  const form = dragged.querySelector("form");
  form.elements.folder.value = folder.dataset.drop;
  form.requestSubmit();
});
