// SPDX-License-Identifier: Apache-2.0
// Queries the Prometheus that served this page once a second and draws the answers.
"use strict";
(() => {
  const settings = JSON.parse(document.getElementById("settings").textContent);
  const find = (id) => document.getElementById(id);
  const { theme, marks } = howdah;
  const EVERY_MS = 1000;
  const POINTS = 300;
  const LEAST_S = 60; // least length of the time axis
  let paused = false;

  async function ask(endpoint, parameters) {
    const answer = await fetch(`../api/v1/${endpoint}?${new URLSearchParams(parameters)}`);
    const body = await answer.json();
    if (body.status !== "success") throw new Error(body.error || `status ${answer.status}`);
    return body.data.result;
  }

  const quoted = (text) => `"${text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n")}"`;
  const matchers = (labels) => Object.entries(labels).map(([name, value]) => `${name}=${quoted(value)}`).join(", ");

  // The labels of the chosen run; a label that it lacks must be empty, or runs of other points would match.
  function chosen() {
    const own = find("run").value ? JSON.parse(find("run").value) : {};
    return matchers({ job: settings.job, ...own });
  }

  const key = (labels) => settings.labels.map((name) => labels[name] || "").join("\n");

  // The runs in virtual time within the span, finished ones included.
  async function virtualRuns(time, span) {
    const seen = await ask("query", { query: `last_over_time(howdah_live_simulated_seconds{${chosen()}}[${span}s])`, time });
    return new Set(seen.map(({ metric }) => key(metric)));
  }

  const query = (panel) => panel.query
    .replaceAll("$run", chosen()).replaceAll("$path", settings.path).replaceAll("$window", settings.window);

  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

  class Panel {
    constructor(description, parent) {
      this.description = description;
      this.root = document.createElement("section");
      this.root.id = `panel-${description.id}`;
      const title = document.createElement("h3");
      title.textContent = `${description.title} `;
      const unit = document.createElement("span");
      unit.textContent = description.unit;
      title.append(unit);
      this.canvas = document.createElement("div");
      this.nothing = document.createElement("p");
      this.nothing.className = "nothing";
      this.nothing.textContent = "nothing yet";
      this.root.append(title, this.canvas, this.nothing);
      parent.append(this.root);
      this.plot = null;
      this.shape = "";
    }

    name(labels, several) {
      const own = this.description.legend.replace(/\{\{(\w+)\}\}/g, (_all, label) => labels[label] || "");
      if (!several || !labels.algorithm || own.includes(labels.run)) return own;
      return `${labels.algorithm} r${labels.repetition} ${own}`;
    }

    // If no run uses this machine's clock, empty panels have nothing to wait for.
    draw(found, from, to, waits) {
      const result = found.filter((each) => each.values.some((pair) => Number.isFinite(Number(pair[1]))));
      this.root.hidden = !result.length && !waits;
      const runs = new Set(result.map((each) => key(each.metric)));
      const names = result.map((each) => this.name(each.metric, runs.size > 1));
      const columns = result.map((each) => [
        each.values.map((pair) => pair[0]),
        each.values.map((pair) => (Number.isFinite(Number(pair[1])) ? Number(pair[1]) : null)),
      ]);
      this.nothing.hidden = result.length > 0;
      this.canvas.hidden = !result.length;
      if (!result.length) return;
      const shape = `${names.join("\n")}${theme.current()}`;
      const data = uPlot.join(columns);
      if (shape !== this.shape) this.make(names, shape, data);
      else this.plot.setData(data, false);
      this.plot.batch(() => {
        this.plot.setScale("x", { min: from, max: to });
        const most = Math.max(0, ...columns.flatMap((column) => column[1]).filter((value) => value !== null));
        this.plot.setScale("y", { min: 0, max: most * 1.05 || 1 });
      });
    }

    make(names, shape, data) {
      if (this.plot) this.plot.destroy();
      this.shape = shape;
      const colour = (index) => settings.colours[index % settings.colours.length][theme.current()];
      this.plot = new uPlot({
        width: this.root.clientWidth,
        height: 200,
        padding: [null, Math.ceil(marks.widthOf(clock(0)) / 2) + 2, null, null],
        scales: { x: { time: true, auto: false }, y: { auto: false } },
        axes: [{ ...marks.axis(), values: (_plot, splits) => splits.map(clock), space: 70 }, { ...marks.axis(), size: 64 }],
        series: [{ value: (_plot, at) => (at === null ? "—" : clock(at)) }, ...names.map((label, index) => ({ label, value: (_plot, at) => (at === null ? "—" : at), stroke: colour(index), width: 1.5, points: { show: false } }))],
      }, data, this.canvas);
    }

    resize() {
      if (this.plot) this.plot.setSize({ width: this.root.clientWidth, height: 200 });
    }
  }

  const panels = settings.panels.map((panel) => new Panel(panel, find("panels")));

  // Update the list only if it differs, or it would close while the reader uses it.
  function list(infos) {
    const options = infos.map(({ metric }) => {
      const own = Object.fromEntries(settings.labels.map((name) => [name, metric[name] || ""]));
      return { value: JSON.stringify(own), text: `${metric.experiment}/${metric.run}` };
    });
    const select = find("run");
    const known = [...select.options].slice(1).map((option) => option.value);
    if (JSON.stringify(known) === JSON.stringify(options.map((option) => option.value))) return;
    const before = select.value;
    select.replaceChildren(select.options[0], ...options.map(({ value, text }) => new Option(text, value)));
    select.value = options.some((option) => option.value === before) ? before : "";
  }

  function say(text, bad) {
    const status = find("status");
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("bad", Boolean(bad));
  }

  async function look() {
    const to = Date.now() / 1000;
    const span = Number(find("span").value);
    const step = Math.max(1, Math.ceil(span / POINTS));
    const infos = await ask("query", { query: `howdah_live_run_info{job=${quoted(settings.job)}}`, time: to });
    list(infos);
    const state = await howdah.board.look(settings);
    const waits = state.underway.some((run) => !run.virtual);
    const virtual = await virtualRuns(to, span);
    const section = find("panels-title").parentElement;
    section.hidden = false; // a hidden section has no width to draw into
    // Instants at multiples of the step, so that every query has the same ones.
    const [start, end] = [to - span, to].map((each) => Math.floor(each / step) * step);
    const found = await Promise.all(panels.map((panel) => ask("query_range", { query: query(panel.description), start, end, step })));
    // Simulated seconds do not fit this axis; their curves are above.
    const shown = found.map((series) => series.filter(({ metric }) => !metric.flow || !virtual.has(key(metric))));
    const begun = Math.min(to - LEAST_S, ...shown.flat().map((series) => series.values[0][0]));
    panels.forEach((panel, index) => panel.draw(shown[index], Math.max(to - span, begun), to, waits));
    const phases = state.underway.map((run) => `${run.run}: ${run.phase}`);
    section.hidden = panels.every((panel) => panel.root.hidden);
    say(phases.length ? phases.join(", ") : "No run is being made now. Start one with: howdah run PROFILE");
  }

  async function round() {
    if (!paused) {
      try {
        await look();
      } catch (error) {
        say(`The server does not answer: ${error.message}`, true);
      }
      document.documentElement.dataset.ready = "true";
    }
    setTimeout(round, EVERY_MS);
  }

  find("pause").addEventListener("click", () => {
    paused = !paused;
    find("pause").setAttribute("aria-pressed", String(paused));
    find("pause").textContent = paused ? "Go on" : "Pause";
  });
  window.addEventListener("resize", () => panels.forEach((panel) => panel.resize()));
  theme.bind();
  round();
})();
