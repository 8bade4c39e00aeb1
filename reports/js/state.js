// SPDX-License-Identifier: Apache-2.0
// What is shown: one sweep point; some variants, flows and one or all repetitions; a zoom for each kind of axis.
"use strict";
howdah.state = (() => {
  let data = null;
  const listeners = [];
  const view = {
    mode: "compare", // "compare": variants over each other; "single": one variant, all its flows
    point: 0,
    variants: new Set(),
    flows: new Set(),
    repetition: "0", // or "all"
    hidden: new Set(), // keys of lines
    zoom: { time: null, exit: null },
  };

  const atPoint = () => data.runs.filter((run) => run.point === view.point);
  const variantsHere = () => [...new Set(atPoint().map((run) => run.variant))].sort((a, b) => a - b);
  const flowsHere = () => {
    const names = new Map();
    for (const run of atPoint()) for (const flow of run.flows) if (!names.has(flow.id)) names.set(flow.id, flow.name);
    return [...names].map(([id, name]) => ({ id, name }));
  };
  const repetitionsHere = () => [...new Set(atPoint().map((run) => run.repetition))].sort((a, b) => a - b);

  // Runs that the selection names; the whole of it, also those that are invalid: the page says which.
  const runs = () =>
    atPoint().filter(
      (run) =>
        view.variants.has(run.variant) && (view.repetition === "all" || String(run.repetition) === view.repetition),
    );

  function preset(mode) {
    const variants = variantsHere();
    const flows = flowsHere();
    view.mode = mode;
    if (mode === "compare") {
      view.variants = new Set(variants);
      view.flows = new Set(flows.slice(0, 1).map((flow) => flow.id));
    } else {
      const kept = variants.find((each) => view.variants.has(each) && view.variants.size < variants.length);
      view.variants = new Set([kept === undefined ? variants[0] : kept]);
      view.flows = new Set(flows.map((flow) => flow.id));
    }
  }

  function settle() {
    const repetitions = repetitionsHere().map(String);
    if (view.repetition !== "all" && !repetitions.includes(view.repetition)) view.repetition = repetitions[0];
  }

  function change(mutate, kind = "selection") {
    mutate(view);
    settle();
    for (const listener of listeners) listener(kind);
  }

  return {
    view,
    start(found) {
      data = found;
      if (!data.runs.length) return;
      settle();
      preset(variantsHere().length > 1 ? "compare" : "single");
    },
    get data() { return data; },
    runs,
    variantsHere,
    flowsHere,
    repetitionsHere,
    preset,
    change,
    changed: (listener) => listeners.push(listener),
    zoom: (axis, range) => change((each) => { each.zoom[axis] = range; }, "zoom"),
  };
})();
