// Stacked areas from columns: steps, not slopes; every column is a state that occurred.
import type { Stack } from "../gen/rpc";
import { orUnknown, shown } from "../format/names";
import { onPixels, runs, type Pixels } from "./pixels";
import { hatch, inkOn, type Tokens } from "./tokens";

export interface Piece {
  t0: number;
  t1: number;
  data: Stack;
}
export interface StackOptions {
  x: (t: number) => number;
  y: (bytes: number) => number;
  clip: { x0: number; x1: number };
  solo: number; // index of the only group to show, -1 = all
  byCategory: boolean;
  label: boolean;
}

export function groupFill(tokens: Tokens, stack: Stack, group: number, byCategory: boolean): string {
  const g = stack.groups[group]!;
  if (byCategory) return tokens.fill(g.name);
  return g.rest ? tokens.n1 : tokens.rank(group, stack.groups.length);
}

export function drawStack(ctx: CanvasRenderingContext2D, tokens: Tokens, pieces: Piece[], o: StackOptions): void {
  const sample = pieces[0]?.data;
  if (!sample) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(o.clip.x0, 0, o.clip.x1 - o.clip.x0, 1e5);
  ctx.clip();
  const groups = sample.groups.length;
  // Painter's order: the whole silhouette in the color of the top group, then what is below it, and so on.
  const tops = pieces.map((p) => cumulative(p.data, o.solo));
  const narrow = pieces.some((p) => Math.abs(o.x(p.t1) - o.x(p.t0)) / Math.max(1, p.data.t.length - 1) < 1.5);
  const pixel = 1 / (ctx.getTransform().a || 1);
  const pixels = narrow ? onPixels(pieces.map((p, i) => ({ t0: p.t0, t1: p.t1, t: p.data.t, height: tops[i]![o.solo >= 0 ? o.solo : groups - 1]! })), o.x, o.clip, pixel) : null;
  for (let g = groups - 1; g >= 0; g--) {
    if (o.solo >= 0 && g !== o.solo) continue;
    const group = sample.groups[g]!;
    if (pieces.every((p) => (p.data.groups[g]?.max ?? 0) <= 0)) continue;
    const fill = groupFill(tokens, sample, g, o.byCategory);
    const edge = o.byCategory ? tokens.line_of(group.name) : tokens.edge;
    const style = { fill, edge, hatched: group.name === "unknown" && o.byCategory };
    if (pixels) drawRects(ctx, tokens, pixels, (p, i) => o.y(tops[p]![g]![i]!), o, pixel, style);
    else for (let p = 0; p < pieces.length; p++) drawArea(ctx, tokens, pieces[p]!, tops[p]![g]!, o, style);
  }
  if (o.label) names(ctx, tokens, pieces, tops, o);
  ctx.restore();
}

interface AreaStyle { fill: string; edge: string; hatched: boolean }

/** One group where columns are about as narrow as pixels. */
function drawRects(ctx: CanvasRenderingContext2D, tokens: Tokens, pixels: Pixels, y: (part: number, index: number) => number, o: StackOptions, pixel: number, style: AreaStyle): void {
  const floor = o.y(0);
  const fill = () => runs(pixels, o.clip.x0, pixel, y, (x, top, width) => ctx.fillRect(x, top, width, floor - top));
  ctx.fillStyle = style.fill;
  fill();
  if (style.hatched) {
    ctx.fillStyle = hatch(ctx, tokens.hatch_of_unknown);
    fill();
  }
  // A solid line would hide areas that are as narrow as the line.
  ctx.globalAlpha = 0.6;
  ctx.fillStyle = style.edge;
  runs(pixels, o.clip.x0, pixel, y, (x, top, width) => ctx.fillRect(x, top, width, pixel));
  ctx.globalAlpha = 1;
}

