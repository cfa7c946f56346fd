// The timeline from top to bottom: ruler, bands, device, pool, live blocks, events, host. One canvas, one scale of time.
import type { Band, Loss, MarkPoint, Track } from "../gen/rpc";
import { duration, type Unit } from "../format/numbers";
import { shown } from "../format/names";
import { cut } from "./fit";
import { byteScale, tickText, timeTicks } from "./axis";
import { onPixels, runs } from "./pixels";
import { drawStack, type Piece } from "./stack";
import { hatch, type Tokens } from "./tokens";
import type { Scale } from "./scale";

export const GUTTER = 100;
export interface Lane {
  id: "ruler" | "steps" | "phases" | "device" | "pool" | "live" | "events" | "host";
  y: number;
  height: number;
}

export function layout(height: number, phaseRows: number, wanted: Set<string>): Lane[] {
  const fixed: [Lane["id"], number][] = [["ruler", 24], ["steps", 21]];
  if (phaseRows > 0) fixed.push(["phases", 17 * Math.min(phaseRows, 3) + 5]);
  for (const id of ["device", "pool"] as const) if (wanted.has(id)) fixed.push([id, 38]);
  const below: [Lane["id"], number][] = [];
  for (const id of ["events", "host"] as const) if (wanted.has(id)) below.push([id, 38]);
  const rest = Math.max(120, height - [...fixed, ...below].reduce((sum, [, h]) => sum + h, 0));
  let y = 0;
  return [...fixed, ["live", rest] as [Lane["id"], number], ...below].map(([id, h]) => {
    const lane = { id, y, height: h };
    y += h;
    return lane;
  });
}

export interface LanesData {
  scale: Scale;
  lanes: Lane[];
  pieces: Piece[];
  bands: Band[];
  points: MarkPoint[];
  losses: Loss[];
  tracks: Track[][]; // one list per tile
  top: number;
  unit: Unit;
  reference: { bytes: number; text: string } | null;
  cursor: number | null; // selected instant, µs
  cursorBytes: number | null;
  hover: number | null;
  brush: [number, number] | null;
  solo: number;
  byCategory: boolean;
  end: number;
}

export function drawLanes(ctx: CanvasRenderingContext2D, width: number, height: number, tokens: Tokens, d: LanesData): void {
  const right = d.scale.right;
  for (const lane of d.lanes) {
    ctx.fillStyle = tokens.line;
    if (lane.id !== "ruler" && lane.id !== "steps" && lane.id !== "phases") ctx.fillRect(0, lane.y, width, 1);
    if (lane.id === "ruler") ruler(ctx, tokens, lane, d);
    else if (lane.id === "steps") bands(ctx, tokens, lane, d, "step");
    else if (lane.id === "phases") bands(ctx, tokens, lane, d, "phase");
    else if (lane.id === "live") live(ctx, tokens, lane, d);
    else track(ctx, tokens, lane, d);
  }
  for (const loss of d.losses) lossGap(ctx, tokens, d, loss);
  over(ctx, tokens, d, height, right);
}

function gutter(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, name: string, note: string): void {
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.fillStyle = tokens["text-2"];
  ctx.font = "500 11.5px Inter, system-ui, sans-serif";
  ctx.fillText(name, 16, lane.y + 14);
  ctx.fillStyle = tokens["text-3"];
  ctx.font = "11px Inter, system-ui, sans-serif";
  if (note) ctx.fillText(cut(ctx, note, GUTTER - 18), 16, lane.y + 29);
}

function ruler(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData): void {
  gutter(ctx, tokens, lane, "Time, s", "");
  const { ticks, step } = timeTicks(d.scale.t0, d.scale.t1, (d.scale.right - d.scale.left) / 66);
  const flag = d.cursor === null ? NaN : d.scale.x(d.cursor);
  ctx.textAlign = "left";
  let last = -1e9;
  for (const t of ticks) {
    const x = Math.round(d.scale.x(t));
    if (x < d.scale.left - 1 || x > d.scale.right || x - last < 52) continue;
    ctx.fillStyle = tokens["line-2"];
    ctx.fillRect(x, lane.y + 14, 1, 8);
    if (Math.abs(x + 20 - flag) < 66 || x + 40 > d.scale.right) continue; // would be under the cursor's flag
    ctx.fillStyle = tokens["text-3"];
    ctx.fillText(tickText(t, step), x + 4, lane.y + 14);
    last = x;
  }
}

