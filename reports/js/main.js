// SPDX-License-Identifier: Apache-2.0
// Reads the page's data and draws it.
"use strict";
(() => {
  const { state, theme, controls } = howdah;
  const data = JSON.parse(document.getElementById("data").textContent);
  const plots = document.getElementById("plots");
  const bar = document.getElementById("controls");
  theme.bind();
  howdah.strips.bind();
  howdah.many.bind();
  state.start(data);
  if (!data.runs.length) {
    const empty = document.createElement("p");
    empty.className = "missing";
    empty.textContent = "Nothing to draw: no run of this experiment has a plan and tables.";
    plots.append(empty);
    return;
  }
  const figures = data.figures.map((description) => new howdah.Figure(description, plots));
  const redraw = () => {
    for (const figure of figures) figure.draw();
    for (const figure of figures) figure.rescale();
  };
  const drawAll = () => {
    controls.build(bar, figures);
    redraw();
  };
  state.changed((kind) => {
    if (kind !== "zoom") return drawAll();
    for (const figure of figures) figure.rescale();
    controls.refresh(bar);
  });
  theme.changed(drawAll);
  document.addEventListener("keydown", (event) => {
    const busy = event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey;
    if (busy || event.target.closest("input, select, textarea")) return;
    const frame = { 0: "whole", s: "start" }[event.key];
    if (frame) state.show(frame);
  });
  for (const link of document.querySelectorAll("a[data-run]")) {
    link.addEventListener("click", () => state.change(() => state.pickRun(link.dataset.run)));
  }
  drawAll();
  howdah.figures = figures;
  document.documentElement.dataset.ready = "true";
})();
