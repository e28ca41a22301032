// Stands in for Amazon's crowd-html-elements, whose host is gone: says plainly that the page cannot be answered here.
(() => {
  "use strict";
  const say = () => {
    if (!document.querySelector("crowd-form")) return;
    const text = document.createElement("p");
    text.setAttribute("role", "alert");
    text.textContent = "This page is made with Amazon's crowd-html elements, which this marketplace cannot show. "
      + "Do not accept this HIT. If you hold it, return it; that does not count against you.";
    document.body.prepend(text);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", say);
  else say();
})();