function bands(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData, kind: string): void {
  gutter(ctx, tokens, lane, kind === "step" ? "Step" : "Phase", "");
  ctx.textBaseline = "middle";
  let lastRight = -1;
  for (const band of d.bands) {
    if (band.kind !== kind) continue;
    const a = Math.max(d.scale.left, d.scale.x(band.t0));
    const b = Math.min(d.scale.right, d.scale.x(band.t1));
    if (b < a || b < d.scale.left || a > d.scale.right) continue;
    if (kind === "step" && b - a < 1 && b <= lastRight) continue;
    lastRight = b;
    const h = kind === "step" ? 17 : 15;
    const y = lane.y + 1 + (kind === "step" ? 0 : Math.min(2, band.row) * 17);
    ctx.fillStyle = kind === "step" ? (band.number % 2 ? tokens.n2 : tokens.n1) : tokens.n2;
    ctx.fillRect(a, y, Math.max(1, b - a - 1), h);
    ctx.fillStyle = tokens.text;
    ctx.textAlign = "left";
    ctx.font = kind === "step" ? "500 11.5px Inter, system-ui, sans-serif" : "11px Inter, system-ui, sans-serif";
    const name = shown(band.name, 60);
    const room = b - a - 14;
    if (room < -4) continue; // not even a digit
    if (ctx.measureText(name).width <= room) ctx.fillText(name, a + 7, y + h / 2 + 0.5);
    else if (room > 24 && kind !== "step") ctx.fillText(cut(ctx, name, room), a + 7, y + h / 2 + 0.5);
    else if (kind === "step" && ctx.measureText(String(band.number)).width < room + 8) ctx.fillText(String(band.number), a + 3, y + h / 2 + 0.5);
    if (kind === "step" && room > 110) {
      ctx.textAlign = "right";
      ctx.fillStyle = tokens["text-2"];
      ctx.font = "11px Inter, system-ui, sans-serif";
      ctx.fillText(duration(band.t1 - band.t0), b - 8, y + h / 2 + 0.5);
    }
  }
}

function live(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData): void {
  gutter(ctx, tokens, lane, "Live blocks", d.unit.name);
  const { top, step } = byteScale(d.top, d.unit.bytes, Math.max(2, Math.min(6, lane.height / 70)));
  const room = top * 1.06;
  const head = Math.max(8, 26 - 0.06 * lane.height); // in a low lane, the highest number would overlap the name
  const y = (bytes: number) => lane.y + head + (1 - bytes / room) * (lane.height - 1 - head);
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (let value = 0; value <= top; value += step) {
    ctx.fillStyle = tokens.line;
    ctx.fillRect(d.scale.left, Math.round(y(value)), d.scale.right - d.scale.left, 1);
    ctx.fillStyle = tokens["text-3"];
    ctx.font = "11px Inter, system-ui, sans-serif";
    if (value > 0 || lane.height > 100) ctx.fillText(Math.round(value / d.unit.bytes * 10) / 10 + "", d.scale.left - 8, Math.min(y(value), lane.y + lane.height - 6));
  }
  const clip = { x0: d.scale.left, x1: d.scale.right };
  // Not read yet, or not in this report: hatched, never blank.
  ctx.save();
  ctx.beginPath();
  ctx.rect(clip.x0, lane.y + 1, clip.x1 - clip.x0, lane.height - 1);
  ctx.clip();
  if (d.pieces.length === 0) {
    ctx.fillStyle = hatch(ctx, tokens.line);
    ctx.fillRect(clip.x0, lane.y, clip.x1 - clip.x0, lane.height);
  }
  drawStack(ctx, tokens, d.pieces, { x: (t) => d.scale.x(t), y, clip, solo: d.solo, byCategory: d.byCategory, label: true });
  ctx.restore();
  for (const band of d.bands) {
    if (band.kind !== "step") continue;
    const x = Math.round(d.scale.x(band.t0));
    if (x > clip.x0 && x < clip.x1 && d.scale.x(band.t1) - x > 40) {
      ctx.fillStyle = tokens["line-2"];
      ctx.globalAlpha = 0.7;
      ctx.fillRect(x, lane.y, 1, lane.height);
      ctx.globalAlpha = 1;
    }
  }
  for (const point of d.points) mark(ctx, tokens, lane, d, point);
  if (d.reference && d.solo < 0) dashed(ctx, tokens, d, Math.round(y(d.reference.bytes)) + 0.5, d.reference.text);
  if (d.cursor !== null && d.cursorBytes !== null) {
    const x = d.scale.x(d.cursor);
    if (x >= clip.x0 && x <= clip.x1) {
      ctx.beginPath();
      ctx.arc(x, y(d.cursorBytes), 4, 0, 7);
      ctx.fillStyle = tokens.surface;
      ctx.fill();
      ctx.lineWidth = 2;
      ctx.strokeStyle = tokens.accent;
      ctx.stroke();
    }
  }
}

