// The work page: asks before a return, and listens to the frame if the HIT has one.
// From the HIT's own origin: {dynahit: "return"} opens the question whether to return the HIT.
// From the site's externalSubmit page in the frame: {marketplace: "submitted", assignmentId} leads to the receipt.
(() => {
  "use strict";
  const frame = document.getElementById("hit-frame");
  const dialog = document.getElementById("return-dialog");
  const link = document.getElementById("return-link");
  const ask = () => { if (!dialog.open) dialog.showModal(); };
  link.addEventListener("click", (event) => { event.preventDefault(); ask(); });
  document.getElementById("return-cancel").addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => link.focus());

  if (frame) addEventListener("message", (event) => {
    const data = event.data;
    if (event.source !== frame.contentWindow || typeof data !== "object" || data === null) return;
    if (event.origin === frame.dataset.origin && data.dynahit === "return") ask();
    if (event.origin === location.origin && data.marketplace === "submitted"
        && data.assignmentId === frame.dataset.assignment) location.replace(frame.dataset.done);
  });

  addEventListener("countdown:end", () => {
    const text = document.createElement("p");
    const place = document.getElementById("time-over");
    text.textContent = place.dataset.words;
    text.className = "frame-over";
    place.replaceChildren(text);
  });
})();
