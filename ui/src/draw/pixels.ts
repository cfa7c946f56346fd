// Maps columns of data to columns of pixels. If several fall on one pixel, the highest is drawn: a state that occurred, so that no
// spike is lost. Rectangles on the pixel grid are much cheaper than a path with as many corners, especially without a graphics
// card.
export interface Part {
  t0: number;
  t1: number;
  t: ArrayLike<number>; // edges of its columns, one more than there are columns
  height: ArrayLike<number>;
}
export interface Pixels {
  count: number;
  part: Int16Array; // which part a pixel shows, -1 = none
  index: Int32Array; // and which of its columns
}

export function onPixels(parts: Part[], x: (t: number) => number, clip: { x0: number; x1: number }, pixel: number): Pixels {
  const count = Math.max(0, Math.ceil((clip.x1 - clip.x0) / pixel));
  const out: Pixels = { count, part: new Int16Array(count).fill(-1), index: new Int32Array(count) };
  const highest = new Float64Array(count).fill(-1);
  parts.forEach((part, p) => {
    for (let i = 0; i + 1 < part.t.length; i++) {
      const a = Math.max(part.t0, part.t[i]!);
      const b = Math.min(part.t1, part.t[i + 1]!);
      if (b <= a) continue;
      const from = Math.floor((x(a) - clip.x0) / pixel);
      const to = Math.max(from + 1, Math.floor((x(b) - clip.x0) / pixel));
      for (let c = Math.max(0, from); c < Math.min(count, to); c++) {
        if (part.height[i]! <= highest[c]!) continue;
        highest[c] = part.height[i]!;
        out.part[c] = p;
        out.index[c] = i;
      }
    }
  });
  return out;
}

/** Calls `rect` for each run of neighbors of the same height, as x, y and width. */
export function runs(pixels: Pixels, x0: number, pixel: number, y: (part: number, index: number) => number, rect: (x: number, y: number, width: number) => void): void {
  let start = 0;
  let level = NaN;
  for (let c = 0; c <= pixels.count; c++) {
    const part = c < pixels.count ? pixels.part[c]! : -1;
    const here = part < 0 ? NaN : Math.round(y(part, pixels.index[c]!) / pixel) * pixel;
    if (here === level) continue;
    if (!Number.isNaN(level)) rect(x0 + start * pixel, level, (c - start) * pixel);
    start = c;
    level = here;
  }
}
