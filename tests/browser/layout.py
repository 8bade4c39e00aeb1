# SPDX-License-Identifier: Apache-2.0
"""What lies wrong on a page: beyond its edge, on something else, cut off, or in a box that scrolls without a word."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Page

# What is seen of the page and is not meant to scroll within its own box.
_SEEN = """
  const seen = (each) => {
    const box = each.getBoundingClientRect();
    const shown = each.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
    return shown && box.width > 1 && box.height > 1 && !each.closest(".visually-hidden, .skip");
  };
  const named = (each) => [each.tagName.toLowerCase(), each.id && `#${each.id}`, `.${each.getAttribute("class") || ""}`,
    ` "${each.textContent.trim().slice(0, 40)}"`].join("");
"""


def beyond_the_edge(page: Page) -> list[str]:
    """What sticks out of the page to the right, unless it is in a box that scrolls."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wide = document.documentElement.clientWidth;
        return [...document.querySelectorAll("body *")]
          .filter((each) => seen(each) && !each.parentElement.closest(".scroll, svg, .uplot"))
          .filter((each) => each.getBoundingClientRect().right > wide + 1).map(named); }}"""
    )
    return found


def on_top_of_each_other(page: Page) -> list[str]:
    """Controls, headings and lines of text that cover one another."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wanted = "h1, h2, h3, h4, p, button, select, summary, dt, dd, figcaption, .verdict, .scroll, canvas";
        const outside = [...document.querySelectorAll(wanted)]
          .filter((each) => seen(each) && !each.parentElement.closest(".scroll"));
        const boxes = outside.map((each) => {{
          const box = each.getBoundingClientRect();
          const {{ left, right, top, bottom }} = box;
          return {{ each, left, right, top, bottom, sticky: each.closest(".controls") }};
        }});
        const found = [];
        boxes.forEach((a, at) => {{
          for (const b of boxes.slice(at + 1)) {{
            if (a.each.contains(b.each) || b.each.contains(a.each) || Boolean(a.sticky) !== Boolean(b.sticky)) continue;
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 3 && down > 3) found.push(`${{named(a.each)}} and ${{named(b.each)}}`);
          }}
        }});
        return found; }}"""
    )
    return found


def cut_words(page: Page) -> list[str]:
    """Words of figures that reach beyond the drawing, or are too small to be read."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("figure svg")].filter((each) => each.checkVisibility())
          .flatMap((drawing) => {
            const edge = drawing.getBoundingClientRect();
            return [...drawing.querySelectorAll("text")].filter((each) => {
              const box = each.getBoundingClientRect();
              return box.left < edge.left - 2 || box.right > edge.right + 2 || box.height < 8;
            }).map((each) => each.textContent);
          })"""
    )
    return found


def broken_numbers(page: Page) -> list[str]:
    """Numbers whose unit stands on the next line."""
    found: list[str] = page.evaluate(
        r"""() => {
        const unit = String.raw`%|[kMGT]?bit/s|(?:[kMGT]|[KMGT]i)?B|bytes?|[nmu]?s|min|h|px|BDP|bdp|MSS|RTTs?` +
          "|packets?|frames?|segments?|rounds?|times";
        const number = new RegExp(String.raw`\d\s(?:${unit})(?![\w/])`, "g");
        const found = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
          const node = walker.currentNode;
          const around = node.parentElement;
          if (!around.checkVisibility({ visibilityProperty: true })) continue;
          if (around.closest("script, style, pre, code, svg, .visually-hidden")) continue;
          for (const match of node.data.matchAll(number)) {
            const range = document.createRange();
            range.setStart(node, match.index);
            range.setEnd(node, match.index + match[0].length);
            const boxes = [...range.getClientRects()].filter((box) => box.width);
            if (new Set(boxes.map((box) => Math.round(box.top))).size < 2) continue;
            found.push(node.data.slice(Math.max(0, match.index - 30), match.index + 20).trim());
          }
        }
        return found; }"""
    )
    return found


def cut_off_on_paper(page: Page) -> list[str]:
    """Tables that are wider than the page. On paper nothing scrolls: what does not fit is cut off."""
    found: list[str] = page.evaluate(
        f"""() => {{ {_SEEN}
        const wide = document.documentElement.clientWidth;
        return [...document.querySelectorAll("table")].filter(seen)
          .filter((each) => each.getBoundingClientRect().right > wide + 1).map(named); }}"""
    )
    return found


@dataclass(frozen=True)
class Box:
    """A box of the page that scrolls when it is too narrow for what is in it."""

    hidden_px: int
    focusable: bool
    hint: str
    hint_shown: bool
    hint_shown_at_end: bool


def scrolling_boxes(page: Page) -> list[Box]:
    """Each visible one, with the hint above it, before and after it is scrolled to its end. They are scrolled back."""
    found = page.evaluate(
        """async () => {
        const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const visible = (each) => {
          if (!each || !each.checkVisibility({ visibilityProperty: true })) return false;
          const box = each.getBoundingClientRect();
          return box.width > 0 && box.height > 0;
        };
        const boxes = [...document.querySelectorAll(".scroll")].filter(visible);
        const found = boxes.map((each) => ({
          hidden_px: each.scrollWidth - each.clientWidth,
          focusable: each.getAttribute("tabindex") === "0",
          hint: each.previousElementSibling ? each.previousElementSibling.innerText : "",
          hint_shown: visible(each.previousElementSibling),
        }));
        for (const each of boxes) each.scrollLeft = each.scrollWidth;
        await painted();
        boxes.forEach((each, at) => { found[at].hint_shown_at_end = visible(each.previousElementSibling); });
        for (const each of boxes) each.scrollLeft = 0;
        await painted();
        return found; }"""
    )
    return [Box(**each) for each in found]
