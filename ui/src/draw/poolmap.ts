// The address map: every line has the same number of bytes, a region starts a new line, area is always proportional to bytes; holes
// are hatched.
import type { PoolMap } from "../gen/rpc";
import { inUnit, type Unit } from "../format/numbers";
import { hex, shown } from "../format/names";
import { fitName } from "./fit";
import { hatch, inkOn, type Tokens } from "./tokens";

export const LEFT = 156;
const LINE = 15;
const GAP = 1;
const REGION_GAP = 7;

export interface Placed {
  first: number; // y of the region's first line
  lines: number;
}

/** Where each region lies; the last entry is the whole height. */
export function placeRegions(map: PoolMap): { regions: Placed[]; height: number } {
  let y = 4;
  const regions = map.regions.map((region) => {
    const lines = Math.max(1, Math.ceil(region.bytes / map.line_bytes));
    const notes = (region.note ? 2 : 0) + (lines > 1 || region.note ? 1 : 0);
    const placed = { first: y, lines };
    y += Math.max(lines * (LINE + GAP), (1 + (lines > 1 ? notes : 0)) * LINE) + REGION_GAP;
    return placed;
  });
  return { regions, height: y };
}

/** The rectangles of [offset, offset + bytes) of a region: one for each line it touches. */
export function spans(map: PoolMap, placed: Placed, offset: number, bytes: number, width: number): { x: number; y: number; w: number }[] {
  const out: { x: number; y: number; w: number }[] = [];
  const perByte = (width - LEFT) / map.line_bytes;
  let at = offset;
  const end = offset + bytes;
  while (at < end) {
    const line = Math.floor(at / map.line_bytes);
    const stop = Math.min(end, (line + 1) * map.line_bytes);
    out.push({ x: LEFT + (at - line * map.line_bytes) * perByte, y: placed.first + line * (LINE + GAP), w: (stop - at) * perByte });
    at = stop;
  }
  return out;
}

/** Layers and ops by their bytes, the largest first: as many as have a shade of their own. */
export function rankedLabels(map: PoolMap, most = 11): { label: number; bytes: number }[] {
  const bytes = new Map<number, number>();
  for (let i = 0; i < map.id.length; i++) bytes.set(map.label[i]!, (bytes.get(map.label[i]!) ?? 0) + map.bytes[i]!);
  return [...bytes].sort((a, b) => b[1] - a[1]).slice(0, most).map(([label, sum]) => ({ label, bytes: sum }));
}

/** Ages on a log scale, from 0, new, to 1, the oldest: most blocks are young, and a linear scale would give all of them one shade. */
export function ageScale(map: PoolMap): { oldest: number; share: (age: number) => number } {
  const oldest = Math.max(1, map.t * map.age.reduce((a, b) => Math.max(a, b), 0));
  return { oldest, share: (age) => Math.log1p(age * map.t) / Math.log1p(oldest) };
}

export function drawPoolMap(ctx: CanvasRenderingContext2D, width: number, tokens: Tokens, map: PoolMap, unit: Unit, colour: string, selected: number): void {
  const { regions } = placeRegions(map);
  const shades = new Map(rankedLabels(map).map(({ label }, rank) => [label, tokens.rank(rank, 12)]));
  const ages = ageScale(map);
  map.regions.forEach((region, r) => {
    const placed = regions[r]!;
    for (const span of spans(map, placed, 0, region.bytes, width)) {
      ctx.fillStyle = tokens.n3;
      ctx.fillRect(span.x, span.y, span.w, LINE);
      ctx.fillStyle = hatch(ctx, tokens["line-2"], 5);
      ctx.fillRect(span.x, span.y, span.w, LINE);
    }
    gutter(ctx, tokens, map, r, placed, unit);
  });
  let lastPixel = -1;
  let lastY = -1;
  for (let i = 0; i < map.id.length; i++) {
    const placed = regions[map.region[i]!];
    if (!placed) continue;
    const parts = spans(map, placed, map.offset[i]!, map.bytes[i]!, width);
    const category = map.categories[map.category[i]!] ?? "unknown";
    const fill = colour === "age" ? tokens.age(ages.share(map.age[i]!)) : colour === "layer" ? (shades.get(map.label[i]!) ?? tokens.n1) : tokens.fill(category);
    const faded = map.faded[i] === 1;
    for (const [p, span] of parts.entries()) {
      if (span.w < 1 && Math.floor(span.x) === lastPixel && span.y === lastY) continue; // thousands of small blocks in one pixel
      lastPixel = Math.floor(span.x);
      lastY = span.y;
      ctx.fillStyle = faded ? tokens.n2 : fill;
      ctx.fillRect(span.x, span.y, Math.max(0.75, span.w), LINE);
      if (!faded && colour === "category" && category === "unknown") {
        ctx.fillStyle = hatch(ctx, tokens.hatch_of_unknown, 4);
        ctx.fillRect(span.x, span.y, span.w, LINE);
      }
      if (span.w > 3 && p === 0) {
        ctx.fillStyle = colour === "category" && !faded ? tokens.line_of(category) : tokens.edge;
        ctx.fillRect(span.x, span.y, 1.5, LINE);
      }
    }
    const first = parts[0];
    if (first && first.w > 60) label(ctx, map, i, first, faded ? tokens.n2 : fill, unit);
    if (i === selected) {
      ctx.strokeStyle = tokens.text;
      ctx.lineWidth = 1.5;
      for (const span of parts) ctx.strokeRect(span.x + 0.5, span.y - 0.5, Math.max(2, span.w - 1), LINE + 1);
    }
  }
  holes(ctx, tokens, map, regions, unit, width);
  map.regions.forEach((region, r) => {
    if (!region.signal) return;
    const placed = regions[r]!;
    ctx.strokeStyle = tokens["signal-ink"];
    ctx.lineWidth = 1.5;
    const wide = Math.min(1, region.bytes / map.line_bytes) * (width - LEFT);
    ctx.strokeRect(LEFT - 2, placed.first - 2, wide + 3, Math.ceil(region.live / map.line_bytes || placed.lines) * (LINE + GAP) + 2);
  });
}

