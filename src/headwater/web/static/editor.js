// Steps of a pipeline as cards with forms. The JSON below them stays what is saved; each follows the other.
// It runs as soon as the form is there, not after the page: else what is below would move when the cards appear.
"use strict";

const editor = document.getElementById("steps-editor");
const text = document.querySelector("textarea[name=steps]");
const types = new Map(JSON.parse(editor.dataset.types).map((type) => [type.name, type]));
const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
const hint = (name) => document.getElementById("step-hints").content.querySelector(`[data-${name}]`).textContent;
let steps = [];
let dragged = null;

const make = (tag, values = {}, ...inside) => {
  const element = Object.assign(document.createElement(tag), values);
  element.append(...inside);
  return element;
};

const unsaved = document.getElementById("unsaved");
const outline = document.getElementById("outline");
const titleOf = (step) => types.get(step.step_type)?.title ?? step.step_type;

const save = () => {
  text.value = JSON.stringify(steps, null, 2);
  unsaved.hidden = false;
};

const change = (todo) => {
  todo();
  save();
  render();
};

const move = (from, to) => {
  if (to < 0 || to >= steps.length) return;
  change(() => steps.splice(to, 0, steps.splice(from, 1)[0]));
  editor.querySelectorAll(".step")[to].querySelector(to > from ? "[data-down]" : "[data-up]").focus();
};

const put = (config, key, value) => {
  if (value === undefined || value === "") delete config[key];
  else config[key] = value;
  save();
};

// The field of a form for one key of a step's config.
const field = (config, key) => {
  const value = config[key.name];
  const isLong = key.kind === "text" && typeof value === "string" && (value.includes("\n") || value.length > 80);
  let input;
  if (key.kind === "yes_no" || key.kind === "choice") {
    const choices = key.kind === "choice" ? key.choices.map((each) => [each, each]) : [[true, hint("yes")], [false, hint("no")]];
    input = make("select", {}, make("option", { value: "" }, `${hint("default")} ${key.default}`));
    for (const [each, name] of choices) {
      input.append(make("option", { value: JSON.stringify(each), selected: each === value }, String(name)));
    }
    input.onchange = () => put(config, key.name, input.value ? JSON.parse(input.value) : undefined);
  } else if (key.kind === "lines") {
    input = make("textarea", { rows: 3, value: (Array.isArray(value) ? value : []).join("\n") });
    input.onchange = () => {
      const lines = input.value.split("\n").map((line) => line.trim()).filter(Boolean);
      put(config, key.name, lines.length ? lines : undefined);
    };
  } else if (key.kind === "json") {
    input = make("textarea", { rows: 3, value: value === undefined ? "" : JSON.stringify(value, null, 2) });
    input.onchange = () => {
      try {
        put(config, key.name, input.value.trim() ? JSON.parse(input.value) : undefined);
        input.setCustomValidity("");
      } catch (error) {
        input.setCustomValidity(error.message);
        input.reportValidity();
      }
    };
  } else {
    input = make(isLong ? "textarea" : "input", { value: value ?? "", placeholder: key.default === "null" ? "" : key.default });
    if (isLong) input.rows = 5;
    if (key.kind === "number") input.inputMode = "decimal";
    input.onchange = () => {
      const number = Number(input.value);
      put(config, key.name, key.kind === "number" && input.value && !Number.isNaN(number) ? number : input.value);
    };
  }
  input.spellcheck = false;
  const told = make("span", { className: "hint" }, key.meaning + (key.kind === "lines" ? ` ${hint("lines")}` : ""));
  const mark = key.required ? " *" : "";
  return make("label", { className: input.rows > 3 || key.kind === "json" ? "all" : "" }, key.title + mark, input, told);
};

// What is among the options that are folded away.
const tellOptions = (fields) => {
  const names = [...fields.children].map((label) => label.firstChild.textContent);
  return make("span", { className: "soft" }, ` ${names.slice(0, 4).join(hint("comma"))}${names.length > 4 ? " …" : ""}`);
};

