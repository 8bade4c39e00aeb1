// SPDX-License-Identifier: Apache-2.0
// Which axis has the rows of the exit strips: all ways are in the page, one is shown.
"use strict";
howdah.strips = (() => {
  function bind() {
    const buttons = [...document.querySelectorAll("button[data-rows]")];
    for (const button of buttons) {
      button.addEventListener("click", () => {
        for (const each of buttons) {
          const shown = each === button;
          each.setAttribute("aria-pressed", String(shown));
          document.getElementById(`strips-${each.dataset.rows}`).hidden = !shown;
        }
      });
    }
  }

  return { bind };
})();