// A level to compare with, across the whole lane.
function dashed(ctx: CanvasRenderingContext2D, tokens: Tokens, d: LanesData, at: number, text: string): void {
  ctx.setLineDash([4, 3]);
  ctx.strokeStyle = tokens["text-2"];
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(d.scale.left, at);
  ctx.lineTo(d.scale.right, at);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.font = "11px Inter, system-ui, sans-serif";
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  const wide = ctx.measureText(text).width;
  // At the left end, unless the cursor would go through it.
  const cursor = d.cursor === null ? -1 : d.scale.x(d.cursor);
  const left = cursor > d.scale.left - 8 && cursor < d.scale.left + wide + 18 ? d.scale.right - wide - 14 : d.scale.left;
  ctx.fillStyle = tokens.surface;
  ctx.globalAlpha = 0.85;
  ctx.fillRect(left + 4, at - 16, wide + 6, 14);
  ctx.globalAlpha = 1;
  ctx.fillStyle = tokens["text-2"];
  ctx.fillText(text, left + 7, at - 5);
}

function mark(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData, point: MarkPoint): void {
  const x = Math.round(d.scale.x(point.t));
  if (x < d.scale.left || x > d.scale.right) return;
  const oom = point.kind === "oom";
  ctx.fillStyle = oom ? tokens["signal-ink"] : tokens.edge;
  ctx.fillRect(x, lane.y, oom ? 2 : 1, lane.height);
  ctx.font = "500 11px Inter, system-ui, sans-serif";
  ctx.textBaseline = "alphabetic";
  const name = shown(point.name, 40), wide = ctx.measureText(name).width;
  // What ends a run lies at its right end: the name is then on the other side.
  const left = x + 5 + wide <= d.scale.right ? x + 5 : Math.max(d.scale.left, x - 5 - wide);
  ctx.textAlign = "left";
  ctx.fillStyle = tokens.surface;
  ctx.globalAlpha = 0.85;
  ctx.fillRect(left - 2, lane.y + 3, wide + 4, 14);
  ctx.globalAlpha = 1;
  ctx.fillStyle = oom ? tokens.signal : tokens["text-2"];
  ctx.fillText(name, left, lane.y + 14);
}

const floorOf = (lane: Lane) => lane.y + lane.height - 3;

/** Of tracks, by their ids. */
export const TITLES: Record<string, string> = { device: "Device used", pool: "Pool", events: "Events", host: "Host memory" };