const card = (step, place) => {
  const shown = clone("step-card");
  const type = types.get(step.step_type);
  step.config ??= {};
  shown.querySelector(".no").textContent = place + 1;
  shown.id = `step-${place + 1}`;
  shown.querySelector("h2").textContent = titleOf(step);
  const critical = shown.querySelector("[data-critical]");
  critical.checked = step.is_critical !== false;
  critical.onchange = () => {
    step.is_critical = critical.checked;
    save();
  };
  const name = ` ${place + 1} ${titleOf(step)}`;
  for (const button of shown.querySelectorAll("header button")) button.ariaLabel += name;
  shown.querySelector("[data-up]").onclick = () => move(place, place - 1);
  shown.querySelector("[data-down]").onclick = () => move(place, place + 1);
  shown.querySelector("[data-remove]").onclick = () => change(() => steps.splice(place, 1));
  shown.querySelector(".grip").ondragstart = () => (dragged = place);
  shown.ondragover = (event) => dragged !== null && event.preventDefault();
  shown.ondrop = (event) => {
    event.preventDefault();
    if (dragged !== null && dragged !== place) move(dragged, place);
    dragged = null;
  };
  const [first, more] = shown.querySelectorAll(".fields");
  for (const key of type?.keys ?? []) {
    (key.required || key.name in step.config ? first : more).append(field(step.config, key));
  }
  if (more.childElementCount) more.previousElementSibling.append(tellOptions(more));
  else more.parentElement.remove();
  return shown;
};

const render = () => {
  const open = [...editor.querySelectorAll(".step details")].map((each) => each.open);
  editor.replaceChildren(...steps.map(card));
  [...editor.querySelectorAll(".step details")].forEach((each, place) => (each.open = open[place] ?? false));
  const adding = clone("step-add");
  const choice = adding.querySelector("select");
  for (const [name, type] of types) choice.append(make("option", { value: name }, type.title));
  adding.querySelector("button").onclick = () => change(() => steps.push({ step_type: choice.value, config: {} }));
  editor.append(adding);
  outline.replaceChildren(...steps.map((step, place) => make("li", {}, make("a", { className: "node", href: `#step-${place + 1}` }, make("span", { className: "no" }, String(place + 1)), titleOf(step), make("span", { className: "end" })))));
  document.querySelector(".outline [data-count]").textContent = `${hint("steps")}: ${steps.length}`;
};

// Tries the steps as they are on an item; what each gives is shown in its card.
const form = document.getElementById("edit");
const trying = async (item) => {
  const trial = document.querySelector("#tried > div");
  const sent = new FormData(form);
  if (item) sent.set("item", item);
  trial.classList.add("stale");
  try {
    const answer = await fetch("/pipelines/try", { method: "POST", body: new URLSearchParams(sent), credentials: "same-origin" });
    if (!answer.ok) throw new Error(String(answer.status));
    trial.innerHTML = await answer.text();
    for (const part of trial.querySelectorAll("[data-tried]")) {
      const place = Number(part.dataset.tried);
      const shown = editor.querySelectorAll(".step")[place]?.querySelector(".outp");
      const mark = outline.children[place]?.querySelector(".end");
      mark?.replaceChildren(part.querySelector(".i").cloneNode(true));
      if (shown) {
        shown.hidden = false;
        shown.replaceChildren(part);
      }
    }
  } catch {
    trial.replaceChildren(make("p", { className: "notice bad" }, hint("failed")));
  }
  trial.classList.remove("stale");
};
document.querySelector("[data-try]")?.addEventListener("click", () => void trying());
document.addEventListener("change", (event) => "tryItem" in event.target.dataset && void trying(event.target.value));
form.addEventListener("input", () => (unsaved.hidden = false));
window.addEventListener("beforeunload", (event) => !unsaved.hidden && !form.dataset.sent && event.preventDefault());
form.addEventListener("submit", () => (form.dataset.sent = "yes"));

const read = () => {
  try {
    const written = JSON.parse(text.value || "[]");
    if (!Array.isArray(written)) throw new TypeError("a list");
    steps = written;
    render();
  } catch {
    editor.replaceChildren(make("p", { className: "notice late" }, editor.dataset.broken));
    text.closest("details").open = true;
  }
};

text.addEventListener("input", read);
read();
