// SPDX-License-Identifier: Apache-2.0
// A figure as SVG, written from what is in view, and as PNG, drawn from that SVG.
"use strict";
howdah.save = (() => {
  const { state, theme } = howdah;
  const HEADER = 46;
  const LEGEND_LINE = 18;

  const escaped = (text) => text.replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
  const number = (value) => String(Math.round(value * 100) / 100);

  function text(x, y, content, attributes = "") {
    return `<text x="${number(x)}" y="${number(y)}" ${attributes}>${escaped(content)}</text>`;
  }

  // Points of one line within the view and one beyond each side; gaps where the data has them.
  function pathOf(figure, index) {
    const { plot } = figure;
    const x = plot.data[0];
    const y = plot.data[index];
    const { min, max } = plot.scales.x;
    let first = 0;
    let last = x.length - 1;
    while (first < last && x[first] < min) first++;
    while (last > first && x[last] > max) last--;
    while (first > 0 && y[first - 1] !== null && x[first] >= min) { first--; if (y[first] !== undefined) break; }
    while (last < x.length - 1 && y[last + 1] !== null && x[last] <= max) { last++; if (y[last] !== undefined) break; }
    let path = "";
    let pen = "M";
    for (let at = first; at <= last; at++) {
      if (y[at] === undefined) continue;
      if (y[at] === null) {
        pen = "M";
        continue;
      }
      const point = figure.position(x[at], y[at]);
      path += `${pen}${number(point.x)} ${number(point.y)}`;
      pen = "L";
    }
    return path;
  }

  function axes(figure, bounds, tokens) {
    const { plot } = figure;
    let out = "";
    const [across, up] = plot.axes;
    across._splits.forEach((value, index) => {
      const { x } = figure.position(value, 0);
      if (x < bounds.left - 0.5 || x > bounds.right + 0.5) return;
      out += `<path d="M${number(x)} ${number(bounds.top)}V${number(bounds.bottom)}" stroke="${tokens.faint}"/>`;
      out += text(x, bounds.bottom + 16, String(across._values[index] ?? ""), `text-anchor="middle" fill="${tokens.quiet}"`);
    });
    up._splits.forEach((value, index) => {
      const { y } = figure.position(0, value);
      if (y < bounds.top - 0.5 || y > bounds.bottom + 0.5) return;
      out += `<path d="M${number(bounds.left)} ${number(y)}H${number(bounds.right)}" stroke="${tokens.faint}"/>`;
      out += text(bounds.left - 8, y + 4, String(up._values[index] ?? ""), `text-anchor="end" fill="${tokens.quiet}"`);
    });
    out += text((bounds.left + bounds.right) / 2, bounds.bottom + 34, across.label, `text-anchor="middle" fill="${tokens.quiet}"`);
    return out;
  }

  function marked(figure, bounds, tokens) {
    const drawn = figure.marksNow();
    const halo = `paint-order="stroke" stroke="${tokens.surface}" stroke-width="4" stroke-linejoin="round"`;
    let out = "";
    for (const instant of drawn.instants) {
      out += `<path d="M${number(instant.x)} ${number(bounds.top)}V${number(bounds.bottom)}" stroke="${tokens.quiet}" stroke-dasharray="2 3"/>`;
      out += text(instant.at.x, instant.at.y, instant.label, `fill="${tokens.quiet}" ${halo}`);
    }
    for (const limit of drawn.limits) {
      if (limit.y !== null) out += `<path d="M${number(bounds.left)} ${number(limit.y)}H${number(bounds.right)}" stroke="${tokens.quiet}" stroke-dasharray="6 4"/>`;
      out += text(limit.at.x, limit.at.y, limit.label, `fill="${tokens.quiet}" ${halo}`);
    }
    for (const event of drawn.events) {
      out += `<path d="${howdah.marks.outline(event)}" fill="${tokens.surface}" stroke="${event.colour}" stroke-width="1.5"><title>${escaped(event.label)}</title></path>`;
    }
    for (const exit of drawn.exits) {
      out += `<path d="M${number(exit.x)} ${number(bounds.top)}V${number(bounds.bottom)}" stroke="${exit.colour}" stroke-dasharray="2 3"/>`;
      if (exit.inside) out += `<circle cx="${number(exit.x)}" cy="${number(exit.y)}" r="5" fill="${exit.colour}" stroke="${tokens.surface}" stroke-width="2"/>`;
      out += text(exit.at.x, exit.at.y, exit.label, `fill="${exit.colour}" ${halo}`);
    }
    return out;
  }

  // Entries of the legend in lines as long as the figure allows.
  function legendOf(figure, shown, width, tokens) {
    let x = 12;
    let y = 0;
    let out = "";
    for (const line of shown) {
      const wide = 44 + line.label.length * 6.6;
      if (x + wide > width && x > 12) {
        x = 12;
        y += LEGEND_LINE;
      }
      const at = HEADER - 6 + y;
      if (line.points) out += `<circle cx="${x + 13}" cy="${at - 4}" r="3" fill="${line.colour}"/>`;
      else if (line.low) out += `<path d="M${x + 4} ${at - 8}v8m6 -8v8m6 -8v8m6 -8v8" stroke="${line.colour}" stroke-width="1.5"/>`;
      else out += `<path d="M${x} ${at - 4}h26" stroke="${line.colour}" stroke-width="${line.width + 0.5}" stroke-dasharray="${line.dash.join(" ")}"/>`;
      out += text(x + 32, at, line.label, `fill="${tokens.ink}"`);
      x += wide;
    }
    return { svg: out, height: y };
  }

  // The current view of a figure as an SVG document.
  function document_(figure) {
    const names = ["surface", "ink", "quiet", "faint", "rule"];
    const tokens = Object.fromEntries(names.map((name) => [name, theme.token(name)]));
    const bounds = figure.bounds();
    const { plot } = figure;
    const shown = figure.lines.filter((line) => !state.view.hidden.has(line.key));
    const legend = legendOf(figure, shown, plot.width, tokens);
    const top = HEADER + legend.height;
    const height = top + plot.height + 4;
    const title = `${figure.description.title}, ${figure.unit.name}`;
    let body = "";
    for (const band of figure.outlinesNow()) {
      body += `<path d="${band.path}" fill="${band.colour}" fill-opacity="${howdah.bands.OPACITY}"/>`;
    }
    body += howdah.spots.svg(figure.spotsNow(), number);
    figure.lines.forEach((line, index) => {
      if (state.view.hidden.has(line.key)) return;
      const dash = line.dash.length ? ` stroke-dasharray="${line.dash.join(" ")}"` : "";
      if (line.points || line.low) return;
      body += `<path d="${pathOf(figure, index + 1)}" stroke="${line.colour}" stroke-width="${line.width}" stroke-linejoin="round" opacity="${line.alpha}"${dash}><title>${escaped(line.label)}</title></path>`;
    });
    for (const stripe of figure.stripesNow()) {
      const path = stripe.points.map((point, index) => `${index ? "L" : "M"}${number(point.x)} ${number(point.y)}`).join("");
      body += `<path d="${path}" stroke="${stripe.colour}" stroke-width="${stripe.width}" stroke-dasharray="${stripe.dash.join(" ")}" stroke-dashoffset="${stripe.offset}"/>`;
    }
    const box = `x="${number(bounds.left)}" y="${number(bounds.top)}" width="${number(bounds.right - bounds.left)}" height="${number(bounds.bottom - bounds.top)}"`;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${plot.width}" height="${height}" viewBox="0 0 ${plot.width} ${height}" font-family="system-ui, 'Liberation Sans', sans-serif" font-size="12" fill="none">`,
      `<title>${escaped(`${document.title}: ${title}`)}</title>`,
      `<rect width="100%" height="100%" fill="${tokens.surface}"/>`,
      text(12, 20, `${document.querySelector("h1").textContent} – ${title}`, `font-size="14" font-weight="600" fill="${tokens.ink}"`),
      legend.svg,
      `<g transform="translate(0 ${top})">`,
      axes(figure, bounds, tokens),
      `<clipPath id="view"><rect ${box}/></clipPath><g clip-path="url(#view)">${body}</g>`,
      marked(figure, bounds, tokens),
      "</g></svg>",
    ].join("\n");
  }

  function nameOf(figure, suffix) {
    const title = document.querySelector("h1").textContent.replace(/[^A-Za-z0-9.-]+/g, "-").slice(0, 60);
    return `${title}-${figure.description.id}.${suffix}`;
  }

  function download(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const svgBlob = (figure) => new Blob([document_(figure)], { type: "image/svg+xml" });

  function svg(figure) {
    download(svgBlob(figure), nameOf(figure, "svg"));
  }

  async function png(figure) {
    const source = URL.createObjectURL(svgBlob(figure));
    const image = new Image();
    image.src = source;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width * 2;
    canvas.height = image.height * 2;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(source);
    canvas.toBlob((blob) => download(blob, nameOf(figure, "png")), "image/png");
  }

  return { svg, png, document: document_ };
})();
