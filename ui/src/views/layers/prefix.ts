// Layers of a large model by what their names have in common: encoder/layer_7 for encoder/layer_7/attention.
import type { LayerRow, Layers } from "../../gen/rpc";
import { CATEGORIES, LAYER_PARTS } from "../../gen/texts";

/** The members of a row that add up to its total, in the order of stacks. */
export const PARTS_OF_LAYER = [...new Set(CATEGORIES.flatMap((category) => LAYER_PARTS[category] ?? [])), "other" as const];
const prefixOf = (name: string) => (name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : name);

/** With the filter that matches it, and the instant of its own peak, if it has one. */
export interface Row extends LayerRow { filter: string; ownPeak: string }

export const rowsOf = (layers: Layers): Row[] => layers.rows.map((row, i) => ({ ...row, filter: layers.filters[i] ?? "", ownPeak: layers.own_peaks[i] ?? "" }));

export function hasPrefixes(rows: LayerRow[]): boolean {
  const prefixes = rows.map((row) => prefixOf(row.name)).filter((prefix, i) => prefix !== rows[i]!.name);
  return new Set(prefixes).size < prefixes.length;
}

/** From the filter of one member to that of all: `layer:encoder/dense`, `layer:encoder/*`. */
const below = (filter: string) => filter.slice(0, filter.lastIndexOf("/") + 1) + (filter.endsWith('"') ? '*"' : "*");

/** In the order of the first of each group. A group has no peak of its own: those of its layers are at different times. */
export function byPrefix(rows: Row[]): Row[] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(prefixOf(row.name), [...(groups.get(prefixOf(row.name)) ?? []), row]);
  return [...groups].map(([name, of]) => {
    if (of.length === 1) return of[0]!;
    const group: Row = { ...of[0]!, name, line: "", own_peak: 0, ownPeak: "", filter: below((of.find((row) => row.name !== name) ?? of[0]!).filter) };
    group.time_us = of.some((row) => row.time_us == null) ? null : of.reduce((sum, row) => sum + (row.time_us ?? 0), 0);
    for (const part of [...PARTS_OF_LAYER, "total" as const]) group[part] = of.reduce((sum, row) => sum + row[part], 0);
    return group;
  });
}
