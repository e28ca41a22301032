// externalSubmit's answer in the HIT's frame: tells the work page of the same site that the assignment is in.
(() => {
  "use strict";
  const assignmentId = document.getElementById("stored").dataset.assignment;
  if (parent !== window) parent.postMessage({ marketplace: "submitted", assignmentId }, location.origin);
})();
