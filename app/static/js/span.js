// Marks an answer in a passage: by mouse, by touch and by keyboard, word by word. The text field works without it.
// Offsets count UTF-16 units, as strings do here; the service converts them.
(() => {
  "use strict";
  const picker = document.querySelector("[data-span-of]");
  if (!picker) return;
  const field = picker.querySelector("textarea");
  const sent = picker.querySelector("[name$=_start_utf16]");
  const which = document.getElementById(`${field.name}-which`);
  const startName = sent.name.replace("_utf16", "");
  const said = document.getElementById("said");
  let passage = null;
  let text = "";
  let words = [];
  let model = null;
  let mine = null;
  let cursor = -1;
  let anchor = -1;
  let timer = 0;

  const say = (sentence) => { if (said) said.textContent = sentence; };

  // Words with what clings to them, so that every visible character belongs to one; white space parts them.
  const cut = (whole) => {
    const found = [];
    const add = (start, end) => found.push({ start, end });
    if (!Intl.Segmenter) { for (const part of whole.matchAll(/\S+/gu)) add(part.index, part.index + part[0].length); return found; }
    for (const part of new Intl.Segmenter(document.documentElement.lang || "en", { granularity: "word" }).segment(whole)) {
      if (part.segment.trim()) add(part.index, part.index + part.segment.length);
    }
    return found;
  };

  const shown = () => {
    const borders = new Set([0, text.length]);
    const spans = { mine, model, cursor: cursor < 0 ? null : words[cursor] };
    for (const span of Object.values(spans)) if (span) { borders.add(span.start); borders.add(span.end); }
    const places = [...borders].sort((a, b) => a - b);
    const parts = [];
    for (let at = 1; at < places.length; at += 1) {
      const [start, end] = [places[at - 1], places[at]];
      const classes = Object.keys(spans).filter((name) => spans[name] && spans[name].start <= start && start < spans[name].end);
      const part = classes.length ? document.createElement("mark") : document.createTextNode("");
      part.textContent = text.slice(start, end);
      if (classes.length) part.className = classes.join(" ");
      parts.push(part);
    }
    passage.replaceChildren(...parts);
  };

  const take = (start, end, tell = true) => {
    mine = { start, end };
    field.value = text.slice(start, end);
    sent.value = String(start);
    which.replaceChildren();
    field.removeAttribute("aria-invalid");
    document.getElementById(`${field.id}-error`)?.remove();
    shown();
    if (tell) say(`Marked: ${field.value}`);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };

  const drop = () => {
    mine = null;
    sent.value = "";
    which.replaceChildren();
    shown();
  };

  const wordAt = (offset) => {
    const at = words.findIndex((word) => offset < word.end);
    return at < 0 ? words.length - 1 : at;
  };

  const takeWords = (from, to) => take(words[Math.min(from, to)].start, words[Math.max(from, to)].end);

  const offsetOf = (node, offset) => {
    const range = document.createRange();
    range.setStart(passage, 0);
    range.setEnd(node, offset);
    return range.toString().length;
  };

  // A selection that is made with the mouse or by a long press; whole words, and no white space at its ends.
  const takeSelection = () => {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return false;
    const range = selection.getRangeAt(0);
    if (!passage.contains(range.startContainer) || !passage.contains(range.endContainer)) return false;
    const [start, end] = [offsetOf(range.startContainer, range.startOffset), offsetOf(range.endContainer, range.endOffset)];
    const inside = words.filter((word) => word.end > start && word.start < end);
    if (!inside.length) return false;
    selection.removeAllRanges();
    cursor = -1;
    anchor = words.indexOf(inside[0]);
    take(inside[0].start, inside.at(-1).end);
    return true;
  };

  const wordUnder = (event) => {
    const place = document.caretPositionFromPoint?.(event.clientX, event.clientY);
    const range = place ? null : document.caretRangeFromPoint?.(event.clientX, event.clientY);
    const [node, offset] = place ? [place.offsetNode, place.offset] : range ? [range.startContainer, range.startOffset] : [null, 0];
    if (!node || !passage.contains(node)) return -1;
    const at = offsetOf(node, offset);
    return words.findIndex((word) => word.start <= at && at < word.end + (at === word.end ? 1 : 0));
  };

  // A tap or click marks a word; the next one, or one with Shift, extends the mark as far as there.
  const tap = (event) => {
    const at = wordUnder(event);
    if (at < 0) return;
    const extend = mine && anchor >= 0 && (event.shiftKey || event.pointerType === "touch") && words[anchor].start !== words[at].start;
    if (extend) takeWords(anchor, at);
    else { anchor = at; cursor = -1; takeWords(at, at); }
  };

  const lineAway = (down) => {
    const box = passage.querySelector(".cursor")?.getBoundingClientRect();
    if (!box) return cursor;
    const step = down ? 1 : -1;
    const range = document.createRange();
    let best = cursor;
    let bestGap = Infinity;
    let line = null;
    const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
    const nodes = [];
    for (let node = walker.nextNode(), at = 0; node; node = walker.nextNode()) { nodes.push({ node, at }); at += node.length; }
    for (let at = cursor + step; at >= 0 && at < words.length; at += step) {
      const holder = nodes.findLast((one) => one.at <= words[at].start);
      range.setStart(holder.node, words[at].start - holder.at);
      range.setEnd(holder.node, Math.min(words[at].end - holder.at, holder.node.length));
      const found = range.getBoundingClientRect();
      if (Math.abs(found.top - box.top) < box.height / 2) continue;
      if (line === null) line = found.top;
      if (Math.abs(found.top - line) > box.height / 2) break;
      const gap = Math.abs(found.left - box.left);
      if (gap < bestGap) { best = at; bestGap = gap; }
    }
    return best;
  };

  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !words.length) return;
    const last = words.length - 1;
    const from = cursor < 0 ? (anchor < 0 ? -1 : anchor) : cursor;
    const on = () => Math.min(from + 1, last);
    const back = () => Math.max(from - 1, 0);
    const leftwards = getComputedStyle(passage).direction === "rtl";
    const moves = {
      ArrowRight: leftwards ? back : on,
      ArrowLeft: leftwards ? on : back,
      ArrowDown: () => (cursor < 0 ? Math.max(from, 0) : lineAway(true)),
      ArrowUp: () => (cursor < 0 ? Math.max(from, 0) : lineAway(false)),
      Home: () => 0,
      End: () => last,
    };
    if (event.key in moves) {
      event.preventDefault();
      const before = cursor;
      cursor = moves[event.key]();
      if (event.shiftKey) {
        if (before < 0 || anchor < 0) anchor = before < 0 ? cursor : before;
        takeWords(anchor, cursor);
      } else {
        anchor = cursor;
        shown();
        say(text.slice(words[cursor].start, words[cursor].end));
      }
      passage.querySelector(".cursor")?.scrollIntoView({ block: "nearest" });
    } else if ((event.key === "Enter" || event.key === " ") && cursor >= 0) {
      event.preventDefault();
      anchor = cursor;
      takeWords(cursor, cursor);
    } else if (event.key === "Escape" && mine) {
      drop();
      field.value = "";
      say("Nothing is marked.");
    }
  };

  // What is typed is looked up at once; where it stands several times the service asks which one is meant.
  const lookUp = () => {
    const wanted = field.value.trim();
    const at = wanted ? text.indexOf(wanted) : -1;
    mine = at >= 0 && text.indexOf(wanted, at + 1) < 0 ? { start: at, end: at + wanted.length } : null;
    sent.value = mine ? String(mine.start) : "";
    which.replaceChildren();
    shown();
  };

  const begin = () => {
    passage = document.getElementById(picker.dataset.spanOf);
    if (!passage) return;
    text = passage.textContent;
    words = cut(text);
    const found = /^(\d+)-(\d+)$/.exec(passage.dataset.model);
    model = found ? { start: Number(found[1]), end: Number(found[2]) } : null;
    cursor = anchor = -1;
    mine = null;
    const characters = which.querySelector(`input[type=hidden][name=${startName}]`)?.value;
    const start = sent.value !== "" ? Number(sent.value) : characters ? [...text].slice(0, Number(characters)).join("").length : -1;
    if (start >= 0 && field.value && text.startsWith(field.value, start)) mine = { start, end: start + field.value.length };
    if (mine) anchor = wordAt(mine.start);
    passage.tabIndex = 0;
    passage.setAttribute("role", "textbox");
    passage.setAttribute("aria-readonly", "true");
    passage.setAttribute("aria-multiline", "true");
    passage.setAttribute("aria-labelledby", `${passage.id}-label`);
    passage.setAttribute("aria-describedby", "span-keys");
    passage.classList.add("markable");
    passage.addEventListener("keydown", keys);
    // Shift and a click would also select from the last click, wherever that was.
    passage.addEventListener("mousedown", (event) => { if (event.shiftKey) event.preventDefault(); });
    passage.addEventListener("click", (event) => { if (getSelection().isCollapsed) tap(event); });
    passage.addEventListener("mouseup", () => setTimeout(takeSelection));
    passage.addEventListener("blur", () => { cursor = -1; shown(); });
    shown();
  };

  // A long press selects; its handles send no events of their own, so the selection is taken once it rests.
  document.addEventListener("selectionchange", () => {
    clearTimeout(timer);
    if (matchMedia("(pointer: coarse)").matches) timer = setTimeout(takeSelection, 900);
  });
  field.addEventListener("input", (event) => { if (event.isTrusted) lookUp(); });
  document.addEventListener("hit:swapped", (event) => { if (event.target.querySelector?.("[data-passage]")) begin(); });
  const help = document.createElement("p");
  help.id = "span-keys";
  help.className = "field-hint";
  help.textContent = "In the passage: drag over the words, or tap the first and the last one. With the keyboard: arrow keys move from word to word, with Shift they mark, Enter marks one word, Escape unmarks.";
  picker.append(help);
  begin();
})();
