// SPDX-License-Identifier: Apache-2.0
// Parts of a figure that are not curves: points, and ranges as bars from their lower to their upper end.
"use strict";
howdah.spots = (() => {
  const RADIUS = 3;
  const BAR = { width: 1.5, least: 1, opacity: 0.4 };

  // For each line without a curve: {colour, alpha, points, bars} in CSS pixels. `at` maps data to pixels.
  function of(lines, scale, at) {
    return lines.filter((line) => line.points || line.low).map((line) => {
      const found = { colour: line.colour, alpha: line.alpha, points: [], bars: [] };
      line.x.forEach((x, index) => {
        if (x < scale.min || x > scale.max || line.y[index] === null) return;
        const point = at(x, line.y[index]);
        if (line.low) found.bars.push({ ...point, low: Math.max(at(x, line.low[index]).y, point.y + BAR.least) });
        else found.points.push(point);
      });
      return found;
    });
  }

  function draw(context, spots) {
    for (const { colour, alpha, points, bars } of spots) {
      context.fillStyle = context.strokeStyle = colour;
      context.globalAlpha = alpha * (bars.length ? BAR.opacity : 1);
      context.lineWidth = BAR.width;
      context.beginPath();
      for (const { x, y, low } of bars) {
        context.moveTo(x, low);
        context.lineTo(x, y);
      }
      context.stroke();
      context.beginPath();
      for (const { x, y } of points) {
        context.moveTo(x + RADIUS, y);
        context.arc(x, y, RADIUS, 0, 2 * Math.PI);
      }
      context.fill();
    }
  }

  return { of, draw };
})();
