// SPDX-License-Identifier: Apache-2.0
// Touch gestures: one finger pans the view (or moves the cursor in an unzoomed figure), two pinch. Vertical strokes scroll the page.
"use strict";
howdah.touch = (() => {
  const { state } = howdah;
  const LEAST_APART = 0.03; // least distance of two fingers, as a fraction of the figure's width

  // The range after the fingers moved: the data under them stay under them, and the view stays within the data.
  function range(before, from, to, extent) {
    const spanBefore = before[1] - before[0];
    const apart = (pair) => Math.max(LEAST_APART, Math.abs(pair[1] - pair[0]));
    const factor = from.length > 1 ? apart(from) / apart(to) : 1;
    const whole = extent[1] - extent[0];
    const span = Math.min(spanBefore * factor, whole);
    const middle = (pair) => pair.reduce((sum, each) => sum + each, 0) / pair.length;
    // Positions are fractions of the figure's width.
    const held = before[0] + middle(from) * spanBefore;
    const start = Math.max(extent[0], Math.min(held - middle(to) * span, extent[1] - span));
    return span >= whole * 0.999 ? null : [start, start + span];
  }

  function bind(figure) {
    const fingers = new Map();
    let begun = null;

    const place = (x) => x - figure.plot.over.getBoundingClientRect().left;
    const positions = () => [...fingers.values()];

    function begin() {
      const { min, max } = figure.plot.scales.x;
      begun = { range: [min, max], at: positions() };
    }

    figure.canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "touch" || !figure.plot) return;
      fingers.set(event.pointerId, place(event.clientX));
      begin();
    });
    figure.canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId) || !figure.plot || !begun) return;
      fingers.set(event.pointerId, place(event.clientX));
      const wide = figure.plot.over.clientWidth;
      const extent = figure.extent();
      const whole = begun.range[1] - begun.range[0] >= (extent[1] - extent[0]) * 0.999;
      if (fingers.size === 1 && whole) {
        figure.plot.setCursor({ left: Math.max(0, Math.min(wide, positions()[0])), top: 1 });
        return;
      }
      const share = (all) => all.slice(0, 2).map((each) => each / wide);
      const shared = range(begun.range, share(begun.at), share(positions()), extent);
      state.zoom(figure.axis, shared);
    });
    // The browser cancels a stroke that it interprets as scrolling.
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
      figure.canvas.addEventListener(end, (event) => {
        if (!fingers.delete(event.pointerId)) return;
        if (fingers.size) begin();
        else begun = null;
      });
    }
  }

  return { bind, range };
})();
