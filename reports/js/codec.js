// SPDX-License-Identifier: Apache-2.0
// Decodes the columns that howdah/report/codec.py encodes.
"use strict";
howdah.codec = (() => {
  // Zigzag differences plus one, seven bits a byte, zero for no value. No bit shifts, because codes exceed 32 bits.
  function column(coded) {
    const bytes = atob(coded.data);
    const values = new Array(coded.count);
    let index = 0, level = 0, code = 0, place = 1;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes.charCodeAt(at);
      code += (byte & 0x7f) * place;
      if (byte & 0x80) {
        place *= 128;
        continue;
      }
      if (code === 0) {
        values[index++] = null;
      } else {
        code -= 1;
        level += code % 2 === 0 ? code / 2 : -(code + 1) / 2;
        values[index++] = level * coded.scale;
      }
      code = 0;
      place = 1;
    }
    return values;
  }

  // A curve's times in seconds and its values; `low` are the lower ends of ranges, else null.
  function curve(coded) {
    let time;
    if (coded.even) {
      const [first, step, count] = coded.even;
      time = Array.from({ length: count }, (_, index) => (first + step * index) / 1000);
    } else {
      time = column(coded.time).map((each) => each / 1000);
    }
    return { x: time, y: column(coded.value), low: coded.low ? column(coded.low) : null };
  }

  return { column, curve };
})();
