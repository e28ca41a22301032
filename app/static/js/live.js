// Keeps a part of the page up to date: asks for the page's own address every [data-live] seconds and exchanges those
// [data-part] elements of #<data-live-from> that changed. A part that holds the focus or a selection is left as it is until
// it does not, tables keep how far they were scrolled, and nothing is asked while the page is not seen or is paused.
// What changed is said through a polite live region, in the words of the parts' data-say.
(() => {
  "use strict";
  const bar = document.querySelector("[data-live]");
  if (!bar) return;
  const place = document.getElementById(bar.dataset.liveFrom);
  const state = bar.querySelector("[data-live-state]");
  const button = bar.querySelector("[data-live-pause]");
  const said = document.querySelector("[data-live-said]");
  const pauseWords = button.textContent;
  let paused = false;
  let over = false;
  let asking = false;

  const tell = (name) => { if (state.textContent !== state.dataset[name]) state.textContent = state.dataset[name]; };
  const sayings = () => [...place.querySelectorAll("[data-say]")].map((part) => part.dataset.say).join(" ");
  const isHeld = (part) => {
    const selection = getSelection();
    const selected = selection && !selection.isCollapsed && selection.containsNode(part, true);
    return part.contains(document.activeElement) || selected;
  };

  const exchange = (old, part) => {
    const scrolled = [...old.querySelectorAll(".table-wrap")].map((table) => table.scrollLeft);
    old.replaceWith(part);
    part.querySelectorAll(".table-wrap").forEach((table, number) => { table.scrollLeft = scrolled[number] || 0; });
  };

  const update = (html) => {
    const before = sayings();
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const parts = [...holder.content.querySelectorAll("[data-part]")];
    if (!parts.length) return false;
    let last = null;
    for (const part of parts) {
      const old = document.getElementById(part.id);
      if (!old) {
        if (last) last.after(part); else place.prepend(part);
        last = part;
      } else if (old.outerHTML !== part.outerHTML && !isHeld(old)) {
        exchange(old, part);
        last = part;
      } else {
        last = old;
      }
    }
    const now = sayings();
    if (now !== before) said.textContent = now;
    return true;
  };

  const ask = async () => {
    if (paused || over || asking || document.hidden) return;
    asking = true;
    try {
      const response = await fetch(location.href, { headers: { "X-Requested-With": "fetch" }, credentials: "same-origin" });
      if (response.redirected) {
        over = true;
        tell("signedOut");
      } else if (!response.ok || !update(await response.text())) {
        tell("failed");
      } else {
        tell("byItself");
      }
    } catch {
      tell("failed");
    }
    asking = false;
  };

  button.hidden = false;
  tell("byItself");
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? button.dataset.goOn : pauseWords;
    tell(paused ? "paused" : "byItself");
    if (!paused) ask();
  });
  bar.querySelector("[data-live-reload]").addEventListener("click", (event) => {
    event.preventDefault();
    const was = paused;
    paused = false;
    ask().then(() => { paused = was; if (was) tell("paused"); });
  });
  document.addEventListener("visibilitychange", ask);
  setInterval(ask, Number(bar.dataset.live) * 1000);
})();
