// SPDX-License-Identifier: Apache-2.0
// The legend of a figure: a button for each line, which hides it, and the line's value under the cursor.
"use strict";
howdah.legend = (() => {
  const { state, format } = howdah;
  const SVG = "http://www.w3.org/2000/svg";

  function sample(line) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("width", "26");
    svg.setAttribute("height", "8");
    svg.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", line.points ? "M10 4a3 3 0 1 0 6 0a3 3 0 1 0 -6 0" : line.low ? "M4 0V8M10 0V8M16 0V8M22 0V8" : "M0 4H26");
    path.setAttribute("fill", line.points ? line.colour : "none");
    path.setAttribute("stroke", line.colour);
    path.setAttribute("stroke-width", String(line.width + 0.5));
    path.setAttribute("stroke-dasharray", line.low ? "" : line.dash.join(" "));
    path.setAttribute("opacity", String(line.alpha));
    svg.append(path);
    return svg;
  }

  // `rows` has the fields that `show` fills in.
  function build(container, lines, toggled) {
    container.replaceChildren();
    const at = document.createElement("span");
    at.className = "at";
    const rows = lines.map((line, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.view.hidden.has(line.key)));
      button.title = "Hide or show this line";
      const name = document.createElement("span");
      name.textContent = line.label;
      const value = document.createElement("output");
      button.append(sample(line), name, value);
      button.addEventListener("click", () => {
        const hide = !state.view.hidden.has(line.key);
        if (hide) state.view.hidden.add(line.key);
        else state.view.hidden.delete(line.key);
        button.setAttribute("aria-pressed", String(!hide));
        toggled(index, !hide);
      });
      container.append(button);
      return { line, value };
    });
    container.append(at);
    return { rows, at };
  }

  // Show the values under the cursor, or empty the fields without one. Returns the values as a sentence.
  function show(legend, plot, unit) {
    const index = plot.cursor.idx;
    const none = index === null || index === undefined;
    const span = plot.scales.x.max - plot.scales.x.min;
    const time = none ? "" : format.seconds(plot.data[0][index], span);
    legend.at.textContent = none ? "" : `at ${time}`;
    const spoken = [];
    legend.rows.forEach((row, position) => {
      const found = none ? null : plot.cursor.idxs[position + 1];
      const value = found === null || found === undefined ? null : plot.data[position + 1][found];
      const text = value === null || value === undefined ? "" : format.significant(value);
      if (row.value.textContent !== text) row.value.textContent = text;
      if (text && plot.series[position + 1].show) spoken.push(`${row.line.label} ${text} ${unit}`);
    });
    return none ? "" : `${time}: ${spoken.join(", ") || "no value"}`;
  }

  return { build, show, sample };
})();
