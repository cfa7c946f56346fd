// Steps and layers under a filter, out of the blocks in a report. What a step or a layer's own peak is was decided when the report was
// written; here it is only trusted where the same walk without a filter gives the written figures.
import { counted, seconds, size } from "../format/numbers";
import type { Absence, Layers, LayerRow, Steps } from "../gen/rpc";
import { CHANGE_THE_FILTER, IN_THE_TRACE, LAYER_PARTS, layerHoldsMost, layersCaption, noBlockMatches, noLayerKnown, NO_LAYER_MATCHES, NO_MATCH, STEADY_PEAK, THEN, WHY_NO_LAYERS } from "../gen/texts";
import type { When } from "./answers";
import type { RunBlocks } from "./live";
import { eventsOf } from "./stack";

type Span = [from: number, to: number]; // moments

interface Curve { live: Float64Array; allocated: Float64Array; count: Float64Array }

/** After each moment: what is live, and what has been allocated so far. */
function curveOf(run: RunBlocks, filter: string): Curve {
  const events = eventsOf(run), matches = run.matches(filter), n = events.length + 1;
  const out = { live: new Float64Array(n), allocated: new Float64Array(n), count: new Float64Array(n) };
  for (let m = 1; m < n; m++) {
    const event = events[m - 1]!, block = Math.abs(event) - 1;
    const bytes = event !== 0 && matches[block] ? run.bytes(block) : 0;
    out.live[m] = out.live[m - 1]! + Math.sign(event) * bytes;
    out.allocated[m] = out.allocated[m - 1]! + (event > 0 ? bytes : 0);
    out.count[m] = out.count[m - 1]! + (event > 0 && matches[block] ? 1 : 0);
  }
  return out;
}

function highest(live: Float64Array, [from, to]: Span): number {
  let at = from;
  for (let m = from + 1; m <= to; m++) if (live[m]! > live[at]!) at = m;
  return at;
}

const spans = new WeakMap<RunBlocks, Span[] | null>();
/** From and to which moment each step reaches. Events within one microsecond lie on either side of a mark: the written figures tell. */
export function spansOf(run: RunBlocks, steps: Steps): Span[] | null {
  if (spans.has(run)) return spans.get(run)!;
  const all = curveOf(run, "");
  const fits = (span: Span, i: number) => all.live[highest(all.live, span)] === steps.peak[i] && all.live[span[1]] === steps.left[i] &&
    all.allocated[span[1]]! - all.allocated[span[0]]! === steps.allocated[i] && all.count[span[1]]! - all.count[span[0]]! === steps.count[i];
  const found: Span[] = [];
  for (let i = 0; i < steps.number.length; i++) {
    const begins = around(run, steps.t0[i]!).reverse(), ends = around(run, steps.t1[i]!);
    const span = begins.flatMap((from) => ends.map((to): Span => [from, to])).find((each) => fits(each, i));
    if (!span) break;
    found.push(span);
  }
  const out = found.length === steps.number.length ? found : null;
  spans.set(run, out);
  return out;
}

function around(run: RunBlocks, t: number): number[] {
  const first = t > 0 ? run.momentAt(t - 1) : 0, last = run.momentAt(t);
  return Array.from({ length: Math.min(64, last - first + 1) }, (_, i) => last - i);
}

function nothingMatches(filter: string): Absence {
  const message = noBlockMatches(IN_THE_TRACE, filter);
  return { title: NO_MATCH.slice(0, -1), message: `${message[0]!.toUpperCase()}${message.slice(1)}.`, remedy: CHANGE_THE_FILTER };
}

export function stepsOf(run: RunBlocks, written: Steps, filter: string): Steps | null {
  const spanOf = spansOf(run, written);
  if (!spanOf) return null;
  const { live, allocated, count } = curveOf(run, filter);
  if (count.at(-1) === 0) return { ...written, sentence: NO_MATCH, note: "", empty: nothingMatches(filter) };
  const peakAt = spanOf.map((span) => highest(live, span));
  const of = (value: (span: Span, i: number) => number) => Float64Array.from(spanOf, value);
  const peak = of((_, i) => live[peakAt[i]!]!);
  return { ...written, sentence: sentenceOf(written, peak), note: `Only what matches the filter, without passes and remarks. ${written.note}`.trim(), peak, peak_moment: Float64Array.from(peakAt), left: of(([, to]) => live[to]!),
    allocated: of(([from, to]) => allocated[to]! - allocated[from]!), count: of(([from, to]) => count[to]! - count[from]!),
    phases: [], phase_peak: new Float64Array(), outliers: [], stack: stackAt(run, written.categories, filter, peakAt) };
}

