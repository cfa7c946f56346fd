// Source, pool map, failed requests, ranges and jumps under a filter or at an instant that the report's writer was not asked for.
import { seconds, size, counted } from "../format/numbers";
import type { Block, BlockRow, Ooms, Place, PoolMap, Range, Source, SourceLine, Steps } from "../gen/rpc";
import { AT_THIS_INSTANT, lineHoldsMost, NO_LINE, NO_LIVE_BLOCK, oneStep, PEAK, severalSteps, sourceCaption, STEADY_PEAK } from "../gen/texts";
import { LIVE_ROWS, RANGE_ROWS } from "../gen/views";
import { byBytes, groups, ROW_KEYS, rowOf, sum, type When } from "./answers";
import type { RunBlocks } from "./live";
import { spansOf } from "./steps";

/** `texts`: answers about the same run that hold the text of files. */
export function sourceOf(run: RunBlocks, texts: Source[], when: When, at: string, file: string, filter: string): Source {
  const live = run.liveAt(when.moment, filter);
  const files = new Map<string, Map<number, SourceLine & { most: number }>>();
  for (const group of groups(run, live, ["line", "category"]).values()) {
    const [, path, number] = /^(.*):(\d+)$/.exec(run.text(group[0]!, "line")) ?? [];
    if (!path || !number) continue;
    const lines = files.get(path) ?? new Map<number, SourceLine & { most: number }>();
    files.set(path, lines);
    const line = lines.get(Number(number)) ?? { line: Number(number), bytes: 0, blocks: 0, category: "", most: -1 };
    lines.set(line.line, line);
    const bytes = sum(run, group);
    line.bytes += bytes;
    line.blocks += group.length;
    if (bytes > line.most) { line.most = bytes; line.category = run.text(group[0]!, "category"); }
  }
  const list = [...files].map(([path, lines]) => ({ path, bytes: [...lines.values()].reduce((total, line) => total + line.bytes, 0) })).sort((a, b) => b.bytes - a.bytes);
  const known = list.reduce((total, each) => total + each.bytes, 0);
  const wanted = file || list[0]?.path || "";
  const path = list.find((each) => each.path === wanted || each.path.endsWith(`/${wanted}`))?.path;
  const written = texts.find((each) => each.file && (each.file.path === (path ?? wanted) || each.file.path.endsWith(`/${wanted}`)))?.file;
  const lines = path ? [...files.get(path)!.values()].sort((a, b) => a.line - b.line).map(({ line, bytes, blocks, category }) => ({ line, bytes, blocks, category })) : [];
  const most = [...files].flatMap(([name, each]) => [...each.values()].map((line) => ({ name, line }))).reduce<{ name: string; line: SourceLine } | null>((a, b) => (b.line.bytes > (a?.line.bytes ?? 0) ? b : a), null);
  const when_ = at === STEADY_PEAK.name ? STEADY_PEAK.words : at === PEAK.name ? PEAK.words : AT_THIS_INSTANT;
  return { sentence: most ? lineHoldsMost(`${most.name}:${most.line.line}`, size(most.line.bytes), size(sum(run, live)), when_) : NO_LINE,
    note: sourceCaption(seconds(when.t), counted(list.length, "file"), size(known)), t: when.t, files: list,
    file: wanted ? { path: path ?? written?.path ?? wanted, status: written ? (path ? written.status : NO_LIVE_BLOCK) : "The report does not contain the text of this file.", remedy: written?.remedy ?? "", text: written?.text ?? [], lines } : null };
}

/** Null: blocks that are drawn as one cannot be told apart here. */
export function mapOf(run: RunBlocks, written: PoolMap, filter: string): PoolMap | null {
  if (written.count.some((count) => count > 1)) return null;
  const matches = run.matches(filter);
  const place = new Map<number, number>([...run.all.id].map((id, i) => [id, i]));
  if (![...written.id].every((id) => place.has(id))) return null;
  return { ...written, faded: Float64Array.from(written.id, (id) => (matches[place.get(id)!] ? 0 : 1)) };
}

/** Null: the request failed on another device than the one whose blocks are in the report. */
export function oomsOf(run: RunBlocks, written: Ooms, moments: (When | null)[], filter: string): Ooms | null {
  const ooms = written.ooms.map((oom, i) => {
    const when = moments[i];
    if (!when || sum(run, run.liveAt(when.moment, "")) !== oom.live) return null;
    const live = run.liveAt(when.moment, filter);
    const rows = [...groups(run, live, ROW_KEYS).values()].sort(byBytes(run));
    const total = sum(run, live);
    return { ...oom, matching: total, rows: rows.slice(0, LIVE_ROWS).map((row) => rowOf(run, row, oom.t, total)), more_rows: Math.max(0, rows.length - LIVE_ROWS), more_bytes: sum(run, rows.slice(LIVE_ROWS).flat()) };
  });
  return ooms.every((oom) => oom !== null) ? { ...written, ooms } : null;
}

