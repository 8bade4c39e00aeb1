// SPDX-License-Identifier: Apache-2.0
// Live runs in virtual time, from runs.json: phases, progress, curves over simulated seconds, exits.
"use strict";
howdah.board = (() => {
  const { theme, marks } = howdah;
  const find = (id) => document.getElementById(id);
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4, useGrouping: "min2" });
  const tenths = new Intl.NumberFormat("en", { maximumFractionDigits: 1, useGrouping: "min2" });
  const say = (value, unit) => (value === null || value === undefined ? "—" : `${number.format(value)}${unit ? ` ${unit}` : ""}`);
  const HEIGHT = 210;

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Write text only if it differs, so that a screen reader announces only changes.
  function write(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  // The end of the simulated-time axis: a half, a quarter … of the run, so that it fits the data and rarely moves.
  function reach(seconds, whole) {
    let end = whole;
    while (end / 2 > seconds) end /= 2;
    return end;
  }

  class Curve {
    constructor(title, unit, part, parent, looks) {
      Object.assign(this, { unit, part, looks, plot: null, shape: "" });
      this.root = element("figure", "curve");
      const caption = element("figcaption", "", `${title} `);
      caption.append(element("span", "", unit));
      this.canvas = element("div");
      this.canvas.setAttribute("role", "img");
      this.title = title;
      this.root.append(caption, this.canvas);
      parent.append(this.root);
    }

    draw(run) {
      const flows = [...run.flows, ...run.groups].filter((flow) => flow[this.part] && flow[this.part].some((value) => value !== null));
      this.root.hidden = !flows.length; // without flows the facts above say everything
      if (!flows.length) return;
      const longest = Math.max(2, ...flows.map((flow) => flow[this.part].length));
      const step = flows.length ? flows[0].step_s : 1;
      const x = Array.from({ length: longest }, (_none, index) => (index + 1) * step);
      const data = [x, ...flows.map((flow) => x.map((_at, index) => flow[this.part][index] ?? null))];
      const newest = flows.map((flow) => `${flow.name} ${say(flow[this.part].findLast((value) => value !== null), this.unit)}`);
      this.canvas.setAttribute("aria-label", `${this.title}: ${newest.join(", ") || "no ACK yet"}`);
      this.run = run;
      const shape = `${flows.map((flow) => flow.name).join("\n")}${theme.current()}`;
      if (shape !== this.shape || !this.plot) this.make(flows, data, shape);
      else this.plot.setData(data, false);
      const most = Math.max(0, ...data.slice(1).flat().filter((value) => value !== null));
      this.plot.batch(() => {
        this.plot.setScale("x", { min: 0, max: reach(longest * step, run.duration_s) });
        this.plot.setScale("y", { min: 0, max: most * 1.08 || 1 });
      });
    }

    make(flows, data, shape) {
      if (this.plot) this.plot.destroy();
      this.shape = shape;
      const { colours, dashes } = this.looks;
      const colour = (index) => colours[index % colours.length][theme.current()];
      const dash = (index) => dashes[index % dashes.length];
      this.plot = new uPlot({
        width: this.canvas.clientWidth,
        height: HEIGHT,
        legend: { show: flows.length > 1 },
        cursor: { show: false },
        scales: { x: { time: false, auto: false }, y: { auto: false } },
        axes: [{ ...marks.axis(), size: 26, label: "simulated seconds", labelSize: 16 }, { ...marks.axis(), size: 64 }],
        series: [{}, ...flows.map((flow, index) => ({ label: flow.name, stroke: colour(index), dash: dash(index), width: 1.6, spanGaps: true, points: { show: false } }))],
        hooks: { draw: [(plot) => this.mark(plot)] },
      }, data, this.canvas);
    }

    // Draw the exits so far and the BDP in the cwnd figure.
    mark(plot) {
      if (this.part !== "cwnd") return;
      const frame = marks.frame(plot);
      const { run } = this;
      const all = [{ value: run.bdp_packets, label: "BDP" }, { value: run.bdp_and_buffer_packets, label: "BDP + buffer" }];
      const limits = all.filter((limit) => limit.value <= plot.scales.y.max);
      const left = run.flows.filter((flow) => flow.exit);
      const exits = left.map(({ name, exit }) => ({
        x: exit.time_s,
        y: exit.cwnd_packets,
        colour: theme.token("ink"),
        label: `${run.flows.length > 1 ? `${name}: ` : ""}exit, ${say(exit.cwnd_packets)}`,
      }));
      const points = plot.data.slice(1).flatMap((values) => values.flatMap((value, index) => (value === null ? [] : [frame.at(plot.data[0][index], value)])));
      marks.draw(plot, marks.layout(frame, frame.at, limits, exits, [], [], points));
    }

    resize() {
      if (this.plot) this.plot.setSize({ width: this.canvas.clientWidth, height: HEIGHT });
    }
  }

  class Card {
    constructor(run, phases, parent, looks) {
      this.root = element("article", "run");
      this.root.append(element("h3", "", `${run.experiment}/${run.run}`));
      this.steps = element("ol", "phases");
      this.steps.setAttribute("aria-label", "Phases");
      this.names = phases;
      this.steps.append(...phases.map((phase) => element("li", "", phase)));
      this.bar = element("progress");
      this.bar.max = 1;
      this.bar.setAttribute("aria-label", `Simulated time of ${run.run}`);
      this.facts = element("p", "facts");
      const curves = element("div", "curves");
      this.root.append(this.steps, this.bar, this.facts, curves);
      parent.append(this.root);
      this.curves = run.virtual
        ? [new Curve("Congestion window so far", "packets", "cwnd", curves, looks), new Curve("ACK rate", "ACKs/s", "acks_per_s", curves, looks)]
        : [];
    }

    draw(run) {
      const now = this.names.indexOf(run.phase);
      [...this.steps.children].forEach((step, index) => {
        step.className = index < now ? "done" : index === now ? "now" : "";
        if (index === now) step.setAttribute("aria-current", "step");
        else step.removeAttribute("aria-current");
      });
      this.bar.value = run.of_s ? Math.min(1, run.time_s / run.of_s) : 0;
      const parts = [run.of_s ? `${tenths.format(run.time_s)} of ${tenths.format(run.of_s)} simulated seconds` : "no simulated time yet"];
      if (run.acks_per_s !== null) parts.push(`${say(run.acks_per_s)} ACKs in a simulated second`);
      for (const flow of run.flows) {
        if (flow.acks) parts.push(`${flow.name}: ${say(flow.acks)} ACKs, cwnd ${say(flow.cwnd_packets, "packets")}, RTT ${say(flow.srtt_ms, "ms")}`);
      }
      for (const group of run.groups) {
        parts.push(`${group.name}: ${say(group.begun)} of ${say(group.connections)} connections have begun${group.acks ? `, ${say(group.acks)} ACKs` : ""}`);
      }
      if (run.groups.length) parts.push("how long connections take is in the report, when the run has ended");
      write(this.facts, parts.join(" · "));
      for (const curve of this.curves) curve.draw(run);
    }
  }

  const cards = new Map();

  // Replace all rows of a table if any differs. Cells from `first` to before `last` are numbers.
  function fill(body, texts, first, last) {
    const shape = JSON.stringify(texts);
    if (body.dataset.shape === shape) return;
    body.dataset.shape = shape;
    body.replaceChildren(...texts.map((cells) => {
      const row = element("tr");
      row.append(...cells.map((text, index) => {
        const cell = element(index ? "td" : "th", index >= first && index < last ? "number" : "", text);
        if (!index) cell.scope = "row";
        return cell;
      }));
      return row;
    }));
  }

  // A rough duration in the largest unit that fits.
  function span(seconds) {
    if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return `${Math.round(seconds / 360) / 10} h`;
  }

  function queue(state) {
    const shown = state.experiments.filter((each) => each.queue);
    const made = (verdicts) => Object.entries(verdicts).map(([verdict, count]) => `${say(count)} ${verdict}`).join(", ") || "none";
    fill(find("queue"), shown.map(({ name, queue: own }) =>
      [name, made(own.verdicts), say(own.in_progress), say(own.waiting), own.left_s === null ? "—" : `about ${span(own.left_s)}`]), 2, 5);
    const next = shown.filter(({ queue: own }) => own.to_come.length).map(({ name, queue: own }) => {
      const more = own.waiting - own.to_come.length;
      return `${name}: ${own.to_come.join(", ")}${more ? ` and ${say(more)} more` : ""}`;
    });
    write(find("next"), next.length ? `To come: ${next.join("; ")}` : "");
    find("queue-box").hidden = !shown.length;
  }

  function exits(state) {
    const rows = [];
    for (const run of state.underway) {
      for (const flow of run.flows) if (flow.exit) rows.push([`${run.experiment}/${run.run}`, "in progress", flow.name, flow.exit, "known when the run is analysed"]);
    }
    for (const run of state.finished) {
      for (const exit of run.exits) rows.push([`${run.experiment}/${run.run}`, run.verdict, exit.flow, exit, exit.cause]);
    }
    const texts = rows.map(([run, verdict, flow, exit, cause]) => [run, verdict, flow, say(exit.after_start_s), say(exit.cwnd_packets), say(exit.share), cause || "—"]);
    fill(find("exits"), texts, 3, 6);
    find("exits-box").hidden = !rows.length;
  }

  function transfers(state) {
    const texts = state.finished.flatMap((run) => run.transfers.map((each) =>
      [`${run.experiment}/${run.run}`, each.name, say(each.median_s), say(each.p95_s), say(100 * each.share), run.verdict]));
    fill(find("transfers"), texts, 2, 5);
    find("transfers-box").hidden = !texts.length;
  }

  function experiments(state) {
    const texts = state.experiments.map((each) => {
      if (each.building.length) return `${each.name}: building the ${each.building.join(", the ")}`;
      return each.of ? `${each.name}: ${each.made} of ${each.of} runs made` : `${each.name}: being prepared`;
    });
    write(find("experiments"), texts.join(" · "));
  }

  function draw(state, looks) {
    const present = new Set(state.underway.map((run) => `${run.experiment}/${run.run}`));
    for (const [name, card] of cards) {
      if (present.has(name)) continue;
      card.root.remove();
      cards.delete(name);
    }
    for (const run of state.underway) {
      const name = `${run.experiment}/${run.run}`;
      if (!cards.has(name)) cards.set(name, new Card(run, state.phases, find("runs"), looks));
      cards.get(name).draw(run);
    }
    experiments(state);
    queue(state);
    exits(state);
    transfers(state);
  }

  // Resolves to the state that was drawn; `looks` are colours and dashes.
  async function look(looks) {
    const answer = await fetch("runs.json", { cache: "no-store" });
    const state = await answer.json();
    draw(state, looks);
    return state;
  }

  window.addEventListener("resize", () => cards.forEach((card) => card.curves.forEach((curve) => curve.resize())));
  return { look };
})();