function label(ctx: CanvasRenderingContext2D, map: PoolMap, i: number, span: { x: number; y: number; w: number }, fill: string, unit: Unit): void {
  ctx.fillStyle = inkOn(fill);
  ctx.textBaseline = "alphabetic";
  ctx.font = "600 11px Inter, system-ui, sans-serif";
  const figure = inUnit(map.bytes[i]!, unit);
  const figureWidth = ctx.measureText(figure).width;
  let room = span.w - 14;
  if (span.w > figureWidth + 40) {
    ctx.textAlign = "right";
    ctx.fillText(figure, span.x + span.w - 6, span.y + 11.5);
    room -= figureWidth + 8;
  }
  ctx.textAlign = "left";
  ctx.font = "11px Inter, system-ui, sans-serif";
  const name = shown(map.labels[map.label[i]!] ?? "", 120);
  ctx.fillText(fitName(ctx, name, room, name.includes(" ") ? [name.slice(0, name.indexOf(" "))] : []), span.x + 7, span.y + 11.5); // else the layer alone
}

/** Sizes of the large holes, written where they begin. */
function holes(ctx: CanvasRenderingContext2D, tokens: Tokens, map: PoolMap, regions: Placed[], unit: Unit, width: number): void {
  ctx.font = "11px Inter, system-ui, sans-serif";
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  const write = (region: number, from: number, to: number) => {
    const span = spans(map, regions[region]!, from, Math.max(1, to - from), width)[0];
    if (!span) return;
    const text = `hole ${inUnit(to - from, unit)}`;
    const wide = ctx.measureText(text).width + 10;
    if (span.w < wide + 8) return;
    ctx.fillStyle = tokens.surface;
    ctx.fillRect(span.x + 5, span.y + 0.5, wide, LINE - 1);
    ctx.fillStyle = tokens["text-2"];
    ctx.fillText(text, span.x + 10, span.y + 11.5);
  };
  // Blocks are ordered by region and address: the range between two of them is a hole.
  const free = map.regions.map(() => 0);
  for (let i = 0; i < map.id.length; i++) {
    const r = map.region[i]!;
    const start = free[r] ?? 0;
    if (map.offset[i]! - start > map.line_bytes / 40) write(r, start, map.offset[i]!);
    free[r] = Math.max(start, map.offset[i]! + map.bytes[i]!);
  }
  map.regions.forEach((region, r) => { if (region.bytes - free[r]! > map.line_bytes / 40) write(r, free[r]!, region.bytes); });
}

function gutter(ctx: CanvasRenderingContext2D, tokens: Tokens, map: PoolMap, r: number, placed: Placed, unit: Unit): void {
  const region = map.regions[r]!;
  const y = placed.first + 11.5;
  ctx.textBaseline = "alphabetic";
  ctx.textAlign = "left";
  ctx.fillStyle = tokens.text;
  ctx.font = "600 11.5px Inter, system-ui, sans-serif";
  ctx.fillText(String(region.number), 0, y);
  ctx.font = "11.5px Inter, system-ui, sans-serif";
  ctx.textAlign = "right";
  ctx.fillText(inUnit(region.bytes, unit), 86, y);
  ctx.fillStyle = region.live > 0 ? tokens.text : tokens["text-3"];
  ctx.fillText(inUnit(region.live, unit), 140, y);
  if (placed.lines < 2) return;
  ctx.textAlign = "left";
  ctx.fillStyle = tokens["text-3"];
  ctx.font = "10.5px JetBrains Mono, ui-monospace, monospace";
  ctx.fillText(hex(region.address), 0, y + LINE);
  if (!region.note || placed.lines < 3) return;
  ctx.font = "11px Inter, system-ui, sans-serif";
  ctx.fillStyle = region.signal ? tokens.signal : tokens["text-3"];
  const words = region.note.split(" ");
  let line = "";
  let row = 2;
  for (const word of words) {
    if (ctx.measureText(`${line} ${word}`).width > 140) { ctx.fillText(line, 0, y + row++ * LINE); line = word; }
    else line = line ? `${line} ${word}` : word;
  }
  ctx.fillText(line, 0, y + row * LINE);
}

/** The block under a point, or -1. */
export function blockAt(map: PoolMap, width: number, x: number, y: number): number {
  const { regions } = placeRegions(map);
  const r = regions.findIndex((p) => y >= p.first && y < p.first + p.lines * (LINE + GAP));
  if (r < 0 || x < LEFT) return -1;
  const line = Math.floor((y - regions[r]!.first) / (LINE + GAP));
  const offset = line * map.line_bytes + ((x - LEFT) / (width - LEFT)) * map.line_bytes;
  const slackBytes = (4 * map.line_bytes) / (width - LEFT); // within a few pixels of a thin block
  let best = -1;
  let nearest = Infinity;
  for (let i = 0; i < map.id.length; i++) {
    if (map.region[i] !== r) continue;
    const distance = Math.max(map.offset[i]! - offset, offset - map.offset[i]! - map.bytes[i]!, 0);
    if (distance < nearest) { nearest = distance; best = i; }
  }
  return nearest <= slackBytes ? best : -1;
}
