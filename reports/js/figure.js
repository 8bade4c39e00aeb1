// SPDX-License-Identifier: Apache-2.0
// One figure: title, legend, canvas, remarks, keyboard.
"use strict";
howdah.Figure = (() => {
  const { state, lines, marks, legend, format } = howdah;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const all = [];
  const MOST_POINTS = 300; // most points of a line that labels avoid
  const APART = 6; // pixels between the points of a line that labels avoid

  class Figure {
    constructor(description, parent) {
      all.push(this);
      this.description = description;
      this.plot = null;
      this.root = element("figure", "plot");
      this.root.id = `figure-${description.id}`;
      const bar = element("div", "bar");
      this.title = element("h3");
      this.actions = element("div", "actions");
      bar.append(this.title, this.actions);
      this.legendBox = element("div", "legend");
      this.canvas = element("div", "canvas");
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "application");
      this.canvas.setAttribute("aria-roledescription", "chart");
      this.notes = element("div");
      this.root.append(bar, this.legendBox, this.canvas, this.notes);
      parent.append(this.root);
      for (const kind of ["PNG", "SVG"]) {
        const button = element("button", `save-${kind.toLowerCase()}`, kind);
        button.type = "button";
        button.setAttribute("aria-label", `Save ${description.title} as ${kind}`);
        button.addEventListener("click", () => howdah.save[kind.toLowerCase()](this));
        this.actions.append(button);
      }
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("blur", () => {
        if (this.plot) this.plot.setCursor({ left: -10, top: -10 });
        this.showTip(null);
      });
      // Runs before the cursor's own listener, which updates the legend and may move the figure.
      this.canvas.addEventListener("mousemove", (event) => {
        const box = this.canvas.getBoundingClientRect();
        this.point(event.clientX - box.left, event.clientY - box.top, false);
      }, true);
      this.canvas.addEventListener("mouseleave", () => this.showTip(null));
      howdah.touch.bind(this);
      new ResizeObserver(() => this.resize()).observe(this.canvas);
    }

    get axis() { return this.description.axis; }

    get height() { return Math.round(this.description.height * (this.canvas.clientWidth < 560 ? 0.85 : 1)); }

    bounds() { return marks.frame(this.plot); }

    position(x, y) { return this.bounds().at(x, y); }

    stripesNow() {
      const shown = this.lines.filter((line) => !state.view.hidden.has(line.key));
      return howdah.stripes.of(shown, this.plot.scales.x, (x, y) => this.position(x, y));
    }

    // Ranges and points are not curves, and several at the same time are all drawn.
    spotsNow() {
      const shown = this.lines.filter((line) => !state.view.hidden.has(line.key));
      return howdah.spots.of(shown, this.plot.scales.x, (x, y) => this.position(x, y));
    }

    bandsNow() {
      return lines.bands(this.description, this.lines.filter((line) => !state.view.hidden.has(line.key)));
    }

    // The bands in view: {colour, path}.
    outlinesNow() {
      const at = (x, y) => this.position(x, y);
      return this.bandsNow().map((band) => ({ colour: band.colour, path: howdah.bands.outline(band, this.plot.scales.x, at) }));
    }

    marksNow() {
      const shown = this.lines.filter((line) => !state.view.hidden.has(line.key));
      return marks.layout(
        this.bounds(),
        (x, y) => this.position(x, y),
        lines.limits(this.description),
        lines.exits(this.description, shown),
        this.axis === "exit" ? [{ value: 0, label: "exit" }] : [],
        lines.events(this.description, shown),
        this.pointsOf(shown),
      );
    }

    // Closely spaced points of each line in view, in CSS pixels, which labels must avoid.
    pointsOf(shown) {
      const { min, max } = this.plot.scales.x;
      const found = [];
      for (const line of shown) {
        const inside = line.x.flatMap((x, index) => (x >= min && x <= max && line.y[index] !== null ? [index] : []));
        const every = Math.max(1, Math.floor(inside.length / MOST_POINTS));
        let before = null;
        for (let at = 0; at < inside.length; at += every) {
          const point = this.position(line.x[inside[at]], line.y[inside[at]]);
          const parts = before && !line.points ? Math.ceil(Math.hypot(point.x - before.x, point.y - before.y) / APART) : 1;
          for (let part = 1; part < parts; part++) {
            found.push({ x: before.x + ((point.x - before.x) * part) / parts, y: before.y + ((point.y - before.y) * part) / parts });
          }
          found.push(point);
          before = point;
        }
      }
      return found;
    }

    // Show the event that a module reported at a place of the figure (CSS pixels from its corner). Returns it, or nothing.
    point(x, y, across) {
      const event = this.plot && this.description.events ? marks.near(this.marksNow().events, x, y, across) : null;
      this.showTip(event);
      return event;
    }

    showTip(event) {
      if (this.tip) this.tip.remove();
      this.tip = null;
      if (!event) return;
      this.tip = element("div", "tip");
      this.tip.setAttribute("role", "status");
      const when = format.seconds(event.at, 1);
      this.tip.append(element("strong", "", event.label), element("span", "", `${when}, cwnd ${format.significant(event.cwnd)} packets`));
      this.canvas.append(this.tip);
      const wide = this.canvas.clientWidth;
      const left = event.x + 12 + this.tip.offsetWidth > wide ? event.x - 12 - this.tip.offsetWidth : event.x + 12;
      this.tip.style.left = `${Math.max(0, left)}px`;
      this.tip.style.top = `${Math.max(0, event.y - this.tip.offsetHeight - 8)}px`;
    }

    // Redraw after a change of selection or theme. When all figures are drawn, rescale() aligns them.
    draw() {
      if (this.plot) this.plot.destroy();
      this.plot = null;
      this.canvas.replaceChildren();
      this.lines = lines.of(this.description);
      this.unit = lines.unitOf(this.description);
      const { title } = this.description;
      this.log = this.spansDecades();
      this.title.replaceChildren(`${title}, `, element("span", "unit", `${this.unit.name}${this.log ? ", logarithmic" : ""}`));
      this.legend = legend.build(this.legendBox, this.lines, (index, show) => {
        this.plot.setSeries(index + 1, { show });
      });
      this.remark();
      this.canvas.hidden = this.lines.length === 0;
      for (const button of this.actions.children) button.disabled = this.lines.length === 0;
      if (!this.lines.length) return;
      this.canvas.setAttribute("aria-label", `${title}: ${this.lines.map((line) => line.label).join(", ")}`);
      const drawn = (y) => (this.log ? y.map((each) => (each > 0 ? each : null)) : y);
      const data = uPlot.join(this.lines.map((line) => [line.x, drawn(line.y)]));
      this.plot = new uPlot(this.options(), data, this.canvas);
    }

    // Whether windows differ so much that the smaller ones would lie on the floor of a linear axis.
    spansDecades() {
      if (this.unit.name !== "packets") return false;
      const peaks = this.lines.filter((line) => line.part === "cwnd").map((line) => line.y.reduce((most, each) => Math.max(most, each), 0));
      const some = peaks.filter((peak) => peak > 0);
      return some.length > 1 && Math.max(...some) >= state.data.decade * Math.min(...some);
    }

    remark() {
      const { lacking, stayed, notCounting } = lines.remarks(this.description);
      this.notes.replaceChildren();
      for (const text of stayed.slice(0, 6)) this.notes.append(element("p", "note", `No exit to draw: ${text}`));
      if (stayed.length > 6) this.notes.append(element("p", "note", `and ${stayed.length - 6} more`));
      if (!this.lines.length && stayed.length && !lacking.length) return;
      if (!this.lines.length) {
        const texts = lacking.length ? lacking : ["nothing is selected that has data for this figure"];
        for (const text of texts.slice(0, 6)) this.notes.append(element("p", "missing", `Nothing to draw: ${text}`));
        if (texts.length > 6) this.notes.append(element("p", "note loud", `and ${texts.length - 6} more`));
        return;
      }
      for (const text of lacking.slice(0, 4)) this.notes.append(element("p", "note loud", `Missing: ${text}`));
      for (const text of notCounting.slice(0, 4)) this.notes.append(element("p", "note loud", `✕ ${text}`));
      const shaded = howdah.bands.words(lines.bands(this.description, this.lines));
      if (shaded) this.notes.append(element("p", "note", shaded));
      const told = lines.events(this.description, this.lines).length;
      if (told) this.notes.append(element("p", "note", "◇ a decision that a slow-start module reported: point at it, or move the cursor to it."));
      if (this.description.note) this.notes.append(element("p", "note", this.description.note));
      if (this.description.id === all[0].description.id) this.notes.append(...this.planned());
      if (this.axis === "exit") this.notes.append(element("p", "note", this.fullText()));
    }

    // The remark that the time axis ends before the plan does.
    planned() {
      const longest = Math.max(...state.runs().map((run) => run.planned));
      const over = state.runs().every((run) => run.shown < run.planned);
      return over ? [element("p", "note", `All flows end long before the plan does (at ${format.significant(longest)} s), so the figures stop soon after them.`)] : [];
    }

    // The remark on where every ACK is drawn and where only extremes are.
    fullText() {
      const windows = new Set(this.lines.filter((line) => line.flow.acks).map((line) => line.flow));
      const first = Math.max(...[...windows].map((flow) => flow.acks.full[0]));
      const last = Math.min(...[...windows].map((flow) => flow.acks.full[1]));
      const thinned = [...windows].some((flow) => flow.acks.records > flow.acks.time.count);
      return `Every ACK from ${format.seconds(first, 1)} to ${format.seconds(last, 1)} of the exit${thinned ? "; extremes beyond" : ""}.`;
    }

    // The range of values: from zero, with near limits, while nothing is zoomed; else the values in view.
    range(plot, least, most) {
      if (least === null || least === undefined) return [0, 1];
      [least, most] = howdah.bands.reach(this.bandsNow(), plot.scales.x, least, most);
      if (this.log) return [Math.max(0.5, 0.8 * least), 1.4 * most];
      if (state.view.zoom[this.axis] && !(this.axis === "time" && state.view.frame)) {
        const pad = (most - least || Math.abs(most) || 1) * 0.08;
        return [least >= 0 ? Math.max(0, least - pad) : least - pad, most + pad];
      }
      const limits = lines.limits(this.description).map((limit) => limit.value);
      const high = Math.max(most, ...limits.filter((value) => value <= 1.8 * most));
      const low = this.description.unit === "ms" ? 0.75 * Math.min(least, ...limits.slice(0, 1)) : 0;
      return [low, high > low ? high + (high - low) * 0.07 : low + 1];
    }

    options() {
      return {
        width: this.canvas.clientWidth,
        height: this.height,
        legend: { show: false },
        padding: [8, 14, 0, 0],
        scales: { x: { time: false }, y: { distr: this.log ? 3 : 1, range: (plot, least, most) => this.range(plot, least, most) } },
        axes: [
          { ...marks.axis(), size: 24, label: state.data.across[this.axis], labelSize: 18 },
          { ...marks.axis(), size: 58, space: 32 },
        ],
        series: [
          {},
          ...this.lines.map((line) => ({
            label: line.label,
            stroke: line.colour,
            width: line.width,
            dash: line.dash,
            alpha: line.alpha,
            show: !state.view.hidden.has(line.key),
            points: { show: false },
            ...(line.points || line.low ? { paths: () => null } : {}),
          })),
        ],
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false },
          hover: { prox: 40 },
          points: { size: 7 },
          sync: {
            key: this.axis,
            setSeries: false,
            scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
          },
          bind: { dblclick: () => () => { state.zoom(this.axis, null); return null; } },
        },
        hooks: {
          setSelect: [(plot) => this.selected(plot)],
          setCursor: [(plot) => { this.spoken = legend.show(this.legend, plot, this.unit.name); }],
          drawAxes: [(plot) => this.underlay(plot)],
          draw: [(plot) => this.overlay(plot)],
        },
      };
    }

    // Draw in CSS pixels, within the axes.
    inside(plot, draw) {
      if (this.plot !== plot) this.plot = plot;
      const { left, top, right, bottom } = this.bounds();
      plot.ctx.save();
      plot.ctx.scale(devicePixelRatio, devicePixelRatio);
      plot.ctx.beginPath();
      plot.ctx.rect(left, top, right - left, bottom - top);
      plot.ctx.clip();
      draw(plot.ctx);
      plot.ctx.restore();
    }

    underlay(plot) {
      this.inside(plot, (context) => howdah.bands.draw(context, this.outlinesNow()));
      this.inside(plot, (context) => howdah.spots.draw(context, this.spotsNow()));
    }

    overlay(plot) {
      this.inside(plot, (context) => howdah.stripes.draw(context, this.stripesNow()));
      marks.draw(plot, this.marksNow());
    }

    selected(plot) {
      const { left, width } = plot.select;
      if (width < 4) return;
      const range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
      plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      state.zoom(this.axis, range);
    }

    // The common range of all figures of this axis, so that they stay aligned.
    extent() {
      const columns = all.filter((each) => each.plot && each.axis === this.axis).map((each) => each.plot.data[0]);
      const first = Math.min(...columns.map((x) => x[0]));
      const last = Math.max(...columns.map((x) => x[x.length - 1]));
      if (this.axis !== "time") return [first, last];
      return [Math.min(0, first), Math.min(last, Math.max(...state.runs().map((run) => run.shown)))];
    }

    rescale() {
      if (!this.plot) return;
      const [min, max] = state.view.zoom[this.axis] || this.extent();
      this.plot.setScale("x", { min, max });
    }

    resize() {
      if (this.plot && this.canvas.clientWidth && this.canvas.clientWidth !== this.plot.width) {
        this.plot.setSize({ width: this.canvas.clientWidth, height: this.height });
      }
    }

    // Zoom by a factor around the cursor, or pan by a fraction of the view; never beyond the data.
    move(factor, shift) {
      const { min, max } = this.plot.scales.x;
      const [first, last] = this.extent();
      const cursor = this.plot.cursor.left >= 0 ? this.plot.posToVal(this.plot.cursor.left, "x") : (min + max) / 2;
      const span = Math.min((max - min) * factor, last - first);
      let start = cursor - (cursor - min) * (span / (max - min)) + shift * span;
      start = Math.max(first, Math.min(start, last - span));
      state.zoom(this.axis, span >= (last - first) * 0.999 ? null : [start, start + span]);
    }

    key(event) {
      if (!this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
      const wide = this.plot.over.clientWidth;
      const at = this.plot.cursor.left >= 0 ? this.plot.cursor.left : wide / 2;
      const cursor = (left) => {
        const to = Math.max(0, Math.min(wide, left));
        this.plot.setCursor({ left: to, top: 1 });
        const event = this.point(this.bounds().left + to, 0, true);
        document.getElementById("spoken").textContent = `${this.spoken || ""}${event ? `; ${event.label}` : ""}`;
      };
      const actions = {
        ArrowLeft: () => (event.shiftKey ? this.move(1, -0.2) : cursor(at - Math.max(1, wide / 100))),
        ArrowRight: () => (event.shiftKey ? this.move(1, 0.2) : cursor(at + Math.max(1, wide / 100))),
        Home: () => cursor(0),
        End: () => cursor(wide),
        "+": () => this.move(0.5, 0),
        "=": () => this.move(0.5, 0),
        "-": () => this.move(2, 0),
        0: () => state.show("whole"),
        s: () => state.show("start"),
        Escape: () => state.show("start"),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    }
  }

  return Figure;
})();
