// SPDX-License-Identifier: Apache-2.0
// Boxes that scroll sideways: a hint while there is more to the right, and keyboard focus only if there is something to scroll.
"use strict";
(() => {
  function look(box) {
    const more = box.scrollWidth - box.clientWidth;
    box.classList.toggle("wide", more > 1);
    box.classList.toggle("more", more > 1 && box.scrollLeft < more - 1);
    if (more > 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }

  // The hint is above its box, because it would scroll away inside it.
  for (const box of document.querySelectorAll(".scroll")) {
    const hint = document.createElement("p");
    hint.className = "scroll-hint";
    hint.setAttribute("aria-hidden", "true");
    hint.textContent = "more columns: scroll ›";
    box.before(hint);
    box.addEventListener("scroll", () => look(box), { passive: true });
    const watch = new ResizeObserver(() => look(box));
    watch.observe(box);
    if (box.firstElementChild) watch.observe(box.firstElementChild);
    look(box);
  }
})();
