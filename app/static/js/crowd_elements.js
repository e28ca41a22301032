// The basic crowd-html elements for pages of MTurk's time, whose own script is gone. Described in docs/crowd-elements.md.
// Plain elements are put inside each of them, so that labels, keys and checks are the browser's own. Answers go to
// externalSubmit as they did: one field "taskAnswers" with JSON, or flat fields with answer-format="flatten-objects".
(() => {
  "use strict";

  const PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE";
  // Amazon's elements that this file has not. A page that defines one of them itself is left alone.
  const NOT_SHOWN = [
    "crowd-3d-point-cloud", "crowd-bounding-box", "crowd-entity-annotation", "crowd-instance-segmentation",
    "crowd-keypoint", "crowd-line", "crowd-polygon", "crowd-polyline", "crowd-rekognition-detect-moderation-labels",
    "crowd-semantic-segmentation", "crowd-textract-analyze-document",
  ];
  const STYLE = `
    crowd-form, crowd-form > form, crowd-input, crowd-text-area, crowd-slider, crowd-classifier, crowd-card, crowd-alert,
    crowd-classifier-multi-select, crowd-image-classifier, crowd-image-classifier-multi-select, crowd-tabs, crowd-tab,
    crowd-radio-group { display: block; }
    crowd-tab[hidden], crowd-toast:not([opened]), crowd-alert[hidden] { display: none; }
    .crowd { font: 16px/1.5 system-ui, sans-serif; }
    .crowd-box { box-sizing: border-box; width: 100%; padding: 6px 8px; border: 1px solid #6b7280; border-radius: 4px;
      font: inherit; color: inherit; background: Field; color: FieldText; }
    .crowd-field { margin: 0 0 16px; } .crowd-field label, .crowd-set legend { display: block; font-weight: 600; }
    .crowd-small { font-size: 14px; }
    .crowd-choice { display: flex; gap: 8px; align-items: center; min-height: 32px; }
    .crowd-choice input { flex: none; width: 18px; height: 18px; margin: 0; }
    .crowd-set { margin: 0 0 16px; padding: 12px 16px; border: 1px solid #9ca3af; border-radius: 4px; min-width: 0; }
    .crowd-set img { display: block; max-width: 100%; max-height: 70vh; }
    .crowd-range { display: flex; gap: 12px; align-items: center; } .crowd-range input[type=range] { flex: 1; min-width: 0; }
    .crowd-range input[type=number] { width: 6em; }
    .crowd-button { min-height: 36px; padding: 4px 14px; border: 1px solid #1d4ed8; border-radius: 4px;
      font: 16px/1.5 system-ui, sans-serif; color: #1d4ed8; background: none; cursor: pointer; text-decoration: none;
      display: inline-block; box-sizing: border-box; vertical-align: middle; }
    .crowd-button.primary { color: #fff; background: #1d4ed8; } .crowd-button.link { border: 0; text-decoration: underline; }
    .crowd-button:disabled { opacity: .6; cursor: not-allowed; }
    .crowd-panel { margin: 0 0 16px; padding: 8px 12px; border-left: 4px solid #6b7280; overflow-wrap: anywhere; }
    .crowd-target { margin: 0 0 16px; padding: 12px 16px; background: #f3f4f6; color: #111827; font-size: 18px; overflow: auto; }
    .crowd-error { border-color: #b91c1c; } .crowd-warning { border-color: #b45309; } .crowd-success { border-color: #15803d; }
    .crowd-tablist { display: flex; flex-wrap: wrap; gap: 4px; border-bottom: 1px solid #9ca3af; margin: 0 0 12px; }
    .crowd-tablist button { border: 0; border-bottom: 3px solid transparent; background: none; color: inherit;
      padding: 6px 12px; font: inherit; cursor: pointer; }
    .crowd-tablist [aria-selected=true] { border-color: #1d4ed8; font-weight: 600; }
    .crowd-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
    .crowd :focus-visible, .crowd:focus-visible { outline: 3px solid #1d4ed8; outline-offset: 2px; }
    dialog.crowd { max-width: min(60rem, 90vw); }`;
  const home = document.currentScript ? new URL(document.currentScript.src).origin : location.origin;
  const parameters = new URLSearchParams(location.search);
  const assignmentId = parameters.get("assignmentId") || PREVIEW;
  // The controls inside of elements, which answer through those.
  const ours = new WeakSet();
  let number = 0;
  const fresh = (word) => `crowd-${word}-${++number}`;

  // An element with properties and children; undefined properties are left out.
  const make = (tag, properties = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === undefined || value === null || value === false) continue;
      if (name in element && !name.includes("-")) element[name] = value;
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== null));
    return element;
  };
  const childrenOf = (element) => [...element.childNodes];
  const on = (element, name) => element.hasAttribute(name);
  const text = (element, name, fallback) => (on(element, name) ? element.getAttribute(name) : fallback);
  const hasWords = (nodes) => nodes.some((node) => node.textContent.trim());
  // What names a control for a screen reader when the page gives it no label.
  const spoken = (host) => text(host, "aria-label", undefined) ?? text(host, "placeholder", undefined) ?? text(host, "name", undefined);

  // Lists in attributes come as JSON, or with single quotes as in Amazon's examples.
  const list = (written) => {
    try { return JSON.parse(written).map(String); } catch { /* not JSON */ }
    return [...String(written).matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/g)]
      .map((found) => (found[1] ?? found[2]).replace(/\\(.)/g, "$1"));
  };
  const exclusionWords = (written) => (/text['"]?\s*:\s*(?:'([^']*)'|"([^"]*)")/.exec(written) || []).slice(1).find((one) => one !== undefined);

  // Every element is built once, when it is first in a page.
  class Crowd extends HTMLElement {
    connectedCallback() {
      if (this.built) return;
      this.built = true;
      this.build();
    }
    get name() { return text(this, "name", ""); }
    set name(value) { this.setAttribute("name", value); }
    get disabled() { return on(this, "disabled"); }
    set disabled(value) { this.toggleAttribute("disabled", Boolean(value)); }
    static get observedAttributes() { return ["disabled"]; }
    attributeChangedCallback() { this.able?.(); }
    // The events of an inner control become the element's own.
    passOn(control) {
      ours.add(control);
      for (const kind of ["input", "change"]) {
        control.addEventListener(kind, (event) => {
          event.stopPropagation();
          this.dispatchEvent(new Event(kind, { bubbles: true }));
        });
      }
    }
  }

  // One control inside, which holds the value.
  class Field extends Crowd {
    able() { if (this.control) this.control.disabled = this.disabled; }
    get value() { return this.control ? this.control.value : text(this, "value", ""); }
    set value(value) { if (this.control) this.control.value = value; else this.setAttribute("value", value); }
    focus() { this.control?.focus(); }
    answer(answers) { if (this.name && this.value !== "") answers[this.name] = this.value; }
    common() {
      const id = fresh("field");
      return {
        id, className: "crowd-box", required: on(this, "required"), disabled: this.disabled,
        placeholder: text(this, "placeholder", undefined), minlength: text(this, "min-length", undefined),
        maxlength: text(this, "max-length", undefined), autofocus: on(this, "auto-focus"),
        "aria-label": on(this, "label") ? undefined : spoken(this),
      };
    }
    finish(control, ...more) {
      this.control = control;
      this.passOn(control);
      const label = on(this, "label") ? make("label", { htmlFor: control.id }, text(this, "label")) : undefined;
      this.append(make("div", { className: "crowd crowd-field" }, label, control, ...more));
      if (on(this, "value")) control.value = text(this, "value");
      if (control.autofocus) control.focus();
      if (on(this, "auto-validate") && on(this, "allowed-pattern")) this.validate();
    }
    validate() {
      let pattern;
      try { pattern = new RegExp(text(this, "allowed-pattern"), "u"); } catch { return; }
      this.control.addEventListener("input", () => {
        const kept = [...this.control.value].filter((one) => pattern.test(one)).join("");
        if (kept !== this.control.value) this.control.value = kept;
      }, true);
    }
  }

  class Input extends Field {
    build() {
      const control = make("input", { type: text(this, "type", "text"), ...this.common() });
      control.addEventListener("invalid", () => control.setCustomValidity(
        control.validity.valid || control.validity.customError ? "" : text(this, "error-message", "")));
      control.addEventListener("input", () => control.setCustomValidity(""));
      this.finish(control);
    }
  }

  class TextArea extends Field {
    build() {
      const control = make("textarea", { rows: Number(text(this, "rows", 2)) || 2, ...this.common() });
      const counter = on(this, "char-counter") ? make("div", { className: "crowd-small" }) : undefined;
      const count = () => { if (counter) counter.textContent = `${control.value.length} characters`; };
      control.addEventListener("input", count);
      this.finish(control, counter);
      count();
    }
  }

  class Slider extends Field {
    build() {
      const range = { min: text(this, "min", 0), max: text(this, "max", 100), step: text(this, "step", 1) };
      const control = make("input", { type: "range", id: fresh("field"), ...range, disabled: this.disabled, "aria-label": on(this, "label") ? undefined : spoken(this) });
      const preset = on(this, "value");
      control.value = preset ? text(this, "value") : range.min;
      const exact = on(this, "editable") ? make("input", { type: "number", ...range, value: control.value, className: "crowd-box", "aria-label": `${text(this, "label", spoken(this) || "Value")}, as a number` }) : undefined;
      const shown = make("output", { htmlFor: control.id }, control.value);
      const moved = (from) => {
        control.setCustomValidity("");
        for (const other of [control, exact]) if (other && other !== from) other.value = from.value;
        shown.value = control.value;
      };
      // A slider always has a value; one that is required has to be touched.
      if (on(this, "required") && !preset) control.setCustomValidity("Choose a value.");
      for (const one of [control, exact]) one?.addEventListener("input", () => moved(one));
      for (const key of ["pointerup", "keyup"]) control.addEventListener(key, (event) => { if (event.key !== "Tab") moved(control); });
      if (exact) this.passOn(exact);
      this.control = control;
      this.passOn(control);
      const label = on(this, "label") ? make("label", { htmlFor: control.id }, text(this, "label")) : undefined;
      this.append(make("div", { className: "crowd crowd-field" }, label, make("div", { className: "crowd-range" }, control, exact || shown)));
    }
    get value() { return this.control ? Number(this.control.value) : Number(text(this, "value", 0)); }
    set value(value) {
      if (!this.control) return this.setAttribute("value", value);
      this.control.value = value;
      this.control.dispatchEvent(new Event("input"));
    }
    answer(answers) { if (this.name) answers[this.name] = this.value; }
  }

  // A box or button that is checked or not.
  class Checkable extends Crowd {
    build() {
      const words = childrenOf(this);
      const control = make("input", { type: this.kind(), checked: on(this, "checked"), disabled: this.disabled, required: on(this, "required"), value: this.value, role: this.role_() });
      if (!hasWords(words)) control.setAttribute("aria-label", text(this, "label", spoken(this) || this.value));
      const group = this.group?.();
      if (group) control.name = group;
      this.control = control;
      this.passOn(control);
      this.append(make("label", { className: "crowd crowd-choice" }, control, make("span", {}, ...words)));
    }
    kind() { return "checkbox"; }
    role_() { return undefined; }
    able() { if (this.control) this.control.disabled = this.disabled; }
    get value() { return text(this, "value", "on"); }
    set value(value) { this.setAttribute("value", value); }
    get checked() { return this.control ? this.control.checked : on(this, "checked"); }
    set checked(value) { if (this.control) this.control.checked = Boolean(value); else this.toggleAttribute("checked", Boolean(value)); }
    focus() { this.control?.focus(); }
    answer(answers) {
      if (!this.name) return;
      answers[this.name] = typeof answers[this.name] === "object" ? answers[this.name] : {};
      answers[this.name][this.value] = this.checked;
    }
  }

  class ToggleButton extends Checkable {
    role_() { return "switch"; }
  }

  class RadioButton extends Checkable {
    kind() { return "radio"; }
    group() {
      const group = this.closest("crowd-radio-group");
      if (group) return (group.groupName ||= fresh("radio"));
      const form = this.closest("crowd-form") || document.body;
      form.radioNames ||= {};
      return (form.radioNames[this.name] ||= fresh("radio"));
    }
  }

  class RadioGroup extends Crowd {
    build() {
      this.setAttribute("role", "radiogroup");
      const named = on(this, "aria-label") || on(this, "aria-labelledby");
      if (!named && on(this, "name")) this.setAttribute("aria-label", this.name);
      if (on(this, "required")) for (const one of this.querySelectorAll("crowd-radio-button")) one.setAttribute("required", "");
    }
    get selected() { return [...this.querySelectorAll("crowd-radio-button")].find((one) => one.checked); }
    get value() { return this.selected?.value ?? null; }
  }

  class Button extends Crowd {
    build() {
      const words = childrenOf(this);
      const variant = text(this, "variant", "normal");
      const icon = on(this, "icon-url") ? make("img", { src: text(this, "icon-url"), alt: "", height: 16 }) : undefined;
      const name = hasWords(words) ? undefined : text(this, "aria-label", text(this, "label", text(this, "title", text(this, "icon", "Button"))));
      const action = text(this, "form-action", "button");
      this.control = on(this, "href")
        ? make("a", { href: text(this, "href"), target: text(this, "target", "_blank"), rel: "noopener", className: `crowd crowd-button ${variant}`, "aria-label": name }, icon, ...words)
        : make("button", { type: ["submit", "reset"].includes(action) ? action : "button", className: `crowd crowd-button ${variant}`, "aria-label": name }, icon, ...words);
      if (name) this.control.append(make("span", { "aria-hidden": "true" }, name));
      this.append(this.control);
      this.able();
    }
    static get observedAttributes() { return ["disabled", "loading"]; }
    able() { if (this.control) this.control.disabled = this.disabled || on(this, "loading"); }
    focus() { this.control?.focus(); }
    click() { this.control ? this.control.click() : super.click(); }
  }

  // Short instructions are shown, full ones fold away.
  const instructions = (host) => {
    const short = host.querySelector(":scope > short-instructions");
    const full = host.querySelector(":scope > full-instructions");
    const shown = short && make("div", { className: "crowd crowd-panel" }, ...childrenOf(short));
    const folded = full && make("details", { className: "crowd crowd-panel" }, make("summary", {}, text(full, "header", "Full instructions")), ...childrenOf(full));
    short?.remove();
    full?.remove();
    return [shown, folded];
  };

  // One question with fixed answers about something that is shown.
  class Classifier extends Crowd {
    build() {
      const several = this.localName.endsWith("multi-select");
      const categories = list(text(this, "categories", "[]"));
      const none = several && on(this, "exclusion-category") ? exclusionWords(text(this, "exclusion-category")) : undefined;
      const target = this.querySelector(":scope > classification-target");
      const comment = this.querySelector(":scope > worker-comment");
      const [short, full] = instructions(this);
      const shown = this.localName.includes("image")
        ? make("img", { src: text(this, "src", ""), alt: text(this, "alt", "The image that the question is about") })
        : target && make("div", { className: "crowd-target", tabIndex: 0, role: "group", "aria-label": "What the question is about" }, ...childrenOf(target));
      const group = fresh("category");
      const choice = (words) => make("label", { className: "crowd-choice" },
        make("input", { type: several ? "checkbox" : "radio", name: group, value: words, required: !several }), make("span", {}, words));
      const choices = [...categories, ...(none === undefined ? [] : [none])].map(choice);
      this.none = none;
      this.inputs = choices.map((one) => one.firstChild);
      for (const input of this.inputs) {
        this.passOn(input);
        input.addEventListener("change", () => this.exclude(input));
      }
      if (comment) {
        this.comment = make("textarea", { className: "crowd-box", rows: 3, placeholder: text(comment, "placeholder", undefined), "aria-label": text(comment, "header", "Comment") });
        this.passOn(this.comment);
      }
      const note = comment && make("details", {}, make("summary", {}, text(comment, "link-text", "Add a comment")), make("p", {}, ...childrenOf(comment)), this.comment);
      target?.remove();
      comment?.remove();
      this.append(make("fieldset", { className: "crowd crowd-set" }, make("legend", {}, text(this, "header", "Choose")), short, full, shown || undefined, make("div", {}, ...choices), note || undefined));
      if (several) this.check();
    }
    exclude(input) {
      if (this.none === undefined || !input.checked) return this.check();
      for (const other of this.inputs) if ((other.value === this.none) !== (input.value === this.none)) other.checked = false;
      this.check();
    }
    // Check boxes have no common "required".
    check() {
      if (this.inputs[0]?.type !== "checkbox") return;
      this.inputs[0].setCustomValidity(this.inputs.some((one) => one.checked) ? "" : "Choose at least one.");
    }
    get value() {
      const chosen = this.inputs ? this.inputs.filter((one) => one.checked).map((one) => one.value) : [];
      const value = this.localName.endsWith("multi-select") ? { labels: chosen } : chosen.length ? { label: chosen[0] } : {};
      if (this.comment?.value.trim()) value.workerComment = this.comment.value;
      return value;
    }
    answer(answers) { if (this.name) answers[this.name] = this.value; }
  }

  // Something behind a link or button.
  const opener = (host, words, name, ...content) => {
    const close = make("button", { type: "button", className: "crowd crowd-button" }, "Close");
    const dialog = make("dialog", { className: "crowd", "aria-label": name }, ...content, close);
    const open = make("button", { type: "button", className: `crowd crowd-button ${text(host, "link-type", "link")}`, "aria-haspopup": "dialog" }, words);
    open.addEventListener("click", () => dialog.showModal());
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => open.focus());
    host.replaceChildren(open, dialog);
    return dialog;
  };

  class Instructions extends Crowd {
    build() {
      const part = (tag, title) => [...this.querySelectorAll(`:scope > ${tag}`)]
        .flatMap((one) => [make("h2", {}, title), make("div", {}, ...childrenOf(one))]);
      opener(this, text(this, "link-text", "Click for instructions"), "Instructions",
        ...part("short-summary", "Summary"), ...part("detailed-instructions", "Detailed instructions"),
        ...part("positive-example", "Good examples"), ...part("negative-example", "Bad examples"));
    }
  }

  class Modal extends Crowd {
    build() {
      const words = text(this, "link-text", "Click to open modal");
      this.dialog = opener(this, words, words, ...childrenOf(this));
    }
    open() { this.dialog?.showModal(); }
    close() { this.dialog?.close(); }
  }

  class Tabs extends Crowd {
    build() {
      const tabs = [...this.querySelectorAll(":scope > crowd-tab")];
      const heads = tabs.map((tab) => {
        tab.id ||= fresh("tab");
        const head = make("button", { type: "button", id: `${tab.id}-head`, role: "tab", "aria-controls": tab.id }, text(tab, "header", "Tab"));
        tab.setAttribute("role", "tabpanel");
        tab.setAttribute("aria-labelledby", head.id);
        return head;
      });
      const show = (which, focus) => {
        tabs.forEach((tab, at) => { tab.hidden = at !== which; });
        heads.forEach((head, at) => { head.setAttribute("aria-selected", String(at === which)); head.tabIndex = at === which ? 0 : -1; });
        if (focus) heads[which].focus();
      };
      heads.forEach((head, at) => {
        head.addEventListener("click", () => show(at));
        head.addEventListener("keydown", (event) => {
          const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: heads.length - 1 }[event.key];
          if (to === undefined) return;
          event.preventDefault();
          show((to + heads.length) % heads.length, true);
        });
      });
      this.prepend(make("div", { className: "crowd crowd-tablist", role: "tablist" }, ...heads));
      if (tabs.length) show(0);
      // A check that fails on a hidden page brings that page up.
      tabs.forEach((tab, at) => tab.addEventListener("invalid", () => show(at), true));
    }
  }

  class Alert extends Crowd {
    build() {
      const kind = text(this, "type", "info");
      this.setAttribute("role", ["error", "warning"].includes(kind) ? "alert" : "status");
      const close = on(this, "dismissible") ? make("button", { type: "button", className: "crowd crowd-button link" }, "Dismiss") : undefined;
      close?.addEventListener("click", () => { this.hidden = true; });
      this.append(make("div", { className: `crowd crowd-panel crowd-${kind}` }, ...childrenOf(this), close));
    }
  }

  class Toast extends Crowd {
    build() {
      this.setAttribute("role", "status");
      if (on(this, "text") && !this.textContent.trim()) this.textContent = text(this, "text");
      this.classList.add("crowd", "crowd-panel");
      if (on(this, "opened")) this.show();
    }
    show() {
      this.setAttribute("opened", "");
      const shown = Number(text(this, "duration", 5000));
      if (shown > 0) setTimeout(() => this.removeAttribute("opened"), shown);
    }
  }

  class Card extends Crowd {
    build() {
      const heading = on(this, "heading") ? make("p", {}, make("strong", {}, text(this, "heading"))) : undefined;
      const image = on(this, "image") ? make("img", { src: text(this, "image"), alt: text(this, "alt", "") }) : undefined;
      this.append(make("div", { className: "crowd-set" }, heading, image, ...childrenOf(this)));
    }
  }

  class Badge extends Crowd {
    build() { if (on(this, "label")) this.append(make("strong", { className: "crowd crowd-small" }, ` ${text(this, "label")} `)); }
  }

  class Tab extends Crowd {
    build() {}
  }

  // The form around it all. Its inner form sends nothing by itself ("dialog"), so that a page's own submit handlers
  // keep their say; what is sent is a form made for the purpose.
  class Form extends Crowd {
    build() {
      const form = make("form", { method: "dialog" });
      const parts = instructions(this).filter(Boolean);
      form.append(...parts, ...childrenOf(this));
      this.append(form);
      this.form = form;
      if (!form.querySelector("crowd-button[form-action=submit], button[type=submit], input[type=submit]")) {
        form.append(make("crowd-button", { "form-action": "submit", variant: "primary" }, "Submit"));
      }
      form.addEventListener("submit", (event) => setTimeout(() => { if (!event.defaultPrevented) this.send(); }));
      form.addEventListener("keydown", (event) => {
        const typed = event.target instanceof HTMLInputElement && !["submit", "button", "reset", "image"].includes(event.target.type);
        // Enter in a field would hand in a half-filled form.
        if (event.key === "Enter" && typed && !event.isComposing) event.preventDefault();
      });
      if (assignmentId === PREVIEW) {
        for (const button of form.querySelectorAll("crowd-button[form-action=submit]")) button.disabled = true;
        form.append(make("p", { className: "crowd crowd-small" }, "Accept the HIT to submit."));
      }
    }
    submit() {
      if (this.form.checkValidity()) this.send();
      else this.form.reportValidity();
    }
    reset() { this.form.reset(); }
    // The answers by name, as Amazon's elements gave them.
    get answers() {
      const answers = {};
      for (const part of this.querySelectorAll("*")) {
        if (part instanceof Crowd) part.answer?.(answers);
        else if (part.name && part.matches("input, select, textarea") && !ours.has(part)) plain(part, answers);
      }
      return answers;
    }
    send() {
      if (this.sent || assignmentId === PREVIEW) return;
      this.sent = true;
      for (const button of this.querySelectorAll("crowd-button[form-action=submit]")) button.disabled = true;
      const answers = this.answers;
      const fields = text(this, "answer-format", "") === "flatten-objects"
        ? Object.fromEntries(flat(answers))
        : { taskAnswers: JSON.stringify([answers]) };
      const given = parameters.get("turkSubmitTo") || home;
      const base = /^https?:\/\//i.test(given) ? given.replace(/\/+$/, "") : home;
      const post = make("form", { method: "post", action: `${base}/mturk/externalSubmit`, hidden: true });
      for (const [name, value] of Object.entries({ assignmentId, ...fields })) post.append(make("textarea", { name, value }));
      document.body.append(post);
      post.submit();
    }
  }

  // The browser's own controls in a crowd-form.
  const plain = (control, answers) => {
    if (["submit", "button", "reset", "image", "file"].includes(control.type) || control.disabled) return;
    if (["checkbox", "radio"].includes(control.type)) {
      answers[control.name] = typeof answers[control.name] === "object" ? answers[control.name] : {};
      answers[control.name][control.value] = control.checked;
    } else if (control.type === "select-multiple") {
      answers[control.name] = [...control.selectedOptions].map((one) => one.value);
    } else if (control.value !== "") {
      answers[control.name] = control.value;
    }
  };

  const flat = (value, name = "") => (value !== null && typeof value === "object" && !Array.isArray(value)
    ? Object.entries(value).flatMap(([key, inner]) => flat(inner, name ? `${name}.${key}` : key))
    : [[name, typeof value === "string" ? value : JSON.stringify(value)]]);

  // Pages can also write elements by script, which nobody could see when the HIT was created.
  const warn = () => {
    const lacking = NOT_SHOWN.filter((name) => !customElements.get(name) && document.querySelector(name));
    const before = document.getElementById("crowd-lacking");
    if (!lacking.length || before?.dataset.names === lacking.join()) return;
    before?.remove();
    const words = `This page needs ${lacking.join(", ")}, which this marketplace cannot show, so it cannot be answered here. `
      + "If you hold this HIT, return it; that does not count against you.";
    document.body.prepend(make("p", { id: "crowd-lacking", className: "crowd crowd-panel crowd-error", role: "alert", "data-names": lacking.join() }, words));
  };

  const define = (name, kind) => { if (!customElements.get(name)) customElements.define(name, kind); };
  const start = () => {
    document.head.append(make("style", {}, STYLE));
    define("crowd-alert", Alert);
    define("crowd-badge", Badge);
    define("crowd-button", Button);
    define("crowd-card", Card);
    define("crowd-checkbox", class extends Checkable {});
    define("crowd-classifier", Classifier);
    define("crowd-classifier-multi-select", class extends Classifier {});
    define("crowd-fab", class extends Button {});
    define("crowd-icon-button", class extends Button {});
    define("crowd-image-classifier", class extends Classifier {});
    define("crowd-image-classifier-multi-select", class extends Classifier {});
    define("crowd-input", Input);
    define("crowd-instructions", Instructions);
    define("crowd-modal", Modal);
    define("crowd-radio-group", RadioGroup);
    define("crowd-radio-button", RadioButton);
    define("crowd-slider", Slider);
    define("crowd-tab", Tab);
    define("crowd-tabs", Tabs);
    define("crowd-text-area", TextArea);
    define("crowd-toast", Toast);
    define("crowd-toggle-button", ToggleButton);
    define("crowd-form", Form);
    warn();
    new MutationObserver(warn).observe(document.body, { childList: true, subtree: true });
    document.dispatchEvent(new Event("all-crowd-elements-ready"));
  };
  // Not before: an element that is built while the page is read has no children yet.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