function track(ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData): void {
  const id = lane.id;
  const parts = d.tracks.map((list) => list.find((t) => t.id === id)).filter((t) => t !== undefined);
  const known = parts[0];
  gutter(ctx, tokens, lane, TITLES[id] ?? id, known?.source ?? "");
  const x0 = d.scale.left;
  const x1 = d.scale.right;
  const floor = floorOf(lane);
  if (known?.missing) {
    ctx.fillStyle = hatch(ctx, tokens["line-2"]);
    ctx.fillRect(x0, lane.y + 6, x1 - x0, lane.height - 12);
    ctx.strokeStyle = tokens["line-2"];
    ctx.strokeRect(x0 + 0.5, lane.y + 6.5, x1 - x0 - 1, lane.height - 12);
    plaque(ctx, tokens, known.missing, (x0 + x1) / 2, lane.y + lane.height / 2);
    return;
  }
  if (!known) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(x0, lane.y, x1 - x0, lane.height);
  ctx.clip();
  const top = Math.max(1, known.top) * 1.1;
  const y = (v: number) => floor - (v / top) * (lane.height - 10);
  const draw = known.kind === "samples" ? samples : known.kind === "density" ? density : area;
  for (const part of parts) draw(ctx, tokens, lane, d, part, y, top);
  ctx.restore();
  if (known.text) {
    ctx.font = "11px Inter, system-ui, sans-serif";
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    const wide = ctx.measureText(known.text).width;
    ctx.fillStyle = tokens.surface;
    ctx.globalAlpha = 0.8;
    ctx.fillRect(x0 + 4, lane.y + 4, wide + 8, 14);
    ctx.globalAlpha = 1;
    ctx.fillStyle = tokens["text-2"];
    ctx.fillText(known.text, x0 + 7, lane.y + 15);
  }
}

type DrawTrack = (ctx: CanvasRenderingContext2D, tokens: Tokens, lane: Lane, d: LanesData, part: Track, y: (value: number) => number, top: number) => void;

const samples: DrawTrack = (ctx, tokens, _lane, d, part, y) => {
  const n = part.value.length;
  ctx.setLineDash([3, 3]);
  ctx.strokeStyle = tokens["text-2"];
  ctx.beginPath();
  for (let i = 0; i < n; i++) ctx.lineTo(d.scale.x(part.t[i]!), y(part.value[i]!));
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = tokens.edge;
  let last = -9;
  for (let i = 0; i < n; i++) {
    const x = d.scale.x(part.t[i]!);
    if (x - last < 5) continue;
    last = x;
    ctx.beginPath();
    ctx.arc(x, y(part.value[i]!), 2.4, 0, 7);
    ctx.fill();
  }
};

const density: DrawTrack = (ctx, tokens, lane, d, part, _y, top) => {
  const middle = lane.y + lane.height / 2;
  ctx.fillStyle = tokens.n1;
  ctx.fillRect(d.scale.left, middle, d.scale.right - d.scale.left, 1);
  ctx.fillStyle = tokens.edge;
  const half = (lane.height - 8) / 2;
  for (let i = 0; i < part.value.length; i++) {
    const h = Math.max(1, Math.sqrt(part.value[i]! / top) * half);
    const h2 = Math.max(1, Math.sqrt((part.value2[i] ?? part.value[i]!) / top) * half);
    const x = Math.round(d.scale.x(part.t[i]!));
    if (part.value[i]! > 0) ctx.fillRect(x, middle - h, 1, h);
    if ((part.value2[i] ?? 0) > 0) ctx.fillRect(x, middle, 1, h2);
  }
};

const area: DrawTrack = (ctx, tokens, lane, d, part, y) => {
  const n = part.value.length, x0 = d.scale.left, x1 = d.scale.right, floor = floorOf(lane);
  const pixel = 1 / (ctx.getTransform().a || 1);
  const edges = part.t.length > n ? part.t : [...part.t, d.scale.t(x1)];
  const columns = (height: ArrayLike<number>) => onPixels([{ t0: -Infinity, t1: Infinity, t: edges, height }], (t) => d.scale.x(t), { x0, x1 }, pixel);
  const areaOf = (values: ArrayLike<number>, fill: string) => {
    ctx.fillStyle = fill;
    runs(columns(values), x0, pixel, (_, i) => y(values[i]!), (x, top, width) => ctx.fillRect(x, top, width, floor - top));
  };
  areaOf(part.value, tokens.n3);
  if (part.value2.length === n) areaOf(part.value2, tokens.n1);
  ctx.fillStyle = tokens.edge;
  runs(columns(part.value), x0, pixel, (_, i) => y(part.value[i]!), (x, top, width) => ctx.fillRect(x, top, width, 1));
};

