// Answers about a live set that the report's writer was not asked for: another filter, another order, another instant.
import { counted, size } from "../format/numbers";
import type { BlockRow, Event, Instant, Peak, Share, TreeNode } from "../gen/rpc";
import { MOST_CHILDREN, MOST_NODES, SIDE_ROWS, TABLE_ROWS } from "../gen/views";
import type { RunBlocks } from "./live";

export const ROW_KEYS = ["category", "layer", "op", "region", "shape", "dtype", "line", "known"];

/** Where and when: what an answer in the report says about the same instant, as far as there is one. */
export interface When { moment: number; t: number; note: string; atLeast: boolean; link: string; step: number | null; stepUs: number | null }

export function sum(run: RunBlocks, blocks: number[]): number {
  return blocks.reduce((total, block) => total + run.bytes(block), 0);
}

export function groups(run: RunBlocks, blocks: number[], fields: string[]): Map<string, number[]> {
  const out = new Map<string, number[]>();
  for (const block of blocks) {
    const key = JSON.stringify(fields.map((field) => run.text(block, field)));
    const group = out.get(key);
    if (group) group.push(block);
    else out.set(key, [block]);
  }
  return out;
}

export function rowOf(run: RunBlocks, blocks: number[], now: number, total: number): BlockRow {
  const first = blocks[0]!;
  const text = (field: string) => run.text(first, field);
  const bytes = sum(run, blocks);
  const oldest = Math.min(...blocks.map((block) => run.all.born[block]!));
  return { id: run.all.id[first]!, category: text("category"), layer: text("layer"), op: text("op"), region: text("region"), shape: text("shape"), dtype: text("dtype"), line: text("line"),
    known: text("known"), blocks: blocks.length, age_us: Math.max(0, now - oldest), t: oldest, bytes, share: total ? bytes / total : 0 };
}

export const byBytes = (run: RunBlocks) => (a: number[], b: number[]) => sum(run, b) - sum(run, a);

export function peakOf(run: RunBlocks, when: When, open: string, filter: string, categories: string[]): Peak {
  const live = run.liveAt(when.moment, filter);
  const total = sum(run, live);
  const rows = [...groups(run, live, ROW_KEYS).values()].sort(byBytes(run));
  const more = rows.slice(TABLE_ROWS).flat();
  const levels = [...new Set(open.split(",").filter(Boolean))].slice(0, 6);
  const what = filter ? `matches "${filter}"` : "is live";
  return { sentence: live.length ? `${size(total)} in ${counted(live.length, "block")} ${what} at this instant.` : `Nothing ${what} at this instant.`, note: when.note, moment: when.moment, t: when.t, total, at_least: when.atLeast,
    blocks: live.length, nodes: treeOf(run, live, levels, categories), rows: rows.slice(0, TABLE_ROWS).map((row) => rowOf(run, row, when.t, total)), more_rows: Math.max(0, rows.length - TABLE_ROWS), more_blocks: more.length, more_bytes: sum(run, more) };
}

/** As src/serve/tree.cpp: parents before children, the largest first, at most a tenth in "more". */
function treeOf(run: RunBlocks, live: number[], levels: string[], categories: string[]): TreeNode[] {
  const out: TreeNode[] = [];
  // Where the order has no categories, nothing in the picture stands for one.
  const mainCategory = (blocks: number[]) => { if (!levels.includes("category")) return "unknown"; const best = [...groups(run, blocks, ["category"]).values()].sort(byBytes(run))[0]; return best ? run.text(best[0]!, "category") : "unknown"; };
  const open = (blocks: number[], parent: number, depth: number) => {
    const field = levels[depth];
    if (!field) return;
    const children = [...groups(run, blocks, [field]).values()].sort(byBytes(run));
    if (depth === 0 && field === "category") children.sort((a, b) => categories.indexOf(run.text(b[0]!, field)) - categories.indexOf(run.text(a[0]!, field)));
    let left = sum(run, blocks);
    const mostRest = left / 10;
    const rest: number[][] = [];
    children.forEach((child, i) => {
      if ((i >= MOST_CHILDREN && left <= mostRest) || out.length >= MOST_NODES) { rest.push(child); return; }
      const bytes = sum(run, child);
      left -= bytes;
      out.push({ parent, depth, name: run.text(child[0]!, field), category: mainCategory(child), bytes, blocks: child.length, rest: false });
      open(child, out.length - 1, depth + 1);
    });
    if (rest.length) out.push({ parent, depth, name: `${rest.length} more`, category: mainCategory(rest[0]!), bytes: sum(run, rest.flat()), blocks: rest.flat().length, rest: true });
  };
  open(live, -1, 0);
  return out;
}

/** What led to a moment: the block that was allocated or freed just before it. */
function eventAt(run: RunBlocks, when: When): { event: Event | null; block: number } {
  const { birth, lives, id } = run.all;
  for (let i = 0; i < birth.length && birth[i]! <= when.moment; i++) {
    const freed = lives[i]! > 0 && birth[i]! + lives[i]! === when.moment;
    if (!freed && birth[i] !== when.moment) continue;
    const bytes = run.bytes(i), text = (field: string) => run.text(i, field);
    const dies = lives[i]! > 0 ? run.all.t[birth[i]! + lives[i]!] : undefined;
    return { block: i, event: { kind: freed ? "free" : "alloc", t: when.t, block: id[i]!, bytes, lives_us: dies === undefined ? null : dies - run.all.born[i]!, op: text("op") || text("name"), layer: text("layer"), line: text("line"),
      requested: run.all.requested[run.all.kind[i]!]!, granted: bytes } };
  }
  return { block: -1, event: null };
}

export function instantOf(run: RunBlocks, when: When, filter: string): Instant {
  const live = run.liveAt(when.moment, filter);
  const total = sum(run, live);
  const shares = [...groups(run, live, ["category"]).values()].sort(byBytes(run)).map((blocks): Share => {
    const name = run.text(blocks[0]!, "category");
    const known = [...groups(run, blocks, ["known"]).values()].sort(byBytes(run))[0]!;
    const bytes = sum(run, blocks);
    return { name, category: name, bytes, blocks: blocks.length, share: total ? bytes / total : 0, known: run.text(known[0]!, "known") };
  });
  const more = live.slice(SIDE_ROWS);
  const { event, block } = eventAt(run, when);
  return { moment: when.moment, t: when.t, link: when.link, step: when.step, step_us: when.stepUs, phase: block < 0 ? "" : run.text(block, "phase"), note: filter ? "" : when.note, total, at_least: when.atLeast && !filter, blocks: live.length, shares,
    rows: live.slice(0, SIDE_ROWS).map((block) => rowOf(run, [block], when.t, total)), more_blocks: more.length, more_bytes: sum(run, more), event };
}
