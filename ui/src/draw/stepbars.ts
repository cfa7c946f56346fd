import type { Steps } from "../gen/rpc";
import { inUnit, type Unit } from "../format/numbers";
import { byteScale } from "./axis";
import { hatch, type Tokens } from "./tokens";

const LEFT = 36;
const BOTTOM = 34;
const TOP = 10;

/** Which step lies under x, or -1. */
export function stepAt(x: number, width: number, steps: number): number {
  const i = Math.floor(((x - LEFT) / (width - LEFT)) * steps);
  return i >= 0 && i < steps ? i : -1;
}

/** The categories that can be seen in some bar: at least a fiftieth of the highest. */
export function categoriesSeen(steps: Steps): string[] {
  const n = steps.number.length, least = steps.peak.reduce((a, b) => Math.max(a, b), 0) / 50;
  return steps.categories.filter((_, c) => steps.stack.subarray(c * n, (c + 1) * n).some((bytes) => bytes > least));
}

export function drawStepBars(ctx: CanvasRenderingContext2D, width: number, height: number, tokens: Tokens, steps: Steps, unit: Unit): void {
  const n = steps.number.length;
  if (n === 0) return;
  const highest = steps.peak.reduce((a, b) => Math.max(a, b), 0);
  const { top, step } = byteScale(highest, unit.bytes, 4);
  const y = (bytes: number) => TOP + (1 - bytes / top) * (height - TOP - BOTTOM);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let value = 0; value <= top * 1.001; value += step) {
    ctx.fillStyle = tokens.line;
    ctx.fillRect(LEFT, Math.round(y(value)), width - LEFT, 1);
    ctx.fillStyle = tokens["text-3"];
    ctx.fillText((value / unit.bytes).toLocaleString("en-US"), LEFT - 7, y(value));
  }
  const slot = (width - LEFT) / n;
  const gap = slot > 4 ? 1 : 0;
  // If steps are narrower than a pixel, a pixel shows the highest of its steps.
  const columns = Math.min(n, Math.max(1, Math.floor(width - LEFT)));
  for (let column = 0; column < columns; column++) {
    const from = Math.floor((column * n) / columns);
    const to = Math.max(from + 1, Math.floor(((column + 1) * n) / columns));
    let best = from;
    for (let i = from; i < to; i++) if (steps.peak[i]! > steps.peak[best]!) best = i;
    const x = LEFT + (column * (width - LEFT)) / columns;
    const w = Math.max(1, (width - LEFT) / columns - gap);
    let base = 0;
    for (let c = 0; c < steps.categories.length; c++) {
      const bytes = steps.stack[c * n + best] ?? 0;
      if (bytes <= 0) continue;
      ctx.fillStyle = tokens.fill(steps.categories[c]!);
      ctx.fillRect(x, y(base + bytes), w, Math.max(0.5, y(base) - y(base + bytes)));
      if (steps.categories[c] === "unknown") {
        ctx.fillStyle = hatch(ctx, tokens.hatch_of_unknown, 4);
        ctx.fillRect(x, y(base + bytes), w, y(base) - y(base + bytes));
      }
      base += bytes;
    }
  }
  labels(ctx, tokens, steps, unit, width, height, y, slot);
}

function labels(ctx: CanvasRenderingContext2D, tokens: Tokens, steps: Steps, unit: Unit, width: number, height: number, y: (bytes: number) => number, slot: number): void {
  const n = steps.number.length;
  ctx.textBaseline = "alphabetic";
  ctx.fillStyle = tokens["text-3"];
  ctx.textAlign = "left";
  ctx.fillText(String(steps.number[0]), LEFT, height - BOTTOM + 14);
  ctx.textAlign = "right";
  if (n > 1) ctx.fillText(String(steps.number[n - 1]), width, height - BOTTOM + 14);
  ctx.textAlign = "center";
  for (const epoch of steps.epochs) {
    const first = epoch.first - (steps.number[0] ?? 1);
    const last = epoch.last - (steps.number[0] ?? 1) + 1;
    const wide = (last - first) * slot;
    if (wide > 50) ctx.fillText(epoch.name, LEFT + ((first + last) / 2) * slot, height - 6);
  }
  if (steps.steady_first === null || steps.steady_last === null) return;
  // The two numbers that matter: the warm-up and the steady state.
  const first = steps.number.findIndex((value) => value === steps.steady_first);
  const last = steps.number.findIndex((value) => value === steps.steady_last);
  if (first < 0 || last < 0) return;
  let steady = 0;
  let lowest = Infinity;
  for (let i = first; i <= last; i++) { steady = Math.max(steady, steps.peak[i] ?? 0); lowest = Math.min(lowest, steps.peak[i] ?? 0); }
  ctx.font = "500 11.5px Inter, system-ui, sans-serif";
  ctx.textAlign = "right";
  const alike = inUnit(lowest, unit) === inUnit(steady, unit);
  const text = `Steps ${steps.steady_first} to ${steps.steady_last}: ${alike ? "" : `${inUnit(lowest, unit)} to `}${inUnit(steady, unit)}`;
  const wide = ctx.measureText(text).width;
  const right = Math.min(width, Math.max(LEFT + wide, LEFT + (last + 1) * slot)), base = Math.max(12, y(steady) - 7);
  ctx.fillStyle = tokens.surface; // no line of the grid runs through it
  ctx.fillRect(right - wide - 3, base - 10, wide + 3, 13);
  ctx.fillStyle = tokens.text;
  ctx.fillText(text, right, base);
  const warm = steps.peak[0] ?? 0;
  if (first > 0 && warm > steady * 1.2) {
    ctx.textAlign = "left";
    ctx.fillText(`Step ${steps.number[0]}: ${inUnit(warm, unit)}`, LEFT + slot + 6, y(warm) + 10);
  }
}
