# SPDX-License-Identifier: Apache-2.0
"""What is drawn badly on a page: words on words, dashes that are lost, words that are cut off, ink that does not stand
out, labels on curves, and figures of one page with other time bases."""

from __future__ import annotations

import re

from playwright.sync_api import Page

# Texts of drawings that a reader sees, and what is behind them.
_DRAWINGS = """
  const drawings = [...document.querySelectorAll("svg")].filter((each) =>
    each.checkVisibility({ visibilityProperty: true }) && each.getBoundingClientRect().width > 60);
  const textsOf = (drawing) => [...drawing.querySelectorAll("text")]
    .filter((each) => each.textContent.trim() && each.checkVisibility({ visibilityProperty: true }));
"""
LEAST_CONTRAST = {"text": 4.5, "line": 3.0}  # WCAG 1.4.3 and 1.4.11


def words_on_words(page: Page) -> list[str]:
    """Pairs of texts of one drawing that cover one another."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_DRAWINGS}
        const found = [];
        for (const drawing of drawings) {{
          const boxes = textsOf(drawing).map((each) => [each.textContent.trim(), each.getBoundingClientRect()]);
          boxes.forEach(([text, a], at) => {{
            for (const [other, b] of boxes.slice(at + 1)) {{
              const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
              const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
              if (across > 1 && down > 4) found.push(`"${{text}}" on "${{other}}"`);
            }}
          }});
        }}
        return found; }}"""
    )
    return found


def lost_dashes(page: Page) -> list[str]:
    """Dashes that a drawing asks for by attribute and a style sheet takes away."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("svg [stroke-dasharray]:not([stroke-dasharray=''])")]
          .map((each) => [each, getComputedStyle(each).strokeDasharray.replaceAll("px", "").replace(/[, ]+/g, " ")])
          .filter(([each, drawn]) => each.getAttribute("stroke-dasharray").replace(/[, ]+/g, " ") !== drawn)
          .map(([each, drawn]) => `${each.getAttribute("stroke-dasharray")} is drawn as ${drawn}`)"""
    )
    return found


def words_of_odd_size(page: Page) -> list[str]:
    """Words of a drawing that its scale makes too small to be read, or larger than the headings of the page."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("svg text")].filter((each) => each.checkVisibility())
          .filter((each) => each.textContent.trim() && !each.getAttribute("transform"))
          .map((each) => [each, each.getBoundingClientRect().height])
          .filter(([, height]) => height > 0 && (height < 10 || height > 22))
          .map(([each, height]) => `${each.textContent}: ${height.toFixed(1)} px`)"""
    )
    return found


def curves_unlike_their_keys(page: Page) -> list[str]:
    """Entries of legends whose dashes none of the curves of their figure has."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("figure.declared")].flatMap((figure) => {
          const dashesOf = (each) => getComputedStyle(each).strokeDasharray;
          const drawn = new Set([...figure.querySelectorAll("svg.chart .curve")].map(dashesOf));
          if (!drawn.size) return [];
          return [...figure.querySelectorAll(".chart-legend svg path, .chart-legend svg line")]
            .filter((each) => each.classList.contains("curve") && !drawn.has(dashesOf(each)))
            .map((each) => `${figure.dataset.figure}: ${dashesOf(each)}`);
        })"""
    )
    return found


def cut_text(page: Page) -> list[str]:
    """Texts of drawings beyond their edge, and texts of the page in boxes that hide what does not fit."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_DRAWINGS}
        const found = [];
        for (const drawing of drawings) {{
          const edge = drawing.getBoundingClientRect();
          for (const each of textsOf(drawing)) {{
            const box = each.getBoundingClientRect();
            const across = box.left < edge.left - 2 || box.right > edge.right + 2;
            if (across || box.top < edge.top - 2 || box.bottom > edge.bottom + 2) found.push(each.textContent.trim());
          }}
        }}
        for (const each of document.querySelectorAll("main *, header *, footer *")) {{
          if (!each.checkVisibility({{ visibilityProperty: true }})) continue;
          if (each.closest("svg, .uplot, .visually-hidden, .skip") || !each.textContent.trim()) continue;
          const style = getComputedStyle(each);
          const hides = style.overflowX === "hidden" || style.overflowX === "clip";
          if (hides && each.scrollWidth > each.clientWidth + 1) found.push(each.textContent.trim().slice(0, 60));
        }}
        return found; }}"""
    )
    return found


def faint_ink(page: Page) -> list[str]:
    """Texts and curves of drawings that do not stand out from the page."""
    surface, inks = page.evaluate(
        f"""() => {{ {_DRAWINGS}
        const seen = new Map();
        for (const drawing of drawings) {{
          for (const each of textsOf(drawing)) {{
            seen.set(`text ${{getComputedStyle(each).fill}}`, each.textContent.trim());
          }}
          for (const each of drawing.querySelectorAll(".curve")) {{
            const style = getComputedStyle(each);
            if (style.fill === "none") seen.set(`line ${{style.stroke}}`, each.textContent.trim() || "a curve");
          }}
        }}
        for (const figure of globalThis.howdah?.figures || []) {{
          for (const line of figure.lines || []) seen.set(`line ${{line.colour}}`, line.label);
        }}
        return [getComputedStyle(document.body).backgroundColor, [...seen]]; }}"""
    )
    found = []
    for ink, what in inks:
        kind, _, colour = ink.partition(" ")
        if contrast(colour, surface) < LEAST_CONTRAST[kind]:
            found.append(f"{what}: {colour} on {surface} is {contrast(colour, surface):.2f}")
    return found


def contrast(one: str, other: str) -> float:
    """Of two colours as a browser writes them (``rgb(…)``) or as ``#rrggbb``."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    if colour.startswith("#"):
        channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    else:
        channels = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def labels_on_curves(page: Page) -> list[str]:
    """Labels of exits and names of limits on the figures of a report that cover a curve or one another."""
    found: list[str] = page.evaluate(
        """() => (typeof howdah === "undefined" ? [] : howdah.figures || []).filter((each) => each.plot)
        .flatMap((figure) => {
          const name = figure.description.id;
          const bounds = figure.bounds();
          const curves = figure.pointsOf(figure.lines);
          const marks = figure.marksNow();
          const named = [...marks.exits, ...marks.limits.filter((each) => each.label && each.y !== null)];
          const boxes = named.map((each) => ({ label: each.label, left: each.at.x,
            right: each.at.x + howdah.marks.widthOf(each.label), top: each.at.y - 10, bottom: each.at.y + 2 }));
          const on = (box) => curves.filter((point) =>
            point.x > box.left && point.x < box.right && point.y > box.top && point.y < box.bottom).length;
          const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
          return boxes.flatMap((box, at) => [
            ...(on(box) ? [`${name}: "${box.label}" on ${on(box)} points`] : []),
            ...boxes.slice(at + 1).filter((other) => meet(box, other))
              .map((other) => `${name}: "${box.label}" on "${other.label}"`),
            ...(box.left < bounds.left || box.right > bounds.right ? [`${name}: "${box.label}" is cut`] : []),
          ]);
        })"""
    )
    return found


def time_bases(page: Page) -> list[list[float]]:
    """The first and last second of every figure over time: one pair, where they agree."""
    found: list[list[float]] = page.evaluate(
        """() => [...new Set((typeof howdah === "undefined" ? [] : howdah.figures || [])
          .filter((each) => each.plot && each.axis === "time")
          .map((each) => JSON.stringify([each.plot.scales.x.min, each.plot.scales.x.max])))].map(JSON.parse)"""
    )
    return found
