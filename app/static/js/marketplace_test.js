// The page of a qualification test: says when its time is over.
(() => {
  "use strict";
  addEventListener("countdown:end", () => {
    const text = document.createElement("p");
    text.textContent = "The time for this test is over. It can no longer be handed in.";
    text.className = "frame-over";
    document.getElementById("time-over").replaceChildren(text);
  });
})();
