// SPDX-License-Identifier: Apache-2.0
// For a page of many runs: a map of medians over two axes of the sweep, and the rows of selected runs.
"use strict";
howdah.many = (() => {
  const MOST_FIELDS = 20; // most fields along an axis of the map; beyond it neighbouring values share a field
  const MOST_CHOICES = 200; // most values of an axis that rows can be filtered by
  const PAGE = 50; // rows shown at once
  let data = null;
  const view = { measure: 0, across: -1, down: -1, at: new Map(), verdict: -1, field: null, first: 0 };

  const make = (name, text = "", css = "") => {
    const made = document.createElement(name);
    made.textContent = text;
    if (css) made.className = css;
    return made;
  };

  function chooser(label, options, value, action) {
    const made = make("label", "", "group");
    const select = make("select");
    for (const [key, text] of options) select.add(new Option(text, String(key), false, key === value));
    select.setAttribute("aria-label", label);
    select.addEventListener("change", () => action(Number(select.value)));
    made.append(make("span", label, "name"), select);
    return made;
  }

  // The fields along an axis: their labels, and the index of each value's field.
  function fields(axis) {
    if (axis < 0) return { labels: [""], size: 1 };
    const { values } = data.axes[axis];
    const size = Math.ceil(values.length / MOST_FIELDS);
    const labels = [];
    for (let first = 0; first < values.length; first += size) {
      const last = Math.min(values.length, first + size) - 1;
      labels.push(last > first ? `${values[first]} … ${values[last]}` : values[first]);
    }
    return { labels, size };
  }

  const field = (axis, size, row) => (axis < 0 ? 0 : Math.floor(data.axes[axis].at[row] / size));

  // The rows at the chosen values of all axes, whether they count or not.
  function standing() {
    const found = [];
    for (let row = 0; row < data.rows.run.length; row++) {
      let here = true;
      for (const [axis, value] of view.at) here &&= data.axes[axis].at[row] === value;
      if (here) found.push(row);
    }
    return found;
  }

  function median(values) {
    values.sort((a, b) => a - b);
    const middle = values.length >> 1;
    return values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  }

  function drawMap() {
    const table = document.querySelector("#map table");
    const values = data.rows.values[view.measure];
    if (!values) return table.replaceChildren(make("caption", "No run has a number."));
    const across = fields(view.across);
    const down = fields(view.down);
    const found = new Map();
    for (const row of standing()) {
      if (!data.rows.counts[row] || values[row] === null) continue;
      const key = field(view.down, down.size, row) * across.labels.length + field(view.across, across.size, row);
      if (!found.has(key)) found.set(key, []);
      found.get(key).push(values[row]);
    }
    const medians = new Map([...found].map(([key, numbers]) => [key, median(numbers)]));
    const least = Math.min(...medians.values());
    const range = Math.max(...medians.values()) - least;
    const measure = data.measures[view.measure];
    table.replaceChildren(make("caption", [measure.header, measure.unit && `(${measure.unit})`].filter(Boolean).join(" ")));
    const head = table.createTHead().insertRow();
    head.append(make("th", [view.down, view.across].filter((axis) => axis >= 0).map((axis) => data.axes[axis].label).join(" \\ ")));
    for (const label of across.labels) head.append(make("th", label));
    const body = table.createTBody();
    down.labels.forEach((label, line) => {
      const row = body.insertRow();
      row.append(make("th", label));
      across.labels.forEach((other, column) => {
        const key = line * across.labels.length + column;
        const cell = row.insertCell();
        if (!medians.has(key)) return;
        const button = make("button", howdah.format.significant(medians.get(key), 3));
        button.type = "button";
        button.style.setProperty("--share", String(range ? (medians.get(key) - least) / range : 0));
        button.setAttribute("aria-pressed", String(view.field?.line === line && view.field.column === column));
        const count = found.get(key).length;
        button.title = [label, other, `${count} ${count === 1 ? "row" : "rows"}`].filter(Boolean).join(", ");
        button.setAttribute("aria-label", `${button.textContent}: ${button.title}`);
        button.addEventListener("click", () => change(() => {
          const again = view.field?.line === line && view.field.column === column;
          view.field = again ? null : { line, column };
        }));
        cell.append(button);
      });
    });
  }

  function listed() {
    const across = fields(view.across);
    const down = fields(view.down);
    return standing().filter(
      (row) =>
        (view.verdict < 0 || data.rows.verdict[row] === view.verdict) &&
        (!view.field ||
          (field(view.across, across.size, row) === view.field.column && field(view.down, down.size, row) === view.field.line)),
    );
  }

  function drawRows() {
    const rows = listed();
    view.first = Math.min(view.first, Math.max(0, rows.length - 1));
    view.first -= view.first % PAGE;
    const shown = rows.slice(view.first, view.first + PAGE);
    document.getElementById("rows-told").textContent = rows.length
      ? `Rows ${view.first + 1} to ${view.first + shown.length} of ${rows.length}${view.field ? ", of the field chosen above" : ""}.`
      : "No run is like this.";
    const table = document.querySelector("#rows-table table");
    table.replaceChildren();
    const head = table.createTHead().insertRow();
    const heading = (text, unit, css) => {
      const made = make("th", text, css);
      made.scope = "col";
      if (unit) made.append(make("span", unit, "unit"));
      head.append(made);
    };
    heading("run", "", "word");
    for (const axis of data.axes) heading(axis.label, "", "word");
    heading("verdict", "", "word");
    heading("cause", "", "word");
    for (const measure of data.measures) heading(measure.header, measure.unit, "");
    const body = table.createTBody();
    for (const row of shown) {
      const made = body.insertRow();
      const cell = (content, css = "") => {
        const each = made.insertCell();
        each.className = css;
        each.append(content);
      };
      cell(make("code", data.rows.run[row]), "word");
      for (const axis of data.axes) cell(axis.values[axis.at[row]], "word");
      const verdict = data.verdicts[data.rows.verdict[row]];
      const said = make("span", verdict, `verdict ${verdict}`);
      const why = data.whys[data.rows.why[row]];
      cell(said, "word");
      if (why) made.lastChild.append(` ${why}`);
      cell(data.causes[data.rows.cause[row]] || "—", "word");
      for (const values of data.rows.values) cell(howdah.format.significant(values[row]));
    }
    return rows.length;
  }

  function drawControls(count) {
    const names = data.axes.map((axis, number) => [number, axis.label]);
    const whole = () => change(() => (view.field = null));
    const map = document.getElementById("map-controls");
    map.replaceChildren(
      chooser("measure", data.measures.map((each, number) => [number, each.header]), view.measure, (value) => change(() => (view.measure = value))),
      chooser("across", [[-1, "nothing"], ...names], view.across, (value) => change(() => lay("across", value))),
      chooser("down", [[-1, "nothing"], ...names], view.down, (value) => change(() => lay("down", value))),
    );
    data.axes.forEach((axis, number) => {
      if (number === view.across || number === view.down || axis.values.length > MOST_CHOICES) return;
      const options = [[-1, "all"], ...axis.values.map((value, place) => [place, value])];
      map.append(chooser(axis.label, options, view.at.get(number) ?? -1, (value) => change(() => {
        if (value < 0) view.at.delete(number);
        else view.at.set(number, value);
      })));
    });
    const rows = document.getElementById("rows-controls");
    const step = (text, distance, possible) => {
      const made = make("button", text);
      made.type = "button";
      made.disabled = !possible;
      made.addEventListener("click", () => change(() => (view.first += distance)));
      return made;
    };
    const all = make("button", "whole map");
    all.type = "button";
    all.disabled = !view.field;
    all.addEventListener("click", whole);
    rows.replaceChildren(
      chooser("verdict", [[-1, "all"], ...data.verdicts.map((word, number) => [number, word])], view.verdict, (value) => change(() => (view.verdict = value))),
      all,
      step("earlier rows", -PAGE, view.first > 0),
      step("later rows", PAGE, view.first + PAGE < count),
    );
  }

  // Put an axis along one side of the map, with all its values; if the other side has it, the sides are swapped.
  function lay(side, axis) {
    const other = side === "across" ? "down" : "across";
    if (axis >= 0 && view[other] === axis) view[other] = view[side];
    view[side] = axis;
    view.at.delete(axis);
    view.field = null;
  }

  function draw() {
    drawMap();
    drawControls(drawRows());
  }

  function change(action) {
    const first = view.first;
    action();
    if (view.first === first) view.first = 0;
    const focused = document.activeElement?.getAttribute("aria-label");
    draw();
    if (focused) document.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  function bind() {
    const source = document.getElementById("rows");
    if (!source) return;
    data = JSON.parse(source.textContent);
    const order = data.axes.map((axis, number) => number).filter((number) => !["flow", "repetition"].includes(data.axes[number].name));
    order.sort((a, b) => data.axes[b].values.length - data.axes[a].values.length);
    if (order.length) view.across = order[0];
    else if (data.axes.length) view.across = 0;
    if (order.length > 1) view.down = order[1];
    const flow = data.axes.findIndex((axis) => axis.name === "flow");
    if (flow >= 0 && flow !== view.across) view.at.set(flow, 0);
    draw();
  }

  return { bind };
})();
