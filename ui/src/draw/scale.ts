// Maps time to pixels. On the step axis, every step has the same width: time is warped piecewise, and `u` is warped time.
export interface Warp {
  u(t: number): number;
  t(u: number): number;
}

export const LINEAR: Warp = { u: (t) => t, t: (u) => u };

const START_SLOTS = 1.5; // start and step 1 are wider, because tracing happens there

export function stepWarp(starts: ArrayLike<number>, end: number): Warp {
  const knots = [0];
  for (let i = 0; i < starts.length; i++) if (starts[i]! > knots.at(-1)!) knots.push(starts[i]!);
  if (end > knots.at(-1)!) knots.push(end);
  if (knots.length < 3) return LINEAR;
  const weights = knots.slice(1).map((_, i) => (i < 2 ? START_SLOTS : 1));
  const whole = weights.reduce((a, b) => a + b, 0);
  const marks = [0];
  for (const weight of weights) marks.push(marks.at(-1)! + (weight / whole) * end);
  return { u: (t) => interpolate(knots, marks, t), t: (u) => interpolate(marks, knots, u) };
}

function interpolate(from: number[], to: number[], value: number): number {
  let low = 0;
  let high = from.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (from[middle]! <= value) low = middle;
    else high = middle - 1;
  }
  const span = from[low + 1]! - from[low]!;
  return to[low]! + ((value - from[low]!) / span) * (to[low + 1]! - to[low]!);
}

export class Scale {
  constructor(readonly warp: Warp, readonly u0: number, readonly u1: number, readonly left: number, readonly right: number) {}
  x(t: number): number {
    return this.left + ((this.warp.u(t) - this.u0) / (this.u1 - this.u0)) * (this.right - this.left);
  }
  t(x: number): number {
    return this.warp.t(this.u0 + ((x - this.left) / (this.right - this.left)) * (this.u1 - this.u0));
  }
  get t0(): number { return this.warp.t(this.u0); }
  get t1(): number { return this.warp.t(this.u1); }
}

/** The window after zooming by `factor` around u, kept inside [0, end] and at least a few microseconds wide. */
export function zoomed([u0, u1]: [number, number], u: number, factor: number, end: number): [number, number] {
  const span = Math.min(end, Math.max(20, (u1 - u0) * factor));
  return clamped([u - ((u - u0) / (u1 - u0)) * span, 0], span, end);
}
export function panned([u0, u1]: [number, number], by: number, end: number): [number, number] {
  return clamped([u0 + by, 0], u1 - u0, end);
}
function clamped([start]: [number, number], span: number, end: number): [number, number] {
  const u0 = Math.min(Math.max(0, start), Math.max(0, end - span));
  return [u0, u0 + span];
}
