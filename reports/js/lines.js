// SPDX-License-Identifier: Apache-2.0
// From the selection to the lines of one figure.
"use strict";
howdah.lines = (() => {
  const { state, codec, theme } = howdah;
  const decoded = new Map();
  const partNames = { cwnd: "cwnd", ssthresh: "ssthresh" };

  function once(key, make) {
    if (!decoded.has(key)) decoded.set(key, make());
    return decoded.get(key);
  }

  // Large values are shown in the next unit up; the factor turns data into what is drawn.
  function unitOf(figure) {
    const limits = state.data.points[state.view.point].limits;
    if (figure.unit === "kB" && limits.buffer_kb >= 10000) return { name: "MB", factor: 1e-3 };
    if (figure.unit === "Mbit/s" && limits.capacity_mbit >= 10000) return { name: "Gbit/s", factor: 1e-3 };
    return { name: figure.unit, factor: 1 };
  }

  function scaled(curve, factor) {
    return factor === 1 ? curve : { x: curve.x, y: curve.y.map((each) => (each === null ? null : each * factor)) };
  }

  function acks(run, flow, part) {
    const key = `${run.name}/${flow.id}/acks`;
    const x = once(`${key}/time`, () => codec.column(flow.acks.time).map((each) => each / 1e6));
    return { x, y: once(`${key}/${part}`, () => codec.column(flow.acks[part])) };
  }

  function label(run, flow, part, figure, context) {
    const words = [];
    if (context.variants > 1) words.push(state.data.variants[run.variant].label);
    if (flow && (context.flows > 1 || context.variants < 2)) words.push(flow.name);
    if (figure.series.length > 1) words.push(partNames[part] || part);
    if (context.repetitions > 1) words.push(`r${run.repetition}`);
    if (!words.length) words.push(state.data.variants[run.variant].label);
    return words.join(" ");
  }

  // Lines of a figure: {key, label, colour, dash, width, alpha, x, y, run, flow, part}.
  function of(figure) {
    const runs = state.runs();
    const chosen = state.flowsHere().filter((flow) => state.view.flows.has(flow.id));
    const context = {
      variants: new Set(runs.map((run) => run.variant)).size,
      flows: chosen.length,
      repetitions: new Set(runs.map((run) => run.repetition)).size,
    };
    const order = state.flowsHere().map((flow) => flow.id);
    const { factor } = unitOf(figure);
    const found = [];
    for (const run of runs) {
      const variant = state.data.variants[run.variant];
      const flows = figure.whole ? [null] : run.flows.filter((flow) => state.view.flows.has(flow.id));
      for (const flow of flows) {
        figure.series.forEach((part, index) => {
          let curve = null;
          if (figure.axis === "exit") {
            if (flow.acks) curve = acks(run, flow, part);
          } else {
            const coded = (run.curves[part] || {})[flow ? flow.id : ""];
            if (coded) curve = once(`${run.name}/${flow ? flow.id : ""}/${part}`, () => codec.curve(coded));
          }
          if (!curve || curve.y.every((each) => each === null)) return;
          curve = scaled(curve, factor);
          found.push({
            key: `${figure.id}/${variant.label}/${flow ? flow.id : ""}/${part}/${context.repetitions > 1 ? run.repetition : ""}`,
            label: label(run, flow, part, figure, context),
            colour: variant[theme.current()],
            dash: flow ? state.data.dashes[order.indexOf(flow.id) % state.data.dashes.length] : [],
            width: index === 0 ? 1.75 : 1,
            alpha: (index === 0 ? 1 : 0.8) * (context.repetitions > 1 ? 0.7 : 1),
            x: curve.x,
            y: curve.y,
            run,
            flow,
            part,
          });
        });
      }
    }
    return found;
  }

  // Horizontal reference lines of a figure.
  function limits(figure) {
    const values = state.data.points[state.view.point].limits;
    const { factor } = unitOf(figure);
    return figure.limits.map((name) => ({ label: state.data.limitNames[name], value: values[name] * factor }));
  }

  // Whose exit it is, where more than one variant or flow is shown: colour alone does not say it to everyone.
  function who(line, shown) {
    const words = [];
    if (shown.some((each) => each.run.variant !== line.run.variant)) words.push(state.data.variants[line.run.variant].label);
    if (shown.some((each) => each.flow !== line.flow && each.run === line.run)) words.push(line.flow.name);
    return words.length ? `${words.join(" ")}: ` : "";
  }

  // Exits to mark, once per flow of the runs shown.
  function exits(figure, shown) {
    if (!figure.exits) return [];
    const marked = new Map();
    for (const line of shown) {
      if (!line.flow || !line.flow.exit || line.part !== figure.series[0]) continue;
      const exit = line.flow.exit;
      marked.set(`${line.run.name}/${line.flow.id}`, {
        x: exit.time,
        y: exit.cwnd,
        colour: line.colour,
        label: `${who(line, shown)}exit: ${exit.cause}${exit.cwnd === null ? "" : `, ${howdah.format.significant(exit.cwnd)}`}`,
      });
    }
    return [...marked.values()];
  }

  // Events that modules told of, of the runs and flows shown; in figures around an exit, those within its records.
  function events(figure, shown) {
    if (!figure.events) return [];
    const found = [];
    const seen = new Set();
    for (const line of shown) {
      const key = line.flow && `${line.run.name}/${line.flow.id}`;
      if (!key || seen.has(key) || line.part !== figure.series[0] || !line.flow.events) continue;
      seen.add(key);
      const zero = figure.axis === "exit" ? line.flow.exit.time : 0;
      for (const event of line.flow.events) {
        found.push({ x: event.time - zero, y: event.cwnd, colour: line.colour, exit: event.exit, label: `${who(line, shown)}${event.text}` });
      }
    }
    return found;
  }

  // What the selected runs lack in this figure, and runs that do not count: said under it, never left silent.
  function remarks(figure) {
    const lacking = [];
    const notCounting = [];
    for (const run of state.runs()) {
      for (const text of run.missing[figure.id] || []) lacking.push(`${run.name}: ${text}`);
      if (!run.counts) notCounting.push(`${run.name} is ${run.verdict}: it enters no summary`);
    }
    return { lacking, notCounting };
  }

  return { of, limits, exits, events, remarks, unitOf };
})();
