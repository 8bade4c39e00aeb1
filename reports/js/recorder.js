// SPDX-License-Identifier: Apache-2.0
// A canvas that produces SVG elements. Its context implements the part of the canvas API that figures use.
"use strict";
howdah.Recorder = (() => {
  const ruler = document.createElement("canvas").getContext("2d");
  const ANCHORS = { center: "middle", right: "end", end: "end" };
  const AT_FIRST = {
    fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineJoin: "miter", lineCap: "butt", lineDashOffset: 0, dash: [],
    globalAlpha: 1, font: "10px sans-serif", textAlign: "start", textBaseline: "alphabetic", matrix: new DOMMatrix(), clipped: "",
  };

  const number = (value) => String(Math.round(value * 100) / 100);
  const escaped = (text) => String(text).replace(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);

  // An element without the attributes that are null.
  function element(name, attributes, content = "") {
    const given = Object.entries(attributes).filter(([, value]) => value !== null);
    const begin = `<${name}${given.map(([key, value]) => ` ${key}="${escaped(value)}"`).join("")}`;
    return content ? `${begin}>${content}</${name}>` : `${begin}/>`;
  }

  // Like Path2D, but readable: `d` is the path data of SVG.
  class Path {
    constructor(from = "") { this.d = from.d ?? from; }
    moveTo(x, y) { this.d += `M${number(x)} ${number(y)}`; }
    lineTo(x, y) { this.d += `${this.d ? "L" : "M"}${number(x)} ${number(y)}`; }
    rect(x, y, width, height) { this.d += `M${number(x)} ${number(y)}h${number(width)}v${number(height)}h${number(-width)}Z`; }
    // Always a full circle: figures use no other arcs.
    arc(x, y, r) { this.d += `M${number(x + r)} ${number(y)}a${r} ${r} 0 1 1 ${-2 * r} 0a${r} ${r} 0 1 1 ${2 * r} 0Z`; }
  }

  class Recorder {
    constructor() {
      Object.assign(this, AT_FIRST, { kept: [], clips: [], drawn: [], path: new Path() });
    }

    save() { this.kept.push(Object.fromEntries(Object.keys(AT_FIRST).map((name) => [name, this[name]]))); }
    restore() { Object.assign(this, this.kept.pop()); }
    setLineDash(dash) { this.dash = dash; }
    translate(x, y) { this.matrix = this.matrix.translate(x, y); }
    rotate(angle) { this.matrix = this.matrix.rotate((angle * 180) / Math.PI); }
    scale(x, y) { this.matrix = this.matrix.scale(x, y); }

    beginPath() { this.path = new Path(); }
    moveTo(x, y) { this.path.moveTo(x, y); }
    lineTo(x, y) { this.path.lineTo(x, y); }
    rect(...box) { this.path.rect(...box); }
    arc(x, y, r) { this.path.arc(x, y, r); }

    // Intersect with the current clip.
    clip(path = this.path) {
      const id = `clip${this.clips.length + 1}`;
      this.clips.push(element("clipPath", { id, "clip-path": this.clipped || null }, element("path", { d: path.d, transform: this.transform })));
      this.clipped = `url(#${id})`;
    }

    clearRect() {}
    fillRect(...box) {
      const path = new Path();
      path.rect(...box);
      this.fill(path);
    }

    fill(path = this.path) { this.add("path", { d: path.d, fill: this.fillStyle }); }

    stroke(path = this.path) {
      this.add("path", {
        d: path.d,
        fill: "none",
        stroke: this.strokeStyle,
        "stroke-width": this.lineWidth,
        "stroke-linejoin": this.lineJoin === "miter" ? null : this.lineJoin,
        "stroke-linecap": this.lineCap === "butt" ? null : this.lineCap,
        "stroke-dasharray": this.dash.length ? this.dash.join(" ") : null,
        "stroke-dashoffset": this.lineDashOffset || null,
      });
    }

    fillText(text, x, y) {
      ruler.font = this.font;
      const ascent = (baseline) => {
        ruler.textBaseline = baseline;
        return ruler.measureText(text).fontBoundingBoxAscent;
      };
      const base = y + ascent("alphabetic") - ascent(this.textBaseline);
      const anchor = ANCHORS[this.textAlign] ?? null;
      this.add("text", { x: number(x), y: number(base), "font-size": parseFloat(this.font), "text-anchor": anchor, fill: this.fillStyle }, escaped(text));
    }

    // Give the last element a title.
    setTitle(text) { this.drawn.at(-1).content += element("title", {}, escaped(text)); }

    get transform() {
      const { a, b, c, d, e, f } = this.matrix;
      return this.matrix.isIdentity ? null : `matrix(${[a, b, c, d, e, f].map((each) => Number(each.toFixed(4))).join(" ")})`;
    }

    add(name, attributes, content = "") {
      const opacity = this.globalAlpha === 1 ? null : this.globalAlpha;
      this.drawn.push({ name, attributes: { ...attributes, opacity, transform: this.transform }, content, clipped: this.clipped });
    }

    // All elements; consecutive ones with the same clip form a group.
    get svg() {
      let found = this.clips.join("");
      let clipped = "";
      for (const each of this.drawn) {
        if (each.clipped !== clipped) found += (clipped && "</g>") + (each.clipped && `<g clip-path="${each.clipped}">`);
        clipped = each.clipped;
        found += element(each.name, each.attributes, each.content);
      }
      return found + (clipped && "</g>");
    }
  }

  return Object.assign(Recorder, { Path, element, escaped });
})();
