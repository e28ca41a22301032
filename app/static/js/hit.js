// The HIT pages: forms marked data-fetch are sent without leaving the page, drafts survive a reload, keys help.
// Every form works without this file.
(() => {
  "use strict";
  const said = document.getElementById("said");
  let unsaved = null;
  let timer = 0;
  let explaining = [];
  let lastKey = -Infinity;
  const writing = { pastes: 0, pasted: 0, keys: 0, seconds: 0 };

  const say = (words) => { if (said && words) said.textContent = words; };

  const tell = (error) => {
    const trouble = document.getElementById("trouble");
    if (!trouble) return;
    const box = document.createElement("div");
    box.className = "notice notice-error";
    const body = document.createElement("div");
    body.className = "notice-body";
    for (const [tag, text] of [["h2", error.title], ["p", [error.what, error.pay, error.next].filter(Boolean).join(" ")]]) {
      const part = document.createElement(tag);
      part.textContent = text;
      body.append(part);
    }
    box.append(body);
    trouble.replaceChildren(box);
    box.scrollIntoView({ block: "nearest" });
  };

  const fieldError = (form, name, message) => {
    const input = form.elements[name];
    const id = `${name}-error`;
    document.getElementById(id)?.remove();
    if (!input || !message) return;
    const text = document.createElement("span");
    text.id = id;
    text.className = "field-error";
    text.textContent = message;
    input.before(text);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", [`${name}-hint`, id].filter((part) => document.getElementById(part)).join(" "));
    input.focus();
    say(message);
  };

  // The places at which an answer stands, for the writer to choose one.
  const offer = (form, name, places) => {
    const box = document.getElementById(`${name}-which`);
    if (!box || !places?.length) return;
    const group = document.createElement("fieldset");
    group.className = "choices";
    const legend = document.createElement("legend");
    legend.textContent = "Which one do you mean?";
    group.append(legend);
    for (const { start, words } of places) {
      const label = document.createElement("label");
      label.className = "choice";
      const radio = document.createElement("input");
      Object.assign(radio, { type: "radio", name: `${name}_start`, value: start, required: true });
      const line = document.createElement("span");
      line.dir = "auto";
      const mark = document.createElement("mark");
      mark.className = "mine";
      mark.textContent = words[1];
      line.append(words[0], mark, words[2]);
      label.append(radio, " ", line);
      group.append(label);
    }
    const counted = form.elements[`${name}_start_utf16`];
    if (counted) counted.value = "";
    box.replaceChildren(group);
    group.querySelector("input").focus();
  };

  const busy = (form, on) => {
    const button = form.querySelector("button:not([type=button])");
    if (!button) return;
    if (on) { button.dataset.words = button.textContent; button.textContent = button.dataset.busy || button.textContent; }
    else if (button.dataset.words) button.textContent = button.dataset.words;
    // aria-disabled keeps the focus where a disabled button would lose it.
    button.setAttribute("aria-disabled", on ? "true" : "false");
    button.setAttribute("aria-busy", on ? "true" : "false");
    form.dataset.sending = on ? "1" : "";
  };

  const swap = (html) => {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    for (const element of [...fresh.body.children]) {
      const old = element.id && document.getElementById(element.id);
      if (!old) continue;
      old.replaceWith(element);
      wake(element);
      element.dispatchEvent(new CustomEvent("hit:swapped", { bubbles: true }));
    }
  };

  const after = (form) => {
    const answer = document.getElementById("model-answer");
    if (form.hasAttribute("data-item")) document.querySelector("#item h1")?.focus();
    if (form.dataset.reveal) document.getElementById(form.dataset.reveal)?.focus();
    if (!answer || !form.hasAttribute("data-ask")) return;
    say(answer.dataset.say);
    if ("done" in answer.dataset) document.getElementById("verdict")?.focus();
    if (answer.dataset.again) setTimeout(() => { if (form.isConnected && !form.dataset.sending) form.requestSubmit(); }, Number(answer.dataset.again));
    else answer.scrollIntoView({ block: "nearest" });
  };

  const send = async (form, submitter) => {
    if (form.dataset.sending) return;
    const quiet = form.hasAttribute("data-auto");
    const explains = form.hasAttribute("data-explain");
    // Whoever goes on to the next question does not wait for the words of the last one.
    if (form.hasAttribute("data-ask")) { for (const one of explaining) one.abort(); explaining = []; }
    const giveUp = new AbortController();
    if (explains) explaining.push(giveUp);
    busy(form, true);
    try {
      const body = new URLSearchParams(new FormData(form, submitter));
      if (form.hasAttribute("data-ask")) for (const [name, count] of Object.entries(writing)) body.set(`browser_${name}`, Math.round(count));
      const response = await fetch(form.action, { method: "POST", body, headers: { "X-Requested-With": "fetch" }, signal: giveUp.signal });
      if (response.headers.get("X-Fragment")) {
        document.getElementById("trouble")?.replaceChildren();
        if (form.hasAttribute("data-ask")) for (const name of Object.keys(writing)) writing[name] = 0;
        for (const input of form.querySelectorAll("textarea")) { document.getElementById(`${input.name}-error`)?.remove(); input.removeAttribute("aria-invalid"); }
        busy(form, false);
        swap(await response.text());
        after(form);
        return;
      }
      const found = await response.json();
      busy(form, false);
      if (found.field) { fieldError(form, found.field, found.message); offer(form, found.field, found.places); }
      else if (!quiet) tell(found.error);
    } catch {
      busy(form, false);
      if (!quiet && !giveUp.signal.aborted) tell({ title: "The connection failed", what: "Your text is still here, and no try is used twice for it.", next: "Check your connection and press the button again." });
    }
  };

  const wake = (root) => {
    for (const form of root.querySelectorAll("form[data-auto]")) send(form);
    for (const button of root.querySelectorAll("[data-return]")) {
      button.hidden = window.parent === window;
      button.addEventListener("click", () => window.parent.postMessage({ dynahit: "return" }, button.dataset.return));
    }
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (unsaved === form) unsaved = null;
    if (form.hasAttribute("data-fetch")) {
      event.preventDefault();
      send(form, event.submitter);
    } else if (form.dataset.sending) {
      event.preventDefault();
    } else if (form.hasAttribute("data-once")) {
      busy(form, true);
    }
  });

  // What is typed goes to the service as a draft: a browser may keep no storage for a frame of another site.
  const keepDraft = () => {
    clearTimeout(timer);
    const form = unsaved;
    unsaved = null;
    if (!form || form.dataset.sending) return;
    const body = new URLSearchParams(new FormData(form));
    fetch(form.dataset.draft, { method: "POST", body, keepalive: true, headers: { "X-Requested-With": "fetch" } }).catch(() => {});
  };
  document.addEventListener("input", (event) => {
    if (!event.target.form?.dataset.draft) return;
    unsaved = event.target.form;
    clearTimeout(timer);
    timer = setTimeout(keepDraft, 700);
  });
  addEventListener("pagehide", keepDraft);
  document.addEventListener("visibilitychange", () => { if (document.hidden) keepDraft(); });

  // How a text was written, in counts alone, as the page says below the button.
  const asked = (event) => event.target instanceof HTMLTextAreaElement && event.target.form?.hasAttribute("data-ask");
  const pasted = (event, data) => {
    if (!asked(event)) return;
    writing.pastes += 1;
    writing.pasted += data?.getData("text").length || 0;
  };
  document.addEventListener("paste", (event) => pasted(event, event.clipboardData));
  document.addEventListener("drop", (event) => pasted(event, event.dataTransfer));
  document.addEventListener("input", (event) => {
    if (!asked(event) || /^insertFrom(Paste|Drop)/.test(event.inputType)) return;
    const gap = (event.timeStamp - lastKey) / 1000;
    lastKey = event.timeStamp;
    writing.keys += 1;
    // Whoever stops to think is not typing.
    if (gap < 5) writing.seconds += gap;
  });

  document.addEventListener("keydown", (event) => {
    const inField = event.target.matches("textarea, input:not([type=radio]):not([type=checkbox])");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form?.hasAttribute("data-fetch")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    } else if (!inField && !event.ctrlKey && !event.metaKey && !event.altKey && /^[1-9]$/.test(event.key)) {
      const radio = document.querySelector(`input[data-digit="${event.key}"]`);
      if (radio) { event.preventDefault(); radio.checked = true; radio.focus(); }
    }
  });

  addEventListener("countdown:end", () => tell({ title: "The time for this HIT is over", what: "It can no longer be submitted.", next: "You can accept another HIT from your list." }));

  // While the model loads, the page looks after it and takes its words back.
  const warming = document.querySelector("[data-ready]");
  const look = async () => {
    try {
      const found = await (await fetch(warming.dataset.ready)).json();
      if (found.model !== "loading") { warming.textContent = found.model === "ready" ? "The model is ready." : "The model is not available at the moment. Ask anyway: if it does not answer you can submit, and you are paid."; say(warming.textContent); return; }
    } catch { /* the next look may succeed */ }
    setTimeout(look, 2000);
  };
  if (warming) setTimeout(look, 1000);

  const handIn = document.getElementById("hand-in");
  if (handIn) {
    const note = document.querySelector("[data-auto-note]");
    if (note) note.hidden = false;
    handIn.submit();
  }
  wake(document);
  // Whoever did not agree is asked by the marketplace whether to return the HIT.
  const declined = document.querySelector("[data-return-now]");
  if (declined && window.parent !== window) window.parent.postMessage({ dynahit: "return" }, declined.dataset.returnNow);
  if (document.getElementById("verdict") && document.querySelector("#model-answer[data-done]")) document.getElementById("verdict").focus({ preventScroll: true });
})();
