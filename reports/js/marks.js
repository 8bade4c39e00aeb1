// SPDX-License-Identifier: Apache-2.0
// What is drawn over the lines of a figure: limits, slow-start exits and events, with their names. Also the look of axes.
"use strict";
howdah.marks = (() => {
  const { theme } = howdah;
  const FONT = "12px system-ui, sans-serif";
  const HIGH = 15; // height of a name in pixels; its base line is BASE below its top
  const BASE = 12;
  const EVENT = 5; // pixels from the centre of an event's diamond to its corners
  const ruler = document.createElement("canvas").getContext("2d");

  function widthOf(text, font = FONT) {
    ruler.font = font;
    return ruler.measureText(text).width;
  }

  // Shorten a text at its beginning: its end says what happened, its beginning to which line, as the colour does.
  function fitting(text, width) {
    let first = 0;
    const rest = () => (first ? `\u2026${text.slice(first)}` : text);
    while (first < text.length && widthOf(rest()) > width) first++;
    return rest();
  }

  // The edges of a plot's axes in CSS pixels; `at` maps its data to pixels.
  function frame(plot) {
    const [left, top, width, height] = ["left", "top", "width", "height"].map((each) => plot.bbox[each] / devicePixelRatio);
    const at = (x, y) => ({ x: left + plot.valToPos(x, "x"), y: top + plot.valToPos(y, "y") });
    return { left, top, right: left + width, bottom: top + height, at };
  }

  // Options common to all axes.
  function axis() {
    return {
      stroke: theme.token("quiet"),
      font: FONT,
      labelFont: FONT,
      labelGap: 0,
      gap: 4,
      grid: { stroke: theme.token("faint"), width: 1 },
      ticks: { stroke: theme.token("rule"), width: 1, size: 4 },
      values: (_plot, splits) => howdah.format.ticks(splits),
    };
  }

  const overlap = (one, other) => one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
  const steps = (count) => [...Array(count).keys()];

  // Candidate places for a name: beside its point, at an edge, or a little above or below; nearest first.
  const beside = (x, y, width, bounds) => steps(40).flatMap((step) => {
    const top = y - 8 + (step % 2 ? -1 : 1) * Math.ceil(step / 2) * 8;
    const sides = [x + 9, x - 9 - width, bounds.left + 2, bounds.right - 2 - width];
    return sides.map((left) => ({ left, top, cost: step + Math.abs(left + width / 2 - x) / 40 }));
  });

  // Candidate places for the name of a limit above and below its line, the rightmost first.
  const along = (y, width, bounds) => steps(25).flatMap((step) => {
    const left = bounds.right - 4 - width - (step * (bounds.right - bounds.left - width - 8)) / 24;
    return [y - 4 - BASE, y + 1].map((top) => ({ left, top, cost: step / 100 }));
  });

  // Take the place that overlaps nothing taken and covers the fewest points of curves; null if no place is free.
  function placed(boxes, curves, width, places, bounds) {
    let best = null;
    for (const { left, top, cost } of places) {
      const box = { left, right: left + width, top, bottom: top + HIGH };
      const inside = left >= bounds.left + 2 && box.right <= bounds.right - 2 && top >= bounds.top && box.bottom <= bounds.bottom + 1;
      if (!inside || boxes.some((each) => overlap(each, box))) continue;
      const covered = curves.filter((point) => point.x > left - 2 && point.x < box.right + 2 && point.y > top - 2 && point.y < box.bottom + 2);
      const whole = 20 * covered.length + cost;
      if (!best || whole < best.whole) best = { whole, box };
    }
    if (best) boxes.push(best.box);
    return best && { x: best.box.left, y: best.box.top + BASE };
  }

  // Everything to draw over the lines, in CSS pixels relative to the figure. `at` maps (x, y) of the data to pixels;
  // `curves` are points of the lines, in pixels. A limit above the view is a note at its edge.
  function layout(bounds, at, limits, exits, instants, events, curves = []) {
    const boxes = [];
    const drawn = { limits: [], exits: [], instants: [], events: [] };
    for (const event of events) {
      const point = at(event.x, event.y);
      const inside = point.x >= bounds.left && point.x <= bounds.right && point.y >= bounds.top - 5 && point.y <= bounds.bottom + 5;
      if (inside) drawn.events.push({ ...point, at: event.x, cwnd: event.y, colour: event.colour, label: event.label });
    }
    for (const instant of instants) {
      const { x } = at(instant.value, 0);
      if (x >= bounds.left && x <= bounds.right) drawn.instants.push({ x, label: instant.label, at: { x: x + 5, y: bounds.top + BASE } });
    }
    for (const limit of limits) {
      const { y } = at(0, limit.value);
      const above = y < bounds.top - 0.5;
      if (!(above || y <= bounds.bottom + 0.5)) continue;
      const label = above ? `\u2191 ${limit.label} ${howdah.format.significant(limit.value)}` : limit.label;
      const width = widthOf(label);
      const spot = placed(boxes, curves, width, along(above ? bounds.top - 1 : y, width, bounds), bounds);
      // Two coinciding limits have room for one name: the line represents both.
      drawn.limits.push({ y: above ? null : y, label: spot ? label : "", at: spot || { x: bounds.right, y } });
    }
    for (const exit of exits) {
      const point = at(exit.x, exit.y === null ? 0 : exit.y);
      boxes.push({ left: point.x - 7, right: point.x + 7, top: point.y - 7, bottom: point.y + 7 });
    }
    for (const exit of [...exits].sort((a, b) => a.x - b.x)) {
      const point = at(exit.x, exit.y === null ? 0 : exit.y);
      if (!(point.x >= bounds.left && point.x <= bounds.right)) continue;
      const inside = point.y >= bounds.top && point.y <= bounds.bottom;
      const y = Math.min(bounds.bottom, Math.max(bounds.top, point.y));
      const label = fitting(exit.label, bounds.right - bounds.left - 4);
      const width = widthOf(label);
      const spot = placed(boxes, curves, width, beside(point.x, y, width, bounds), bounds) || {
        x: Math.max(bounds.left + 2, Math.min(point.x + 9, bounds.right - 2 - width)),
        y: Math.max(bounds.top + 2, Math.min(y - 8, bounds.bottom - HIGH - 2)) + BASE,
      };
      drawn.exits.push({ x: point.x, y, inside, colour: exit.colour, label, at: spot });
    }
    return drawn;
  }

  function draw(plot, drawn) {
    const context = plot.ctx;
    const bounds = frame(plot);
    const [quiet, surface] = ["quiet", "surface"].map(theme.token);
    const [limitDash, instantDash] = ["limit-dashes", "instant-dashes"].map((name) => theme.token(name).split(" ").map(Number));
    context.save();
    context.scale(devicePixelRatio, devicePixelRatio);
    context.font = FONT;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.lineJoin = "round";
    const text = (label, x, y, colour) => {
      context.globalAlpha = 0.85;
      context.fillStyle = surface;
      context.fillRect(x - 2, y - BASE + 1, widthOf(label) + 4, HIGH);
      context.globalAlpha = 1;
      context.fillStyle = colour;
      context.fillText(label, x, y);
    };
    const rule = (colour, dash, fromX, fromY, toX, toY) => {
      context.setLineDash(dash);
      context.lineWidth = 1;
      context.strokeStyle = colour;
      context.beginPath();
      context.moveTo(fromX, fromY);
      context.lineTo(toX, toY);
      context.stroke();
    };
    for (const instant of drawn.instants) {
      rule(quiet, instantDash, instant.x, bounds.top, instant.x, bounds.bottom);
      text(instant.label, instant.at.x, instant.at.y, quiet);
    }
    for (const limit of drawn.limits) {
      if (limit.y !== null) rule(quiet, limitDash, bounds.left, limit.y, bounds.right, limit.y);
      if (limit.label) text(limit.label, limit.at.x, limit.at.y, quiet);
    }
    for (const event of drawn.events) {
      context.setLineDash([]);
      context.lineWidth = 1.5;
      context.strokeStyle = event.colour;
      context.fillStyle = surface;
      const diamond = new Path2D(`M${event.x.toFixed(2)} ${(event.y - EVENT).toFixed(2)}l${EVENT} ${EVENT}l${-EVENT} ${EVENT}l${-EVENT} ${-EVENT}Z`);
      context.fill(diamond);
      context.stroke(diamond);
      if (context.setTitle) context.setTitle(event.label);
    }
    for (const exit of drawn.exits) rule(exit.colour, instantDash, exit.x, bounds.top, exit.x, bounds.bottom);
    for (const exit of drawn.exits) {
      if (exit.inside) {
        context.setLineDash([]);
        context.lineWidth = 2;
        context.strokeStyle = surface;
        context.fillStyle = exit.colour;
        context.beginPath();
        context.arc(exit.x, exit.y, 5, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      }
      text(exit.label, exit.at.x, exit.at.y, exit.colour);
    }
    context.restore();
  }

  // The event nearest to a place, within a finger's width; with `across`, only the horizontal distance matters.
  function near(events, x, y, across) {
    let best = null;
    let least = 12;
    for (const event of events) {
      const distance = across ? Math.abs(event.x - x) : Math.hypot(event.x - x, event.y - y);
      if (distance < least) {
        best = event;
        least = distance;
      }
    }
    return best;
  }

  return { axis, frame, layout, draw, near, widthOf };
})();
