// SPDX-License-Identifier: Apache-2.0
// What is shown: for each axis on which runs differ, some values overlaid or a single one; some flows; one or all
// repetitions; a zoom for each kind of figure.
"use strict";
howdah.state = (() => {
  let data = null;
  const listeners = [];
  const MOST_OVERLAID = 8; // values of a swept field that are overlaid by default
  const view = {
    over: new Set(), // indices of the axes whose values are overlaid
    chosen: [], // by axis: the values shown, if it is overlaid
    fixed: [], // by axis: the value shown, if it is not
    flows: new Set(),
    repetition: "0", // or "all"
    hidden: new Set(), // keys of lines
    frame: "start", // time range of figures: "start", "whole", or null if the reader zoomed
    zoom: { time: null, exit: null }, // null: everything
  };

  const several = (axis) => data.axes[axis].values.length > 1;
  // Runs at the fixed values of all axes that are not overlaid, except the axis `except`.
  const runsAtFixed = (except = -1) =>
    data.runs.filter((run) => run.at.every((value, axis) => axis === except || view.over.has(axis) || value === view.fixed[axis]));
  const valuesHere = (axis) => [...new Set(runsAtFixed(axis).map((run) => run.at[axis]))].sort((a, b) => a - b);
  const flowsHere = () => {
    const names = new Map();
    for (const run of runsAtFixed()) for (const flow of run.flows) if (!names.has(flow.id)) names.set(flow.id, flow.name);
    return [...names].map(([id, name]) => ({ id, name }));
  };
  const repetitionsHere = () => [...new Set(runsAtFixed().map((run) => run.repetition))].sort((a, b) => a - b);

  // All runs of the selection, invalid ones included: the page says which they are.
  const runs = () =>
    runsAtFixed().filter(
      (run) =>
        [...view.over].every((axis) => view.chosen[axis].has(run.at[axis])) &&
        (view.repetition === "all" || String(run.repetition) === view.repetition),
    );

  const presetFlows = () => {
    const flows = flowsHere();
    view.flows = new Set((view.over.size ? flows.slice(0, 1) : flows).map((flow) => flow.id));
  };

  // Overlay the values of an axis, or show one of them.
  function overlay(axis, over) {
    const values = valuesHere(axis);
    if (over) {
      view.over.add(axis);
      view.chosen[axis] = new Set(values);
    } else {
      const kept = values.find((each) => view.chosen[axis].has(each) && view.chosen[axis].size < values.length);
      view.over.delete(axis);
      view.fixed[axis] = kept === undefined ? values[0] : kept;
    }
    presetFlows();
  }

  // Show one value of an axis that is not overlaid. If no run has it with the other fixed values, these change too.
  function pick(axis, value) {
    view.fixed[axis] = value;
    if (!runsAtFixed().length) {
      const run = data.runs.find((each) => each.at[axis] === value);
      view.fixed = [...run.at];
    }
    presetFlows();
  }

  // Show one run, with what is overlaid on it; false if the page has no curves of it.
  function pickRun(name) {
    const run = data.runs.find((each) => each.name === name);
    if (!run) return false;
    for (const axis of data.axes.keys()) view.fixed[axis] = run.at[axis];
    for (const axis of view.over) view.chosen[axis].add(run.at[axis]);
    view.repetition = String(run.repetition);
    presetFlows();
    return true;
  }

  // The initial view: algorithms, kernels and experiments overlaid, or, if there is only one of each,
  // the values of the first swept field, if they are few.
  function applyDefaults() {
    view.fixed = [...data.runs[0].at];
    view.chosen = data.axes.map((axis) => new Set(axis.values.keys()));
    const numbers = [...data.axes.keys()].filter(several);
    const first = numbers.find((axis) => data.axes[axis].values.length <= MOST_OVERLAID);
    const wanted = numbers.filter((axis) => data.axes[axis].variants);
    view.over = new Set(wanted.length || first === undefined ? wanted : [first]);
    presetFlows();
  }

  // The range from the start of the first flow shown to a little after its last exit in the runs shown.
  // If no run has an exit of that flow, as for a short transfer, the range of the flow itself.
  function startUp() {
    const shown = flowsHere().find((flow) => view.flows.has(flow.id));
    const mine = runs().flatMap((run) => run.flows.filter((flow) => shown && flow.id === shown.id));
    const left = mine.filter((flow) => flow.exit);
    const spans = left.length
      ? left.map((flow) => [flow.exit.time - flow.exit.after, flow.exit.time])
      : mine.filter((flow) => flow.span).map((flow) => flow.span);
    if (!spans.length) return null;
    const first = Math.min(...spans.map((span) => span[0]));
    const last = Math.max(...spans.map((span) => span[1]));
    const after = Math.max(left.length ? data.beyond_exit * (last - first) : 0, ...runs().map((run) => (4 * data.paths[run.path].limits.propagation) / 1000));
    const end = Math.max(...runs().map((run) => run.shown));
    return [Math.max(0, first), left.length ? last + after : Math.min(end, last + after)];
  }

  function adjust() {
    for (const axis of view.over) {
      const values = valuesHere(axis);
      const kept = values.filter((value) => view.chosen[axis].has(value));
      view.chosen[axis] = new Set(kept.length ? kept : values);
    }
    const flows = flowsHere();
    if (!flows.some((flow) => view.flows.has(flow.id))) presetFlows();
    const repetitions = repetitionsHere().map(String);
    if (view.repetition !== "all" && !repetitions.includes(view.repetition)) view.repetition = repetitions[0];
    if (view.frame) view.zoom.time = view.frame === "start" ? startUp() : null;
  }

  function change(mutate, kind = "selection") {
    mutate(view);
    adjust();
    for (const listener of listeners) listener(kind);
  }

  // How a run differs from the others shown, in words; empty if it does not.
  function nameOf(run, shown) {
    const parts = data.axes.map((axis, number) => [axis, number]).filter(([, number]) => shown.some((each) => each.at[number] !== run.at[number]));
    return parts.map(([axis, number]) => axis.values[run.at[number]]).join(" · ");
  }

  return {
    view,
    start(found) {
      data = found;
      if (!data.runs.length) return;
      data.runs.forEach((run, number) => { run.key = number; }); // two experiments may have runs with the same name
      applyDefaults();
      adjust();
    },
    get data() { return data; },
    runs,
    several,
    valuesHere,
    flowsHere,
    repetitionsHere,
    nameOf,
    overlay,
    pick,
    pickRun,
    change,
    changed: (listener) => listeners.push(listener),
    zoom: (axis, range) =>
      change((each) => {
        each.zoom[axis] = range;
        if (axis === "time") each.frame = range ? null : "whole";
      }, "zoom"),
    // "start": the start-up; "whole": everything. Figures around exits show all their records in both.
    show: (frame) =>
      change((each) => {
        each.frame = frame;
        each.zoom.exit = null;
      }, "zoom"),
  };
})();
