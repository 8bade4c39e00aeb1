// SPDX-License-Identifier: Apache-2.0
// A figure as SVG, drawn again on the recording canvas (recorder.js), and as PNG, made from the SVG.
"use strict";
howdah.save = (() => {
  const { state, theme, legend, marks, Recorder } = howdah;
  const { element, escaped } = Recorder;
  const EDGE = 12;
  const TITLE = { size: 14, weight: 600 };
  const LINE = 18; // pixels from one line of text to the next
  const KEY = 32; // width of a legend sample and the space after it

  // Draw the current view with the figure's own code.
  function drawn(figure) {
    const { plot } = figure;
    const recorder = new Recorder();
    const real = { getContext: HTMLCanvasElement.prototype.getContext, Path2D };
    const options = figure.options();
    const named = (_, index) => {
      const line = figure.lines[index - 1];
      if (!line.points && !line.low) recorder.setTitle(line.label);
    };
    options.hooks = { drawAxes: options.hooks.drawAxes, draw: options.hooks.draw, drawSeries: [named] };
    Object.assign(options, { width: plot.width, height: plot.height, pxAlign: 0, cursor: { show: false } });
    HTMLCanvasElement.prototype.getContext = () => recorder;
    window.Path2D = Recorder.Path;
    try {
      const { min, max } = plot.scales.x;
      const begin = (made, init) => made.batch(() => {
        init();
        made.setScale("x", { min, max });
      });
      new uPlot(options, plot.data, begin).destroy();
    } finally {
      HTMLCanvasElement.prototype.getContext = real.getContext;
      window.Path2D = real.Path2D;
      figure.plot = plot;
    }
    return recorder.svg;
  }

  const text = (x, y, content, attributes) => element("text", { x, y, ...attributes }, escaped(content));

  // Break a text into lines of at most that width where its words permit; words end at spaces and hyphens.
  function wrapped(content, width, font) {
    const found = [""];
    for (const word of content.match(/[^\s-]*[\s-]?/g)) {
      if (found.at(-1) && marks.widthOf(found.at(-1) + word, font) > width) found.push("");
      found[found.length - 1] += word;
    }
    return found;
  }

  // Title and legend, broken into lines that fit the figure.
  function above(title, shown, width, fill) {
    const font = `${TITLE.weight} ${TITLE.size}px system-ui, sans-serif`;
    let svg = "";
    let y = 20;
    for (const part of wrapped(title, width - 2 * EDGE, font)) {
      svg += text(EDGE, y, part, { "font-size": TITLE.size, "font-weight": TITLE.weight, fill });
      y += LINE;
    }
    let x = EDGE;
    y += 2;
    for (const line of shown) {
      const parts = wrapped(line.label, width - 2 * EDGE - KEY);
      const wide = KEY + Math.max(...parts.map((part) => marks.widthOf(part)));
      if (x > EDGE && x + wide > width - EDGE) {
        x = EDGE;
        y += LINE;
      }
      svg += element("g", { transform: `translate(${x} ${y - 8})` }, legend.sample(line).innerHTML);
      svg += parts.map((part, index) => text(x + KEY, y + index * LINE, part, { fill })).join("");
      y += (parts.length - 1) * LINE;
      x += wide + 14;
    }
    return { svg, bottom: y + 6 };
  }

  // The current view of a figure as an SVG document.
  function document_(figure) {
    const { width, height } = figure.plot;
    const shown = figure.lines.filter((line) => !state.view.hidden.has(line.key));
    const ink = theme.token("ink");
    const title = `${figure.description.title}, ${figure.unit.name}`;
    const { svg: head, bottom } = above(`${document.querySelector("h1").textContent} – ${title}`, shown, width, ink);
    const high = bottom + height + 4;
    const scaled = `translate(0 ${bottom}) scale(${1 / devicePixelRatio})`;
    const page = { xmlns: "http://www.w3.org/2000/svg", width, height: high, viewBox: `0 0 ${width} ${high}` };
    return element("svg", { ...page, "font-family": "system-ui, 'Liberation Sans', sans-serif", "font-size": 12 }, [
      element("title", {}, escaped(`${document.title}: ${title}`)),
      element("rect", { width: "100%", height: "100%", fill: theme.token("surface") }),
      head,
      element("g", { transform: scaled }, drawn(figure)),
    ].join("\n"));
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