export function rangeOf(run: RunBlocks, steps: Steps | null, t0: number, t1: number, filter: string): Range {
  const first = t0 > 0 ? run.momentAt(t0 - 1) : 0, last = run.momentAt(t1);
  const matches = run.matches(filter);
  const born: number[] = [];
  for (let i = 0; i < run.all.birth.length; i++) if (matches[i] && run.all.birth[i]! > first && run.all.birth[i]! <= last) born.push(i);
  const allocated = sum(run, born), change = sum(run, run.liveAt(last, filter)) - sum(run, run.liveAt(first, filter));
  const byOp = (blocks: number[]) => new Map([...groups(run, blocks, ["op"]).values()].map((group) => [run.text(group[0]!, "op"), group]));
  const [before, after] = [byOp(run.liveAt(first, filter)), byOp(run.liveAt(last, filter))];
  const made = [...byOp(born).values()].sort(byBytes(run)).slice(0, RANGE_ROWS);
  const stayed = [...after].map(([op, group]) => ({ group, bytes: sum(run, group) - sum(run, before.get(op) ?? []) })).filter((each) => each.bytes > 0).sort((a, b) => b.bytes - a.bytes).slice(0, RANGE_ROWS);
  const at = (t: number) => (steps ? steps.t0.findLastIndex((begin, i) => begin <= t && t <= steps.t1[i]!) : -1);
  const [a, b] = [at(t0), at(t1)];
  const row = (group: number[], bytes: number): BlockRow => ({ ...rowOf(run, group, t1, allocated), bytes });
  return { t0, t1, label: a < 0 || b < 0 ? "" : a === b ? oneStep(`${steps!.number[a]}`) : severalSteps(`${steps!.number[a]}`, `${steps!.number[b]}`), allocated, freed: allocated - change, change, events: last - first,
    born: made.map((group) => row(group, sum(run, group))), stayed: stayed.map(({ group, bytes }) => row(group, bytes)) };
}

function beginsOf(run: RunBlocks, steps: Steps | null): number[] {
  if (!steps) return [];
  return spansOf(run, steps)?.map(([from]) => from) ?? [...steps.t0].map((t) => (t > 0 ? run.momentAt(t - 1) : 0));
}

/** The neighbor in the direction of `go`: an event, the start of a step, or a peak. */
export function placeOf(run: RunBlocks, steps: Steps | null, peak: number | null, moment: number, go: string, link: (moment: number) => string): Place {
  const last = run.all.t.length - 1;
  const stops = go.endsWith("-event") ? [] : go.endsWith("-step") ? beginsOf(run, steps) : [...(steps?.peak_moment ?? []), ...(peak === null ? [] : [peak])];
  stops.sort((a, b) => a - b);
  const forward = go.startsWith("next-");
  const found = go.endsWith("-event") ? moment + (forward ? 1 : -1) : forward ? stops.find((stop) => stop > moment) : stops.findLast((stop) => stop < moment);
  if (found === undefined || found < 0 || found > last) return { moment: null, link: "", t: 0, t0: 0, t1: 0 };
  return { moment: found, link: link(found), t: run.all.t[found]!, t0: 0, t1: 0 };
}

/** Without its address and its stack, which a report has only for the largest blocks. */
export function blockOf(run: RunBlocks, id: number): Block | null {
  const i = run.all.id.indexOf(id);
  if (i < 0) return null;
  const text = (field: string) => run.text(i, field);
  const dies = run.all.lives[i]! > 0 ? (run.all.t[run.all.birth[i]! + run.all.lives[i]!] ?? null) : null;
  const step = Number(/\d+/.exec(text("step"))?.[0] ?? NaN);
  return { id, op: text("op") || text("name"), layer: text("layer"), line: text("line"), category: text("category"), known: text("known"), shape: text("shape"), dtype: text("dtype"),
    requested: run.all.requested[run.all.kind[i]!]!, granted: run.bytes(i), born: run.all.born[i]!, died: dies, lives_us: dies === null ? null : dies - run.all.born[i]!, born_step: step > 0 ? step : null, address: 0, pool: text("pool"), stack: [] };
}
