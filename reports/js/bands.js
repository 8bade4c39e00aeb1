// SPDX-License-Identifier: Apache-2.0
// The band behind a line: the range of all repetitions.
"use strict";
howdah.bands = (() => {
  const OPACITY = 0.16;

  // The outline of a band within the view as an SVG path, steps of the band's cells. `at` maps data to pixels.
  function outline(band, scale, at) {
    let path = "";
    let cells = [];
    const end = () => {
      const corners = (side) => cells.flatMap((cell) => [at(band.x[cell], band[side][cell]), at(band.x[cell + 1], band[side][cell])]);
      const points = cells.length ? [...corners("high"), ...corners("low").reverse()] : [];
      points.forEach((point, index) => { path += `${index ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`; });
      if (points.length) path += "Z";
      cells = [];
    };
    for (let cell = 0; cell < band.low.length; cell++) {
      if (band.x[cell + 1] < scale.min || band.x[cell] > scale.max) continue;
      if (band.low[cell] === null) end();
      else cells.push(cell);
    }
    end();
    return path;
  }

  // The least and greatest value of some bands within the view, together with the given `least` and `most`.
  function reach(bands, scale, least, most) {
    for (const band of bands) {
      band.low.forEach((low, cell) => {
        if (low === null || band.x[cell + 1] < scale.min || band.x[cell] > scale.max) return;
        least = Math.min(least, low);
        most = Math.max(most, band.high[cell]);
      });
    }
    return [least, most];
  }

  function draw(context, outlines) {
    for (const each of outlines) {
      context.globalAlpha = OPACITY;
      context.fillStyle = each.colour;
      context.fill(new Path2D(each.path));
    }
    context.globalAlpha = 1;
  }

  // What the shading means, in words; null without shading.
  function words(bands) {
    const counts = [...new Set(bands.map((band) => band.count))].sort((a, b) => a - b);
    if (!counts.length) return null;
    const several = counts.length > 1 ? `${counts[0]} to ${counts.at(-1)}` : counts[0];
    return `Shaded: ${several} repetitions, from the least to the largest.`;
  }

  return { outline, reach, draw, words };
})();
