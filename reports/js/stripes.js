// SPDX-License-Identifier: Apache-2.0
// Coinciding lines: where a later line covers an earlier one, the earlier one shows through as stripes of its colour.
"use strict";
howdah.stripes = (() => {
  const NEAR = 1.5; // pixels within which two lines look like one
  const STRIPE = 7; // pixels of each colour
  const MOST_LINES = 12;

  // A line's interpolated value at x; null outside its points and in gaps. `from` is where the last search ended.
  function valueAt(line, x, from) {
    let at = from.at;
    while (at < line.x.length - 1 && line.x[at + 1] < x) at++;
    from.at = at;
    const [left, right] = [line.y[at], line.y[at + 1]];
    if (line.x[at] === x) return left;
    if (line.x[at] > x || right === undefined || left === null || right === null) return null;
    return left + ((right - left) * (x - line.x[at])) / (line.x[at + 1] - line.x[at]);
  }

  // The covered stretches of lines: {colour, width, dash, offset, points} in CSS pixels. `at` maps data to pixels.
  function of(lines, scale, at) {
    const found = [];
    if (lines.length > MOST_LINES) return found;
    lines.forEach((line, number) => {
      const later = lines.slice(number + 1).filter((each) => each.part === line.part);
      const searches = later.map(() => ({ at: 0 }));
      let stretch = null;
      let most = 0;
      const end = () => {
        if (stretch && stretch.points.length > 1 && stretch.points.at(-1).x - stretch.points[0].x > 2 * STRIPE) {
          found.push({ ...stretch, dash: [STRIPE, STRIPE * most], offset: -STRIPE * number });
        }
        stretch = null;
        most = 0;
      };
      line.x.forEach((x, index) => {
        const y = line.y[index];
        if (x < scale.min || x > scale.max || y === null) return end();
        const point = at(x, y);
        const covering = later.filter((each, position) => {
          const value = valueAt(each, x, searches[position]);
          return value !== null && Math.abs(at(x, value).y - point.y) < NEAR;
        }).length;
        if (!covering) return end();
        stretch = stretch || { colour: line.colour, width: line.width, points: [] };
        most = Math.max(most, covering);
        stretch.points.push(point);
      });
      end();
    });
    return found;
  }

  function draw(context, stripes) {
    for (const stripe of stripes) {
      context.setLineDash(stripe.dash);
      context.lineDashOffset = stripe.offset;
      context.lineWidth = stripe.width;
      context.strokeStyle = stripe.colour;
      context.beginPath();
      stripe.points.forEach((point, index) => (index ? context.lineTo(point.x, point.y) : context.moveTo(point.x, point.y)));
      context.stroke();
    }
    context.lineDashOffset = 0;
  }

  return { of, draw };
})();
