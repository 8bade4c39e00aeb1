// SPDX-License-Identifier: Apache-2.0
// Reference lines, slow-start exits and events on a figure.
"use strict";
howdah.marks = (() => {
  const FONT = "12px system-ui, sans-serif";
  const INSTANT = [2, 3]; // dashes
  const LIMIT = [6, 4];
  const EVENT = 5; // pixels from the middle of an event's diamond to its corners
  const ruler = document.createElement("canvas").getContext("2d");

  function widthOf(text) {
    ruler.font = FONT;
    return ruler.measureText(text).width;
  }

  const overlap = (one, other) => one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;

  // A place for a label beside its point, at either side, or a little above or below: free of other labels and of marks,
  // and of as many points of the curves as can be, near its own point first.
  function place(boxes, curves, x, y, width, bounds) {
    let best = null;
    for (let step = 0; step < 40; step++) {
      const top = y - 8 + (step % 2 ? -1 : 1) * Math.ceil(step / 2) * 8;
      if (top < bounds.top || top + 15 > bounds.bottom) continue;
      for (const side of [x + 9, x - 9 - width, bounds.left + 2, bounds.right - 2 - width]) {
        const box = { left: side, right: side + width, top, bottom: top + 15 };
        if (side < bounds.left + 2 || box.right > bounds.right - 2 || boxes.some((each) => overlap(each, box))) continue;
        const covered = curves.filter((point) => point.x > box.left - 3 && point.x < box.right + 3 && point.y > top - 2 && point.y < box.bottom + 2).length;
        const cost = 20 * Math.min(covered, 10) + step + Math.abs(side + width / 2 - x) / 40;
        if (!best || cost < best.cost) best = { cost, box };
      }
    }
    const left = Math.max(bounds.left + 2, Math.min(x + 9, bounds.right - 2 - width));
    const top = Math.max(bounds.top + 2, Math.min(y - 8, bounds.bottom - 17));
    const box = best ? best.box : { left, right: left + width, top, bottom: top + 15 };
    boxes.push(box);
    return { x: box.left, y: box.top + 12 };
  }

  // A place for the name of a limit, above or below its line: as far right as it covers the fewest points of the curves.
  function beside(boxes, curves, y, width, bounds) {
    let best = null;
    for (let step = 0; step <= 24; step++) {
      const left = bounds.right - 4 - width - (step * (bounds.right - bounds.left - width - 8)) / 24;
      for (const base of [y - 4, y + 13]) {
        const box = { left, right: left + width, top: base - 12, bottom: base + 3 };
        if (base < bounds.top + 12 || base > bounds.bottom - 2 || boxes.some((each) => overlap(each, box))) continue;
        const covered = curves.filter((point) => point.x > left - 2 && point.x < box.right + 2 && point.y > box.top && point.y < box.bottom).length;
        if (!best || covered < best.covered) best = { covered, box };
      }
    }
    return best && best.box;
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
      if (x >= bounds.left && x <= bounds.right) drawn.instants.push({ x, label: instant.label, at: { x: x + 5, y: bounds.top + 12 } });
    }
    for (const limit of limits) {
      const { y } = at(0, limit.value);
      if (y < bounds.top - 0.5) {
        const label = `\u2191 ${limit.label} ${howdah.format.significant(limit.value)}`;
        const width = widthOf(label);
        const right = boxes.filter((each) => each.top < bounds.top + 16).reduce((least, each) => Math.min(least, each.left - 10), bounds.right - 4);
        if (right - width < bounds.left + 4) continue;
        boxes.push({ left: right - width, right, top: bounds.top, bottom: bounds.top + 15 });
        drawn.limits.push({ y: null, label, at: { x: right - width, y: bounds.top + 12 } });
        continue;
      }
      if (!(y >= bounds.top - 0.5 && y <= bounds.bottom + 0.5)) continue;
      const spot = beside(boxes, curves, y, widthOf(limit.label), bounds);
      if (spot) boxes.push(spot);
      // Two limits in one place leave room for one name: the line stands for both.
      drawn.limits.push({ y, label: spot ? limit.label : "", at: { x: spot ? spot.left : bounds.right, y: spot ? spot.bottom - 3 : y } });
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
      drawn.exits.push({
        x: point.x,
        y,
        inside,
        colour: exit.colour,
        label: exit.label,
        at: place(boxes, curves, point.x, y, widthOf(exit.label), bounds),
      });
    }
    return drawn;
  }

  function draw(context, drawn, bounds, tokens) {
    context.font = FONT;
    context.textAlign = "left";
    context.textBaseline = "alphabetic";
    context.lineJoin = "round";
    const text = (label, x, y, colour) => {
      context.globalAlpha = 0.85;
      context.fillStyle = tokens.surface;
      context.fillRect(x - 2, y - 11, widthOf(label) + 4, 15);
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
      rule(tokens.quiet, INSTANT, instant.x, bounds.top, instant.x, bounds.bottom);
      text(instant.label, instant.at.x, instant.at.y, tokens.quiet);
    }
    for (const limit of drawn.limits) {
      if (limit.y !== null) rule(tokens.quiet, LIMIT, bounds.left, limit.y, bounds.right, limit.y);
      if (limit.label) text(limit.label, limit.at.x, limit.at.y, tokens.quiet);
    }
    for (const event of drawn.events) {
      context.setLineDash([]);
      context.lineWidth = 1.5;
      context.strokeStyle = event.colour;
      context.fillStyle = tokens.surface;
      const diamond = new Path2D(`M${event.x.toFixed(2)} ${(event.y - EVENT).toFixed(2)}l${EVENT} ${EVENT}l${-EVENT} ${EVENT}l${-EVENT} ${-EVENT}Z`);
      context.fill(diamond);
      context.stroke(diamond);
      if (context.called) context.called(event.label);
    }
    for (const exit of drawn.exits) rule(exit.colour, INSTANT, exit.x, bounds.top, exit.x, bounds.bottom);
    for (const exit of drawn.exits) {
      if (exit.inside) {
        context.setLineDash([]);
        context.lineWidth = 2;
        context.strokeStyle = tokens.surface;
        context.fillStyle = exit.colour;
        context.beginPath();
        context.arc(exit.x, exit.y, 5, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      }
      text(exit.label, exit.at.x, exit.at.y, exit.colour);
    }
  }

  // The event nearest to a place, within a finger's width; with `across`, only the horizontal distance counts.
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

  return { layout, draw, near, widthOf, FONT };
})();
