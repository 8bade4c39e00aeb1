// SPDX-License-Identifier: Apache-2.0
// Formats numbers as in the page's tables: four significant digits, narrow non-breaking spaces between thousands.
"use strict";
howdah.format = (() => {
  function significant(value, digits = 4) {
    if (value === null || value === undefined || Number.isNaN(value)) return "—";
    if (value === 0) return "0";
    const magnitude = Math.floor(Math.log10(Math.abs(value)));
    const decimals = Math.min(12, Math.max(0, digits - 1 - magnitude));
    let text = Math.abs(value).toFixed(decimals);
    if (text.includes(".")) text = text.replace(/\.?0+$/, "");
    let [whole, fraction] = text.split(".");
    if (whole.length > 4) whole = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
    return (value < 0 && Number(text) !== 0 ? "\u2212" : "") + whole + (fraction ? `.${fraction}` : "");
  }

  // Tick labels, all with the decimals that their spacing needs; on a logarithmic axis some ticks are null and have no label.
  function ticks(splits) {
    if (splits.includes(null)) return splits.map((value) => (value === null ? "" : significant(value)));
    const spacing = splits.length > 1 ? Math.abs(splits[1] - splits[0]) : 1;
    let decimals = 0;
    while (decimals < 9 && Math.abs(spacing * 10 ** decimals - Math.round(spacing * 10 ** decimals)) > 1e-6) decimals++;
    return splits.map((value) => {
      let [whole, fraction] = Math.abs(value).toFixed(decimals).split(".");
      if (whole.length > 4) whole = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
      const zero = Number(value.toFixed(decimals)) === 0;
      return (value < 0 && !zero ? "\u2212" : "") + whole + (fraction ? `.${fraction}` : "");
    });
  }

  const seconds = (value, span) => {
    const decimals = span < 0.05 ? 5 : span < 1 ? 4 : span < 20 ? 3 : 2;
    return `${value < 0 ? "\u2212" : ""}${Math.abs(value).toFixed(decimals)} s`;
  };

  return { significant, ticks, seconds };
})();
