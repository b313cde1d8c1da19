// Gestures: a row to the right is read or unread, to the left starred; an article to the side is the next or previous.
import { isPhone, main } from "./state.js";

const DECIDED_PX = 12; // from here on it is a swipe, or it is not
const DONE_PX = 84;

const sign = (row, isRight) => {
  let behind = row.querySelector(".behind");
  if (!behind) {
    behind = document.createElement("div");
    behind.className = "behind";
    row.prepend(behind);
  }
  behind.className = `behind ${isRight ? "read" : "star"}`;
  const mark = row.querySelector(isRight ? ".mark.later svg" : ".mark.star svg")?.cloneNode(true);
  behind.replaceChildren(...(mark ? [mark] : []));
};

export const startTouch = ({ onRead, onStar, onTurn }) => {
  let swipe = null;
  const end = () => {
    if (!swipe) return;
    const { row, by } = swipe;
    if (row) {
      row.querySelector("a").style.removeProperty("translate");
      row.querySelector(".behind")?.remove();
      if (by >= DONE_PX) onRead(row);
      if (by <= -DONE_PX) onStar(row);
    } else if (Math.abs(by) >= DONE_PX) onTurn(by < 0 ? 1 : -1);
    swipe = null;
  };
  document.addEventListener(
    "touchstart",
    (event) => {
      swipe = null;
      if (event.touches.length !== 1) return;
      const { clientX: x, clientY: y } = event.touches[0];
      const row = event.target.closest("[data-item]");
      const isArticle = isPhone() && main.classList.contains("has-item") && event.target.closest(".post");
      // The browser's own gesture begins at the edge; tables and code scroll sideways themselves.
      if (x < 24 || x > innerWidth - 24 || event.target.closest("pre, table, audio, video, input")) return;
      if (row || isArticle) swipe = { row, x, y, by: 0, isDecided: false };
    },
    { passive: true }
  );
  document.addEventListener(
    "touchmove",
    (event) => {
      if (!swipe) return;
      const across = event.touches[0].clientX - swipe.x;
      const down = event.touches[0].clientY - swipe.y;
      if (!swipe.isDecided) {
        if (Math.abs(down) > DECIDED_PX) swipe = null;
        else if (Math.abs(across) > DECIDED_PX) swipe.isDecided = true;
        if (!swipe?.isDecided) return;
      }
      if (event.cancelable) event.preventDefault();
      swipe.by = across;
      if (swipe.row) {
        sign(swipe.row, across > 0);
        swipe.row.querySelector("a").style.translate = `${across}px 0`;
      }
    },
    { passive: false }
  );
  document.addEventListener("touchend", end);
  document.addEventListener("touchcancel", () => {
    if (swipe) swipe.by = 0;
    end();
  });
};
