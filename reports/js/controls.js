// SPDX-License-Identifier: Apache-2.0
// The bar above the figures: what is compared, which flows, which repetition, zoom.
"use strict";
howdah.controls = (() => {
  const { state } = howdah;

  // A labelled group; its label is shown unless the buttons speak for themselves.
  function group(name, shown = true) {
    const made = document.createElement("div");
    made.className = "group";
    made.setAttribute("role", "group");
    made.setAttribute("aria-label", name);
    const label = document.createElement("span");
    label.className = "name";
    label.textContent = name;
    if (shown) made.append(label);
    return made;
  }

  function button(text, pressed, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.append(text);
    if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
    made.addEventListener("click", action);
    return made;
  }

  function select(options, value, action) {
    const made = document.createElement("select");
    for (const [key, label] of options) made.add(new Option(label, key, false, key === value));
    made.addEventListener("change", () => action(made.value));
    return made;
  }

  // Adds or removes, but never the last one.
  function toggle(set, item) {
    if (!set.has(item)) set.add(item);
    else if (set.size > 1) set.delete(item);
  }

  function modes() {
    const made = group("view", false);
    for (const [mode, text] of [["compare", "compare"], ["single", "one at a time"]]) {
      made.append(button(text, state.view.mode === mode, () => state.change(() => state.preset(mode))));
    }
    return made;
  }

  function variants(many) {
    const made = group("algorithm");
    for (const index of state.variantsHere()) {
      const variant = state.data.variants[index];
      const swatch = document.createElement("span");
      swatch.className = `swatch variant-${index}`;
      const chip = button(swatch, state.view.variants.has(index), () =>
        state.change((view) => {
          if (view.mode === "single") view.variants = new Set([index]);
          else toggle(view.variants, index);
        }),
      );
      chip.classList.add("chip");
      chip.append(variant.label);
      chip.dataset.variant = variant.label;
      chip.disabled = !many;
      made.append(chip);
    }
    return made;
  }

  function flows(found) {
    const made = group("flow");
    for (const flow of found) {
      const chip = button(flow.name, state.view.flows.has(flow.id), () => state.change((view) => toggle(view.flows, flow.id)));
      chip.classList.add("chip");
      chip.dataset.flow = flow.id;
      made.append(chip);
    }
    return made;
  }

  function repetitions(found) {
    const made = group("repetition");
    const options = found.map((each) => [String(each), `r${each}`]);
    options.push(["all", "all"]);
    const chooser = select(options, state.view.repetition, (value) => state.change((view) => { view.repetition = value; }));
    chooser.id = "repetition";
    chooser.setAttribute("aria-label", "repetition");
    made.append(chooser);
    return made;
  }

  function points() {
    const made = group("sweep point");
    const options = state.data.points.map((point, index) => [String(index), point.label || "(none)"]);
    const chooser = select(options, String(state.view.point), (value) =>
      state.change((view) => {
        view.point = Number(value);
        view.zoom = { time: null, exit: null };
        state.preset(view.mode);
      }),
    );
    chooser.id = "point";
    chooser.setAttribute("aria-label", "sweep point");
    made.append(chooser);
    return made;
  }

  function zoom(figures) {
    const made = group("zoom", false);
    made.classList.add("end");
    const first = () => figures.find((figure) => figure.plot && figure.axis === "time");
    const act = (text, name, action) => {
      const each = button(text, null, () => { if (first()) action(first()); });
      each.setAttribute("aria-label", name);
      made.append(each);
      return each;
    };
    act("+", "zoom in", (figure) => figure.move(0.5, 0));
    act("−", "zoom out", (figure) => figure.move(2, 0));
    act("‹", "earlier", (figure) => figure.move(1, -0.3));
    act("›", "later", (figure) => figure.move(1, 0.3));
    act("start-up", "zoom to the start-up of the first flow shown", startUp);
    act("reset", "reset the zoom", () => state.change((view) => { view.zoom = { time: null, exit: null }; }, "zoom")).id = "reset";
    return made;
  }

  // From the start of the first flow shown to a little past the last of its exits in the runs shown.
  function startUp() {
    const shown = state.flowsHere().find((flow) => state.view.flows.has(flow.id));
    const flows = state.runs().flatMap((run) => run.flows.filter((flow) => flow.id === shown.id));
    const exits = flows.map((flow) => flow.exit).filter((exit) => exit);
    if (!exits.length) return;
    const first = Math.min(...exits.map((exit) => exit.time - exit.after));
    const last = Math.max(...exits.map((exit) => exit.time));
    state.zoom("time", [Math.max(0, first), last + 0.35 * (last - first)]);
  }

  // Rebuilds the bar and gives the focus back to the control that had it.
  function build(container, figures) {
    const controls = [...container.querySelectorAll("button, select")];
    const focused = controls.indexOf(document.activeElement);
    container.replaceChildren();
    if (state.data.points.length > 1) container.append(points());
    const many = state.variantsHere().length > 1;
    if (many) container.append(modes());
    container.append(variants(many));
    const found = state.flowsHere();
    if (found.length > 1) container.append(flows(found));
    const rounds = state.repetitionsHere();
    if (rounds.length > 1) container.append(repetitions(rounds));
    container.append(zoom(figures));
    if (focused >= 0) {
      const again = container.querySelectorAll("button, select")[focused];
      if (again) again.focus();
    }
  }

  return { build };
})();
