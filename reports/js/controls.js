// SPDX-License-Identifier: Apache-2.0
// The bar above the figures: overlaid axes, flows, repetition, zoom.
"use strict";
howdah.controls = (() => {
  const { state } = howdah;
  const MOST_CHIPS = 8; // most values of a single-valued axis that get a button; more are in a list

  // A labelled group; its label is shown unless the buttons are self-explanatory.
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

  // Add or remove a value, but never the last one.
  function toggle(set, item) {
    if (!set.has(item)) set.add(item);
    else if (set.size > 1) set.delete(item);
  }

  // One axis: whether its values are overlaid, and which are shown.
  function axis(number) {
    const { label, name, values, colours } = state.data.axes[number];
    const made = group(label);
    made.dataset.axis = name;
    const over = state.view.over.has(number);
    const here = state.valuesHere(number);
    if (state.several(number)) {
      for (const [mode, text] of [[true, "compare"], [false, "one at a time"]]) {
        const each = button(text, over === mode, () => state.change(() => { if (over !== mode) state.overlay(number, mode); }));
        each.setAttribute("aria-label", `${label}: ${text}`);
        made.append(each);
      }
    }
    if (!over && here.length > MOST_CHIPS) {
      const options = here.map((value) => [String(value), values[value]]);
      const chooser = select(options, String(state.view.fixed[number]), (value) => state.change(() => state.pick(number, Number(value))));
      chooser.setAttribute("aria-label", label);
      made.append(chooser);
      return made;
    }
    for (const value of here) {
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.setProperty("--line", colours[value][howdah.theme.current()]);
      const pressed = over ? state.view.chosen[number].has(value) : state.view.fixed[number] === value;
      const chip = button("", pressed, () =>
        state.change((view) => (over ? toggle(view.chosen[number], value) : state.pick(number, value))),
      );
      chip.classList.add("chip");
      if (howdah.lines.coloursBy() === number) chip.append(swatch);
      chip.append(values[value]);
      chip.dataset.value = values[value];
      if (name === "algorithm") chip.dataset.variant = values[value];
      chip.disabled = !state.several(number);
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
    for (const [frame, text, name] of [["start", "start-up", "show the start-up"], ["whole", "whole run", "show the whole run"]]) {
      const each = button(text, state.view.frame === frame, () => state.show(frame));
      each.setAttribute("aria-label", name);
      each.dataset.frame = frame;
      made.append(each);
    }
    made.lastElementChild.id = "reset";
    return made;
  }

  // Buttons for start-up and whole run; neither is pressed if the reader zoomed.
  function refresh(container) {
    for (const each of container.querySelectorAll("[data-frame]")) {
      each.setAttribute("aria-pressed", String(state.view.frame === each.dataset.frame));
    }
  }

  // Rebuild the bar and return the focus to the control that had it.
  function build(container, figures) {
    const controls = [...container.querySelectorAll("button, select")];
    const focused = controls.indexOf(document.activeElement);
    container.replaceChildren();
    state.data.axes.forEach((_, number) => container.append(axis(number)));
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

  return { build, refresh };
})();
