// SPDX-License-Identifier: Apache-2.0
// Turns the selection into the lines of one figure.
"use strict";
howdah.lines = (() => {
  const { state, codec, theme } = howdah;
  const decoded = new Map();
  const MOST_PATHS = 3; // most paths whose limits are drawn

  function once(key, make) {
    if (!decoded.has(key)) decoded.set(key, make());
    return decoded.get(key);
  }

  // The distinct paths of some runs.
  function paths(runs) {
    const numbers = [...new Set(runs.map((run) => run.path))];
    return numbers.map((number) => state.data.paths[number]);
  }

  // Large values are shown in the next larger unit; the factor converts data to it.
  function unitOf(figure) {
    const here = paths(state.runs());
    const most = (name) => Math.max(0, ...here.map((path) => path.limits[name]));
    if (figure.unit === "kB" && most("buffer") >= 10000) return { name: "MB", factor: 1e-3 };
    if (figure.unit === "Mbit/s" && most("capacity") >= 10000) return { name: "Gbit/s", factor: 1e-3 };
    return { name: figure.unit, factor: 1 };
  }

  function scaled(curve, factor) {
    const by = (column) => (column ? column.map((each) => (each === null ? null : each * factor)) : null);
    return factor === 1 ? curve : { x: curve.x, y: by(curve.y), low: by(curve.low) };
  }

  function acks(run, flow, part) {
    const key = `${run.key}/${flow.id}/acks`;
    const x = once(`${key}/time`, () => codec.column(flow.acks.time).map((each) => each / 1e6));
    return { x, y: once(`${key}/${part}`, () => codec.column(flow.acks[part])) };
  }

  function label(run, flow, part, figure, context) {
    const name = state.nameOf(run, context.runs);
    const words = name ? [name] : [];
    if (flow && (context.flows > 1 || !name)) words.push(flow.name);
    if (figure.series.length > 1) words.push(part);
    if (context.repetitions > 1) words.push(`r${run.repetition}`);
    if (!words.length) words.push(state.data.variants[run.variant].label);
    return words.join(" ");
  }

  // The axis whose values determine the colours: that of algorithms, else the first overlaid one.
  function coloursBy() {
    const over = [...state.view.over].sort((a, b) => a - b);
    return over.length ? over[0] : 0;
  }

  // Colour and dashes of each (run, flow). Algorithm, kernel and experiment together determine the colour, as elsewhere on
  // the page; without them the first overlaid axis does. Other overlaid axes and further flows determine the dashes.
  function looks(runs, flows) {
    const first = coloursBy();
    const byVariant = state.data.axes[first].variants;
    const colourOf = (run) => (byVariant ? state.data.variants[run.variant] : state.data.axes[first].colours[run.at[first]]);
    const apart = [...state.view.over].filter((axis) => (byVariant ? !state.data.axes[axis].variants : axis !== first));
    const alone = new Set(runs.map(colourOf)).size < 2;
    const patterns = state.data.dashes.length;
    const taken = new Set(alone ? [0] : runs.map((run) => colourOf(run).dashes));
    const rest = new Map();
    const found = new Map();
    for (const flow of flows) {
      for (const run of runs) {
        const colour = colourOf(run);
        const other = [...apart.map((axis) => run.at[axis]), flow].join("/");
        if (!rest.has(other)) rest.set(other, rest.size);
        const base = alone ? 0 : colour.dashes;
        const identity = `${colour.light}/${other}`;
        if (!found.has(identity)) {
          const free = [...Array(patterns).keys()].find((each) => !taken.has(each));
          const dash = rest.get(other) === 0 ? base : free === undefined ? (base + rest.get(other)) % patterns : free;
          taken.add(dash);
          found.set(identity, { colour, dash });
        }
        found.set(`${run.key}/${flow}`, found.get(identity));
      }
    }
    return (run, flow) => found.get(`${run.key}/${flow}`);
  }

  // Lines of a figure: {key, label, colour, dash, width, alpha, x, y, run, flow, part}.
  function of(figure) {
    const runs = state.runs();
    const chosen = state.flowsHere().filter((flow) => state.view.flows.has(flow.id));
    const context = {
      runs,
      flows: chosen.length,
      repetitions: new Set(runs.map((run) => run.repetition)).size,
    };
    const order = figure.whole ? [""] : state.flowsHere().map((flow) => flow.id).filter((id) => state.view.flows.has(id));
    const look = looks(runs, order);
    const { factor } = unitOf(figure);
    const found = [];
    const single = runs.length * order.length === 1;
    for (const run of runs) {
      const flows = figure.whole ? [null] : run.flows.filter((flow) => state.view.flows.has(flow.id));
      for (const flow of flows) {
        const { colour, dash } = look(run, flow ? flow.id : "");
        figure.series.forEach((part, index) => {
          if (figure.over && !single && index >= figure.over) return;
          let curve = null;
          if (figure.axis === "exit") {
            if (flow.acks) curve = acks(run, flow, part);
          } else {
            const coded = (run.curves[part] || {})[flow ? flow.id : ""];
            if (coded) curve = once(`${run.key}/${flow ? flow.id : ""}/${part}`, () => codec.curve(coded));
          }
          if (!curve || curve.y.every((each) => each === null)) return;
          curve = scaled(curve, factor);
          // With a single run and flow, the parts of a picture have their own looks.
          const own = figure.parts && figure.parts[index];
          found.push({
            key: `${figure.id}/${run.at.join("/")}/${flow ? flow.id : ""}/${part}/${context.repetitions > 1 ? run.repetition : ""}`,
            label: label(run, flow, part, figure, context),
            colour: own && single ? theme.token(own.colour) : colour[theme.current()],
            dash: own && single ? own.dash : state.data.dashes[dash],
            points: Boolean(own && own.points),
            width: index === 0 || (own && single) ? 1.75 : 1,
            alpha: (index === 0 ? 1 : 0.8) * (context.repetitions > 1 ? 0.7 : 1),
            x: curve.x,
            y: curve.y,
            low: curve.low || null,
            run,
            flow,
            part,
          });
        });
      }
    }
    return found;
  }

  // The bands of the lines shown: {colour, count, x, low, high}; none if all repetitions are drawn as lines.
  function bands(figure, shown) {
    if (figure.axis !== "time" || state.view.repetition === "all") return [];
    const { factor } = unitOf(figure);
    const side = (column) => codec.column(column).map((each) => (each === null ? null : each * factor));
    const found = [];
    for (const line of shown) {
      const flow = line.flow ? line.flow.id : "";
      const number = state.data.bands.findIndex((each) =>
        each.series === line.part && each.flow === flow && each.at.every((value, axis) => value === line.run.at[axis]));
      if (number < 0) continue;
      const coded = state.data.bands[number];
      const [first, step, count] = coded.even;
      found.push(once(`band/${number}/${factor}`, () => ({
        count: coded.count,
        x: Array.from({ length: count }, (_, index) => (first + step * index) / 1000),
        low: side(coded.low),
        high: side(coded.high),
      })));
      found[found.length - 1] = { ...found.at(-1), colour: line.colour };
    }
    return found;
  }

  // The horizontal reference lines of each path shown; none for many paths, because they would cover the lines.
  function limits(figure) {
    const here = paths(state.runs());
    const { factor } = unitOf(figure);
    const found = [];
    for (const path of here.length > MOST_PATHS ? [] : here) {
      for (const name of figure.limits) {
        const value = path.limits[name] * factor;
        const same = found.find((each) => each.name === name && Math.abs(each.value - value) < 1e-3 * value);
        if (same) same.label = name;
        else found.push({ name, value, label: `${name}${here.length > 1 ? `, ${path.label}` : ""}` });
      }
    }
    return found;
  }

  // The run or flow of an exit, if several are shown, because not everyone can distinguish colours.
  function prefixOf(line, shown) {
    const words = [];
    const name = state.nameOf(line.run, shown.map((each) => each.run));
    if (name) words.push(name);
    if (shown.some((each) => each.flow !== line.flow && each.run === line.run)) words.push(line.flow.name);
    return words.length ? `${words.join(" ")}: ` : "";
  }

  // The exits to mark, one for each flow of the runs shown.
  function exits(figure, shown) {
    if (!figure.exits) return [];
    const marked = new Map();
    for (const line of shown) {
      if (!line.flow || !line.flow.exit || line.part !== figure.series[0]) continue;
      const exit = line.flow.exit;
      marked.set(`${line.run.key}/${line.flow.id}`, {
        x: exit.time,
        y: exit.cwnd,
        colour: line.colour,
        label: `${prefixOf(line, shown)}exit: ${exit.cause}${exit.cwnd === null ? "" : `, ${howdah.format.significant(exit.cwnd)}`}`,
      });
    }
    return [...marked.values()];
  }

  // The events that modules reported for the runs and flows shown; in figures around an exit, those within its records.
  function events(figure, shown) {
    if (!figure.events) return [];
    const found = [];
    const seen = new Set();
    for (const line of shown) {
      const key = line.flow && `${line.run.key}/${line.flow.id}`;
      if (!key || seen.has(key) || line.part !== figure.series[0] || !line.flow.events) continue;
      seen.add(key);
      const zero = figure.axis === "exit" ? line.flow.exit.time : 0;
      for (const event of line.flow.events) {
        found.push({ x: event.time - zero, y: event.cwnd, colour: line.colour, exit: event.exit, label: `${prefixOf(line, shown)}${event.text}` });
      }
    }
    return found;
  }

  // Remarks below the figure: data that the selected runs lack, flows without an exit (a result), and runs that do not
  // count.
  function remarks(figure) {
    const lacking = [];
    const stayed = [];
    const notCounting = [];
    for (const run of state.runs()) {
      for (const text of run.missing[figure.id] || []) lacking.push(`${run.name}: ${text}`);
      for (const text of figure.axis === "exit" ? run.stayed : []) stayed.push(`${run.name}: ${text}`);
      if (!run.counts) notCounting.push(`${run.name} is ${run.verdict}: it enters no summary`);
    }
    return { lacking, stayed, notCounting };
  }

  return { of, bands, coloursBy, limits, exits, events, remarks, unitOf };
})();
