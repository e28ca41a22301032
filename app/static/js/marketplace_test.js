// The page of a qualification test: says when its time is over.
(() => {
  "use strict";
  addEventListener("countdown:end", () => {
    const text = document.createElement("p");
    const place = document.getElementById("time-over");
    text.textContent = place.dataset.words;
    text.className = "frame-over";
    place.replaceChildren(text);
  });
})();
