// Following from anywhere: links of the kind web+feed:, and a bookmark for the browser's bar.
const button = document.querySelector("[data-register-feed]");
if (!navigator.registerProtocolHandler) button.parentElement.hidden = true;
button.addEventListener("click", () => {
  navigator.registerProtocolHandler("web+feed", `${location.origin}/subscribe?url=%s`);
  document.querySelector("[data-registered]").hidden = false;
});
// It is to be dragged: here it would only follow this page.
document.querySelector("[data-bookmarklet]").addEventListener("click", (event) => event.preventDefault());