function sentenceOf(steps: Steps, peak: Float64Array): string {
  const steady = [...steps.number].flatMap((n, i) => (steps.steady_first !== null && steps.steady_last !== null && n >= steps.steady_first && n <= steps.steady_last ? [i] : []));
  const of = steady.length ? steady : [...steps.number.keys()];
  const all = of.map((i) => peak[i]!), low = Math.min(...all), high = Math.max(...all);
  const which = of.length === 1 ? `Step ${steps.number[of[0]!]}` : `Steps ${steps.number[of[0]!]} to ${steps.number[of.at(-1)!]}`;
  const held = size(low) === size(high) ? size(high) : `${size(low)} to ${size(high)}`;
  return `${which} ${of.length === 1 ? "peaks" : "peak"} at ${held} of what matches the filter.`;
}

/** What matches at each of these moments, by category: one column for each. */
function stackAt(run: RunBlocks, categories: string[], filter: string, moments: number[]): Float64Array {
  const out = new Float64Array(categories.length * moments.length);
  const slot = new Map(categories.map((name, i) => [name, i]));
  const events = eventsOf(run), matches = run.matches(filter), now = new Float64Array(categories.length);
  const order = moments.map((moment, i) => ({ moment, i })).sort((a, b) => a.moment - b.moment);
  let m = 0;
  for (const { moment, i } of order) {
    for (; m < moment; m++) {
      const event = events[m]!, block = Math.abs(event) - 1;
      const at = event !== 0 && matches[block] ? slot.get(run.text(block, "category")) : undefined;
      if (at !== undefined) now[at]! += Math.sign(event) * run.bytes(block);
    }
    now.forEach((bytes, c) => { out[c * moments.length + i] = bytes; });
  }
  return out;
}

/** `written`: the layers at any instant, in the order of the model. */
export function layersOf(run: RunBlocks, written: Layers, steps: Steps | null, when: When, at: string, filter: string): Layers {
  const rows = new Map(written.rows.map((row): [string, LayerRow] => [row.name, { ...row, parameters: 0, gradients: 0, activation_gradients: 0, optimizer_state: 0, activations: 0, temporaries: 0, inputs: 0, other: 0, total: 0, own_peak: 0, own_peak_at: 0 }]));
  for (const block of run.liveAt(when.moment, filter)) {
    const row = rows.get(run.text(block, "layer"));
    if (!row) continue;
    row[LAYER_PARTS[run.text(block, "category")] ?? "other"] += run.bytes(block);
    row.total += run.bytes(block);
  }
  const same = ownPeaks(run, steps, ""), own = ownPeaks(run, steps, filter);
  const sure = written.rows.every((row) => row.own_peak === Math.max(same.get(row.name) ?? 0, row.total));
  for (const row of rows.values()) if (sure) row.own_peak = Math.max(own.get(row.name) ?? 0, row.total);
  const kept = [...rows.values()].filter((row) => row.total > 0 || (own.get(row.name) ?? 0) > 0);
  if (!run.matches(filter).includes(1)) return { sentence: NO_MATCH, note: "", empty: nothingMatches(filter), t: when.t, rows: [], own_peaks: [], filters: [] };
  const filters = new Map(written.rows.map((row, i) => [row.name, written.filters[i]]));
  const layers = kept.filter((row) => row.name && !row.name.startsWith("("));
  const most = layers.reduce<LayerRow | null>((a, b) => (b.total > (a?.total ?? 0) ? b : a), null);
  const total = size(kept.reduce((sum, row) => sum + row.total, 0));
  return { sentence: most ? layerHoldsMost(most.name, counted(layers.length, "layer"), size(most.total), total, at === "steady" ? STEADY_PEAK.words : THEN) : filter ? NO_LAYER_MATCHES : noLayerKnown(total, WHY_NO_LAYERS),
    note: layersCaption(seconds(when.t)), empty: null, t: when.t, rows: kept, own_peaks: [], filters: kept.map((row) => filters.get(row.name) ?? "") };
}

/** The most that each layer ever held by itself, in the steady steps or in the whole run. */
function ownPeaks(run: RunBlocks, steps: Steps | null, filter: string): Map<string, number> {
  const spanOf = steps && spansOf(run, steps);
  const index = (number: number | null) => (steps && number !== null ? steps.number.indexOf(number) : -1);
  const [first, last] = [index(steps?.steady_first ?? null), index(steps?.steady_last ?? null)];
  const [from, to] = spanOf && first >= 0 && last >= 0 ? [spanOf[first]![0], spanOf[last]![1]] : [0, eventsOf(run).length];
  const events = eventsOf(run), matches = run.matches(filter), now = new Map<string, number>(), out = new Map<string, number>();
  for (let m = 0; m < to; m++) {
    const event = events[m]!, block = Math.abs(event) - 1;
    if (event !== 0 && matches[block]) now.set(run.text(block, "layer"), (now.get(run.text(block, "layer")) ?? 0) + Math.sign(event) * run.bytes(block));
    if (m + 1 === from || (from === 0 && m === 0)) for (const [layer, bytes] of now) out.set(layer, bytes);
    else if (m + 1 > from && event > 0 && matches[block]) { const layer = run.text(block, "layer"); out.set(layer, Math.max(out.get(layer) ?? 0, now.get(layer)!)); }
  }
  return out;
}
