// Counts every [data-countdown] down from the server's seconds and announces 5 minutes, 1 minute and the end.
// The words stand in the page, in its language. At the end the element dispatches a bubbling "countdown:end" event.
(() => {
  "use strict";
  const two = (n) => String(n).padStart(2, "0");
  const clock = (s) => {
    const minutes = Math.floor((s % 3600) / 60);
    return s >= 3600 ? `${Math.floor(s / 3600)}:${two(minutes)}:${two(s % 60)}` : `${minutes}:${two(s % 60)}`;
  };
  for (const element of document.querySelectorAll("[data-countdown]")) {
    const value = element.querySelector("[data-countdown-value]");
    const said = element.parentNode.querySelector("[data-countdown-said]");
    const end = Date.now() + Number(element.dataset.countdown) * 1000;
    let before = Infinity;
    const tick = () => {
      const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
      value.textContent = clock(left);
      element.classList.toggle("countdown-soon", left <= 300);
      for (const mark of [300, 60, 0]) {
        if (left <= mark && before > mark && before !== Infinity && said) said.textContent = said.dataset[mark];
      }
      before = left;
      if (left === 0) {
        clearInterval(timer);
        element.dispatchEvent(new CustomEvent("countdown:end", { bubbles: true }));
      }
    };
    const timer = setInterval(tick, 1000);
    tick();
  }
  // A page from the back-forward cache would count from an old number.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
})();
