// SPDX-License-Identifier: Apache-2.0
// Filters the index by any of several verdicts, one paper, one cause, and all words of a search. On a
// phone the papers are folded until a filter is set.
"use strict";
howdah.theme.bind();
document.documentElement.dataset.ready = "true";
// A link to something folded opens it.
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  const folded = target.querySelector("details");
  if (folded && target.tagName === "SECTION") folded.open = true;
};
window.addEventListener("hashchange", unfold);
unfold();
(() => {
  const filter = document.getElementById("filter");
  if (!filter) return;
  const buttons = [...filter.querySelectorAll("button[data-verdict]")];
  const paper = document.getElementById("paper");
  const cause = document.getElementById("cause");
  const search = document.getElementById("search");
  const papers = [...document.querySelectorAll("section.paper")];
  const phone = matchMedia("(max-width: 720px)");

  function apply() {
    const verdicts = buttons.filter((button) => button.getAttribute("aria-pressed") === "true").map((button) => button.dataset.verdict);
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    let all = 0;
    for (const section of papers) {
      let here = 0;
      for (const row of section.querySelectorAll("tr[data-verdict]")) {
        const fits = (!paper.value || section.dataset.paper === paper.value)
          && (!verdicts.length || verdicts.includes(row.dataset.verdict))
          && (!cause || !cause.value || row.dataset.causes.split("|").includes(cause.value))
          && words.every((word) => row.dataset.text.includes(word));
        row.hidden = !fits;
        here += fits ? 1 : 0;
        all += 1;
      }
      section.hidden = here === 0;
      shown += here;
    }
    for (const section of papers) section.querySelector("details").open = shown < all || !phone.matches;
    document.getElementById("nothing").hidden = shown > 0;
    document.getElementById("shown").textContent = shown === all ? "" : `${shown} of ${all}`;
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      apply();
    });
  }
  paper.addEventListener("change", apply);
  if (cause) cause.addEventListener("change", apply);
  search.addEventListener("input", apply);
  filter.hidden = false;
  apply();
  unfold();
  window.addEventListener("beforeprint", () => papers.forEach((section) => { section.querySelector("details").open = true; }));
})();
