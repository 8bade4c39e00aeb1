// SPDX-License-Identifier: Apache-2.0
// Switches the axis whose values are the rows of the exit strips: the page has all arrangements and shows one.
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
