// SPDX-License-Identifier: Apache-2.0
// What is shown: of each axis on which runs differ, some values over each other or one alone; some flows; one or all
// repetitions; a zoom for each kind of figure.
"use strict";
howdah.state = (() => {
  let data = null;
  const listeners = [];
  const MOST_OVER_EACH_OTHER = 8; // values of a swept field that are laid over each other unasked
  const view = {
    over: new Set(), // numbers of the axes whose values lie over each other
    chosen: [], // of each axis the values shown, if they do
    fixed: [], // of each axis the value shown, if they do not
    flows: new Set(),
    repetition: "0", // or "all"
    hidden: new Set(), // keys of lines
    frame: "start", // of figures against time: "start", "whole", or null where the reader zoomed
    zoom: { time: null, exit: null }, // null: everything
  };

  const several = (axis) => data.axes[axis].values.length > 1;
  // Runs at the fixed values, of all axes but one if it is given.
  const standing = (but = -1) =>
    data.runs.filter((run) => run.at.every((value, axis) => axis === but || view.over.has(axis) || value === view.fixed[axis]));
  const valuesHere = (axis) => [...new Set(standing(axis).map((run) => run.at[axis]))].sort((a, b) => a - b);
  const flowsHere = () => {
    const names = new Map();
    for (const run of standing()) for (const flow of run.flows) if (!names.has(flow.id)) names.set(flow.id, flow.name);
    return [...names].map(([id, name]) => ({ id, name }));
  };
  const repetitionsHere = () => [...new Set(standing().map((run) => run.repetition))].sort((a, b) => a - b);

  // Runs that the selection names; the whole of it, also those that are invalid: the page says which.
  const runs = () =>
    standing().filter(
      (run) =>
        [...view.over].every((axis) => view.chosen[axis].has(run.at[axis])) &&
        (view.repetition === "all" || String(run.repetition) === view.repetition),
    );

  const presetFlows = () => {
    const flows = flowsHere();
    view.flows = new Set((view.over.size ? flows.slice(0, 1) : flows).map((flow) => flow.id));
  };

  // Lay the values of an axis over each other, or show one of them.
  function lay(axis, over) {
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

  // Show one value of an axis that is not laid over itself; the other axes follow where no run has both.
  function pick(axis, value) {
    view.fixed[axis] = value;
    if (!standing().length) {
      const run = data.runs.find((each) => each.at[axis] === value);
      view.fixed = [...run.at];
    }
    presetFlows();
  }

  // Show one run, with what lies over it; false where the page has no curves of it.
  function pickRun(name) {
    const run = data.runs.find((each) => each.name === name);
    if (!run) return false;
    for (const axis of data.axes.keys()) view.fixed[axis] = run.at[axis];
    for (const axis of view.over) view.chosen[axis].add(run.at[axis]);
    view.repetition = String(run.repetition);
    presetFlows();
    return true;
  }

  // The view a page begins with: algorithms, kernels and experiments over each other, or, where there is one of each,
  // the values of the first swept field, if they are few.
  function begin() {
    view.fixed = [...data.runs[0].at];
    view.chosen = data.axes.map((axis) => new Set(axis.values.keys()));
    const numbers = [...data.axes.keys()].filter(several);
    const first = numbers.find((axis) => data.axes[axis].values.length <= MOST_OVER_EACH_OTHER);
    const wanted = numbers.filter((axis) => data.axes[axis].variants);
    view.over = new Set(wanted.length || first === undefined ? wanted : [first]);
    presetFlows();
  }

  // From the start of the first flow shown to past the last of its exits in the runs shown, with what follows from it.
  // Where no run has an exit of it, as of a short transfer, the flow itself is what there is to see.
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

  function settle() {
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
    settle();
    for (const listener of listeners) listener(kind);
  }

  // What tells a run from the others shown, in words; empty where nothing does.
  function nameOf(run, shown) {
    const parts = data.axes.map((axis, number) => [axis, number]).filter(([, number]) => shown.some((each) => each.at[number] !== run.at[number]));
    return parts.map(([axis, number]) => axis.values[run.at[number]]).join(" · ");
  }

  return {
    view,
    start(found) {
      data = found;
      if (!data.runs.length) return;
      data.runs.forEach((run, number) => { run.key = number; }); // two experiments may have runs of one name
      begin();
      settle();
    },
    get data() { return data; },
    runs,
    several,
    valuesHere,
    flowsHere,
    repetitionsHere,
    nameOf,
    lay,
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
