// Sound and video: they go on from where they were, at the speed that was chosen, and while the next article is read.
const SPEEDS = [1, 1.25, 1.5, 1.75, 2, 0.8];
const SAVED_EVERY_S = 5;
const KEPT = 200; // positions
const dock = document.getElementById("dock");

const positions = () => JSON.parse(localStorage.getItem("headwater-positions") ?? "{}");
const savePosition = (key, seconds) => {
  const all = positions();
  delete all[key];
  if (seconds > 0) all[key] = Math.floor(seconds);
  localStorage.setItem("headwater-positions", JSON.stringify(Object.fromEntries(Object.entries(all).slice(-KEPT))));
};

const secondsOf = (text) => text.split(":").reduce((total, part) => 60 * total + (Number(part) || 0), 0);
const speed = () => Number(localStorage.getItem("headwater-speed")) || 1;

const start = (figure) => {
  const media = figure.querySelector("audio, video");
  const key = figure.dataset.player;
  const faster = figure.querySelector("[data-speed]");
  let saved = 0;
  const setSpeed = (value) => {
    media.playbackRate = media.defaultPlaybackRate = value;
    faster.textContent = `${value}×`;
  };
  setSpeed(speed());
  media.addEventListener("loadedmetadata", () => {
    const at = positions()[key];
    if (at && at < media.duration - SAVED_EVERY_S) media.currentTime = at;
  });
  media.addEventListener("timeupdate", () => {
    if (Math.abs(media.currentTime - saved) < SAVED_EVERY_S) return;
    saved = media.currentTime;
    savePosition(key, saved);
  });
  media.addEventListener("pause", () => savePosition(key, media.currentTime));
  media.addEventListener("ended", () => savePosition(key, 0));
  faster.addEventListener("click", () => {
    const next = SPEEDS[(SPEEDS.indexOf(media.playbackRate) + 1) % SPEEDS.length];
    localStorage.setItem("headwater-speed", next);
    setSpeed(next);
  });
  for (const button of figure.querySelectorAll("[data-skip]")) {
    button.addEventListener("click", () => (media.currentTime += Number(button.dataset.skip)));
  }
  figure.classList.add("ready");
};

export const startPlayers = (pane) => {
  for (const figure of pane.querySelectorAll("[data-player]:not(.ready)")) {
    const docked = dock.querySelector(`[data-player="${figure.dataset.player}"]`);
    if (docked) {
      figure.replaceWith(docked);
      dock.hidden = true;
    } else start(figure);
  }
  for (const button of pane.querySelectorAll("[data-seek]")) {
    button.addEventListener("click", () => {
      const media = pane.querySelector("[data-player] audio, [data-player] video");
      if (!media) return;
      media.currentTime = secondsOf(button.dataset.seek);
      media.play();
    });
  }
};

// What plays goes on in a corner when its article is closed.
export const dockPlayer = (pane) => {
  for (const media of pane.querySelectorAll("[data-player] audio, [data-player] video")) {
    if (media.paused) continue;
    dock.querySelector("audio, video")?.pause();
    dock.replaceChildren(media.closest("[data-player]"));
    dock.hidden = false;
    return;
  }
  if (dock.querySelector("audio, video")?.paused) {
    dock.replaceChildren();
    dock.hidden = true;
  }
};
