// Round numbers for axes: zero based, 1-2-5.
import type { Tokens } from "./tokens";

/** The smallest round number of ticks that lies above `highest`, and its step. Sizes step in powers of two times 1, 2, 5. */
export function byteScale(highest: number, unit: number, lines = 5): { top: number; step: number } {
  const value = Math.max(highest / unit, 1e-9);
  const step = roundUp(value / lines);
  return { top: Math.ceil((value * 1.0001) / step) * step * unit, step: step * unit };
}

export function timeTicks(t0: number, t1: number, most: number): { ticks: number[]; step: number } {
  const step = Math.max(1, roundUp((t1 - t0) / Math.max(most, 1)));
  const ticks: number[] = [];
  for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) ticks.push(t);
  return { ticks, step };
}

/** A tick's text in seconds with just the digits that the step needs. */
export function tickText(t: number, step: number): string {
  const digits = Math.min(6, Math.max(0, Math.ceil(6 - Math.log10(step) - 1e-9)));
  return (t / 1e6).toFixed(digits);
}

export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= value * 0.9999) return factor * power;
  return 10 * power;
}

/** A line and a figure for each step of the scale, from x0 to the right edge. */
export function drawByteGrid(ctx: CanvasRenderingContext2D, tokens: Tokens, scale: { top: number; step: number }, unitBytes: number, y: (bytes: number) => number, x0: number, width: number): void {
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let bytes = 0; bytes <= scale.top * 1.001; bytes += scale.step) {
    ctx.fillStyle = tokens.line;
    ctx.fillRect(x0, Math.round(y(bytes)), width - x0, 1);
    ctx.fillStyle = tokens["text-3"];
    ctx.fillText((bytes / unitBytes).toLocaleString("en-US", { maximumFractionDigits: 1 }), x0 - 8, y(bytes));
  }
}
