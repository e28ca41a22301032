// Three functions that ExternalQuestion and HTMLQuestion pages of MTurk's time expect, under the names they call:
// turkGetParam, turkGetSubmitToHost, turkSetAssignmentID. Described in docs/marketplace.md.
(function () {
  "use strict";

  const PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE";
  const MUST_ACCEPT = "You must ACCEPT the HIT before you can submit the results.";
  // In a preview the page isn't told where to submit; the marketplace is where this file came from.
  const home = document.currentScript ? new URL(document.currentScript.src).origin : location.origin;

  // A parameter of the page's address, decoded; defaultValue, or "", if it's not there.
  function turkGetParam(name, defaultValue) {
    const value = new URLSearchParams(location.search).get(name);
    return value === null ? (defaultValue === undefined ? "" : defaultValue) : value;
  }

  // The origin that externalSubmit stands on, without a slash at its end.
  function turkGetSubmitToHost() {
    const given = turkGetParam("turkSubmitTo", home);
    // Anything but http would let a forged link run its own script as this page.
    return /^https?:\/\//i.test(given) ? given.replace(/\/+$/, "") : home;
  }

  // Prepares a form: its action, its assignmentId, and its button, which is off in a preview.
  function turkSetAssignmentID(formId, buttonId) {
    const form = document.getElementById(formId || "mturk_form");
    const button = document.getElementById(buttonId || "submitButton");
    const assignmentId = turkGetParam("assignmentId", "");
    if (button && assignmentId === PREVIEW) {
      say(button, MUST_ACCEPT);
      button.disabled = true;
    }
    if (!form) return;
    let field = form.querySelector("[name=assignmentId]") || document.getElementById("assignmentId");
    if (!field) {
      field = document.createElement("input");
      field.type = "hidden";
      form.append(field);
    }
    field.name = "assignmentId";
    field.value = assignmentId;
    form.action = turkGetSubmitToHost() + "/mturk/externalSubmit";
  }

  function say(button, words) {
    if (button.tagName === "INPUT") button.value = words;
    else button.textContent = words;
  }

  window.turkGetParam = turkGetParam;
  window.turkGetSubmitToHost = turkGetSubmitToHost;
  window.turkSetAssignmentID = turkSetAssignmentID;
})();
