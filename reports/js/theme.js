// SPDX-License-Identifier: Apache-2.0
// Light or dark theme: the system's preference until the reader chooses. Runs before the page is painted.
"use strict";
const howdah = {};
howdah.theme = (() => {
  const root = document.documentElement;
  const listeners = [];
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const current = () => chosen || (system.matches ? "dark" : "light");

  function apply() {
    root.dataset.theme = current();
    const button = document.getElementById("theme");
    if (button) button.querySelector("span").textContent = current() === "dark" ? "light" : "dark";
    for (const listener of listeners) listener();
  }

  function choose(theme) {
    chosen = theme;
    apply();
  }

  system.addEventListener("change", apply);
  // Print the light theme.
  window.addEventListener("beforeprint", () => { root.dataset.printing = current(); choose("light"); });
  window.addEventListener("afterprint", () => choose(root.dataset.printing));
  apply();
  return {
    current,
    choose,
    changed: (listener) => listeners.push(listener),
    token: (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim(),
    bind() {
      document.getElementById("theme").addEventListener("click", () => choose(current() === "dark" ? "light" : "dark"));
      apply();
    },
  };
})();