function lossGap(ctx: CanvasRenderingContext2D, tokens: Tokens, d: LanesData, loss: Loss): void {
  const lane = d.lanes.find((l) => l.id === "live");
  const a = Math.max(d.scale.left, d.scale.x(loss.t0));
  const b = Math.min(d.scale.right, Math.max(d.scale.x(loss.t1), d.scale.x(loss.t0) + 6));
  if (!lane || b <= d.scale.left || a >= d.scale.right) return;
  ctx.fillStyle = tokens.surface;
  ctx.fillRect(a, lane.y, b - a, lane.height);
  ctx.fillStyle = hatch(ctx, tokens["line-2"]);
  ctx.fillRect(a, lane.y, b - a, lane.height);
  ctx.setLineDash([3, 3]);
  ctx.strokeStyle = tokens["signal-ink"];
  ctx.strokeRect(a + 0.5, lane.y + 0.5, b - a, lane.height - 1);
  ctx.setLineDash([]);
  ctx.font = "600 11.5px Inter, system-ui, sans-serif";
  ctx.fillStyle = tokens.text;
  ctx.textAlign = a - d.scale.left > 160 ? "right" : "left";
  const x = ctx.textAlign === "right" ? a - 6 : b + 6;
  ctx.fillText(`${loss.count.toLocaleString("en-US")} events lost in ${duration(loss.t1 - loss.t0)}`, x, lane.y + 30);
  ctx.font = "11px Inter, system-ui, sans-serif";
  ctx.fillStyle = tokens["text-2"];
  ctx.fillText(loss.cause, x, lane.y + 45);
}

function over(ctx: CanvasRenderingContext2D, tokens: Tokens, d: LanesData, height: number, right: number): void {
  if (d.brush) {
    const a = Math.max(d.scale.left, d.scale.x(d.brush[0]));
    const b = Math.min(right, d.scale.x(d.brush[1]));
    ctx.fillStyle = tokens.accent;
    ctx.globalAlpha = 0.14;
    ctx.fillRect(a, 0, b - a, height);
    ctx.globalAlpha = 1;
    ctx.fillRect(a, 0, 1, height);
    ctx.fillRect(b - 1, 0, 1, height);
  }
  if (d.hover !== null) {
    ctx.fillStyle = tokens["text-2"];
    ctx.fillRect(Math.round(d.scale.x(d.hover)), 24, 1, height - 24);
  }
  if (d.cursor === null) return;
  const x = Math.round(d.scale.x(d.cursor));
  if (x < d.scale.left || x > right) return;
  ctx.fillStyle = tokens.accent;
  ctx.fillRect(x, 20, 1.5, height - 20);
  ctx.font = "600 11px Inter, system-ui, sans-serif";
  const text = (d.cursor / 1e6).toFixed(6);
  const wide = ctx.measureText(text).width + 12;
  const left = Math.min(right - wide, Math.max(d.scale.left, x - wide / 2));
  ctx.beginPath();
  ctx.roundRect(left, 2, wide, 18, 4);
  ctx.fill();
  ctx.fillStyle = tokens.surface;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  ctx.fillText(text, left + 6, 11.5);
}

function plaque(ctx: CanvasRenderingContext2D, tokens: Tokens, text: string, x: number, y: number): void {
  ctx.font = "11.5px Inter, system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  const wide = ctx.measureText(text).width + 16;
  ctx.fillStyle = tokens.surface;
  ctx.fillRect(x - wide / 2, y - 8, wide, 16);
  ctx.fillStyle = tokens.text;
  ctx.fillText(text, x, y + 0.5);
}
