// One tile of the timeline's stack out of the blocks in a report: what src/analyze/query/stacked.cpp computes for a server.
import type { Stack } from "../gen/rpc";
import type { RunBlocks } from "./live";

const COLUMNS = 1024;
const OTHER = "other";

/** `names`: the bands from bottom to top. What is in none of them is in "other". */
export function stackOf(run: RunBlocks, by: string, names: string[], filter: string, t0: number, t1: number): Stack {
  const band = bandsOf(run, by, names);
  const matches = run.matches(filter);
  const events = eventsOf(run);
  const now = new Float64Array(names.length);
  let total = 0, top = 0;
  const width = Math.max(1, Math.min(COLUMNS, t1 - t0 + 1));
  const t = Float64Array.from({ length: width + 1 }, (_, c) => t0 + Math.floor(((t1 - t0) * c) / width));
  const out = { moment: new Float64Array(width), peak_t: new Float64Array(width), low: new Float64Array(width), bytes: new Float64Array(width * names.length), density: new Float64Array(width) };
  let moment = 0, counted = 0;
  const apply = () => {
    const event = events[moment++] ?? 0;
    const block = Math.abs(event) - 1;
    if (event === 0 || !matches[block]) return;
    const bytes = Math.sign(event) * run.bytes(block);
    now[band[block]!]! += bytes;
    total += bytes;
    if (total > top) top = total;
  };
  for (let c = 0; c < width; c++) {
    // Up to the column's start; the last one contains the end of the tile.
    const from = t[c] === 0 ? 0 : run.momentAt(t[c]! - 1), to = c + 1 < width ? run.momentAt(t[c + 1]! - 1) : run.momentAt(t[width]!);
    while (moment < from) apply();
    let high = -1, low = Infinity;
    for (;;) {
      if (total > high) {
        high = total;
        out.moment[c] = moment;
        for (let g = 0; g < names.length; g++) out.bytes[g * width + c] = now[g]!;
      }
      low = Math.min(low, total);
      if (moment >= to) break;
      apply();
    }
    out.low[c] = low;
    out.peak_t[c] = run.all.t[out.moment[c]!] ?? 0;
    out.density[c] = Math.max(0, to - from);
    counted += out.density[c]!;
  }
  while (moment < events.length) apply(); // panning never rescales: the scale is that of the whole run
  const most = (g: number) => out.bytes.subarray(g * width, (g + 1) * width).reduce((a, b) => Math.max(a, b), 0);
  return { t0, t1, exact: true, missing: false, events: counted, top, t, ...out, groups: names.map((name, g) => ({ name, category: by === "category" ? name : "", max: most(g), rest: name === OTHER })) };
}

function bandsOf(run: RunBlocks, by: string, names: string[]): Uint16Array {
  const index = new Map(names.map((name, i) => [name, i]));
  const rest = index.get(OTHER) ?? names.length - 1;
  return Uint16Array.from({ length: run.all.kind.length }, (_, i) => index.get(run.text(i, by)) ?? rest);
}

const known = new WeakMap<RunBlocks, Int32Array>();
/** For each event the block's number plus one, negative for a free; 0: of another place. */
export function eventsOf(run: RunBlocks): Int32Array {
  let out = known.get(run);
  if (out) return out;
  out = new Int32Array(Math.max(0, run.all.t.length - 1));
  for (let i = 0; i < run.all.birth.length; i++) {
    const birth = run.all.birth[i]!, lives = run.all.lives[i]!;
    out[birth - 1] = i + 1;
    if (lives > 0) out[birth + lives - 1] = -(i + 1);
  }
  known.set(run, out);
  return out;
}