/** One group of a piece whose columns are wide: an outline of steps. */
function drawArea(ctx: CanvasRenderingContext2D, tokens: Tokens, piece: Piece, top: Float64Array, o: StackOptions, style: AreaStyle): void {
  const floor = o.y(0);
  const area = new Path2D();
  const line = new Path2D();
  let open = false;
  let right = 0;
  let level = NaN; // height of the run of columns being drawn: equal neighbors are one step
  for (let i = 0; i < top.length; i++) {
    const a = Math.max(piece.t0, piece.data.t[i]!);
    const b = Math.min(piece.t1, piece.data.t[i + 1]!);
    if (b <= a) continue;
    const x0 = o.x(a);
    const x1 = o.x(b);
    if (x1 < o.clip.x0 - 2 || x0 > o.clip.x1 + 2) continue;
    right = x1;
    const y = o.y(top[i]!);
    if (y === level) continue;
    if (!open) {
      area.moveTo(x0, floor);
      line.moveTo(x0, y);
      open = true;
    } else {
      area.lineTo(x0, level);
      line.lineTo(x0, level);
    }
    area.lineTo(x0, y);
    line.lineTo(x0, y);
    level = y;
  }
  if (!open) return;
  area.lineTo(right, level);
  line.lineTo(right, level);
  area.lineTo(right, floor);
  area.closePath();
  ctx.fillStyle = style.fill;
  ctx.fill(area);
  if (style.hatched) {
    ctx.fillStyle = hatch(ctx, tokens.hatch_of_unknown);
    ctx.fill(area);
  }
  ctx.strokeStyle = style.edge;
  ctx.lineWidth = 1;
  ctx.stroke(line);
}

const borders = new WeakMap<Stack, Float64Array[]>();
/** For each group, its upper border in each column; made once for each tile. */
function cumulative(stack: Stack, solo: number): Float64Array[] {
  if (solo < 0) {
    let known = borders.get(stack);
    if (!known) borders.set(stack, (known = addUp(stack, solo)));
    return known;
  }
  return addUp(stack, solo);
}
function addUp(stack: Stack, solo: number): Float64Array[] {
  const n = stack.t.length - 1;
  const out: Float64Array[] = [];
  let below: Float64Array | null = null;
  for (let g = 0; g < stack.groups.length; g++) {
    const top = new Float64Array(Math.max(0, n));
    for (let i = 0; i < n; i++) top[i] = (solo >= 0 || !below ? 0 : below[i]!) + stack.bytes[g * n + i]!;
    out.push(top);
    below = top;
  }
  return out;
}

/** Writes a group's name where it is high and wide enough; once for each long stretch. */
function names(ctx: CanvasRenderingContext2D, tokens: Tokens, pieces: Piece[], tops: Float64Array[][], o: StackOptions): void {
  const sample = pieces[0]!.data;
  ctx.font = "500 12px Inter, system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (let g = 0; g < sample.groups.length; g++) {
    if (o.solo >= 0 && g !== o.solo) continue;
    const text = orUnknown(shown(sample.groups[g]!.name, 40));
    const need = ctx.measureText(text).width + 14;
    let start = NaN, low = Infinity, high = -Infinity, last = NaN;
    const flush = () => {
      if (last - start >= need && low - high >= 16) {
        ctx.fillStyle = inkOn(groupFill(tokens, sample, g, o.byCategory));
        const middle = o.byCategory && sample.groups[g]!.name === "inputs" ? start + need / 2 + 20 : (start + last) / 2;
        ctx.fillText(text, Math.min(last - need / 2, Math.max(start + need / 2, middle)), (low + high) / 2);
      }
      start = NaN; low = Infinity; high = -Infinity;
    };
    for (let p = 0; p < pieces.length; p++) {
      const { data, t0, t1 } = pieces[p]!;
      const n = data.t.length - 1;
      for (let i = 0; i < n; i++) {
        const a = Math.max(t0, data.t[i]!);
        const b = Math.min(t1, data.t[i + 1]!);
        if (b <= a) continue;
        const x0 = Math.max(o.clip.x0, o.x(a));
        const x1 = Math.min(o.clip.x1, o.x(b));
        if (x1 <= x0) continue;
        const base = o.y(o.solo >= 0 || g === 0 ? 0 : tops[p]![g - 1]![i]!);
        const top = o.y(tops[p]![g]![i]!);
        if (Math.min(low, base) - Math.max(high, top) < 16) flush();
        if (base - top < 16) continue;
        if (Number.isNaN(start)) start = x0;
        low = Math.min(low, base);
        high = Math.max(high, top);
        last = x1;
      }
    }
    flush();
  }
}

/** The column under time t. */
export function columnAt(pieces: Piece[], t: number): { piece: Piece; index: number } | null {
  for (const piece of pieces) {
    if (t < piece.t0 || t >= piece.t1) continue;
    const times = piece.data.t;
    let low = 0;
    let high = times.length - 2;
    if (high < 0) return null;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle]! <= t) low = middle;
      else high = middle - 1;
    }
    return { piece, index: low };
  }
  return null;
}
