// The columns of a table of blocks, the same in Peak, Leaks and OOM.
import type { Column } from "../../parts/Table.svelte";
import type { BlockRow } from "../../gen/rpc";
import { age, count, exact, inUnit, percent, type Unit } from "../../format/numbers";
import { orUnknown, shortOp, shown } from "../../format/names";

export function blockColumns(unit: Unit, sourceLink: (line: string) => string): Column<BlockRow>[] {
  return [
    { key: "category", head: "Category", text: (r) => r.category, category: (r) => r.category, sort: (r) => r.category },
    { key: "layer", head: "Layer", text: (r) => orUnknown(r.layer), sort: (r) => r.layer },
    { key: "op", head: "Op", text: (r) => [shortOp(r.op) || "–", r.region].filter(Boolean).join(", "), sort: (r) => r.op, title: (r) => shown(r.op, 2000) },
    { key: "shape", head: "Shape", mono: true, text: (r) => orUnknown(r.shape) },
    { key: "dtype", head: "Type", text: (r) => orUnknown(r.dtype), sort: (r) => r.dtype },
    { key: "line", head: "Line", text: (r) => orUnknown(r.line), sort: (r) => r.line, href: (r) => (r.line ? sourceLink(r.line) : undefined) },
    { key: "known", head: "Known", text: (r) => orUnknown(r.known), sort: (r) => r.known },
    { key: "blocks", head: "Blocks", numeric: true, text: (r) => count(r.blocks), sort: (r) => r.blocks },
    { key: "age", head: "Age", numeric: true, text: (r) => age(r.age_us), sort: (r) => r.age_us ?? -1 },
    { key: "bytes", head: unit.name, numeric: true, strong: true, text: (r) => inUnit(r.bytes, unit), sort: (r) => r.bytes, title: (r) => exact(r.bytes) },
    { key: "bar", head: "", text: () => "", bar: (r) => ({ share: Math.min(1, r.share * 4), category: r.category }), width: "52px" },
    { key: "share", head: "Share", numeric: true, text: (r) => percent(r.share) },
  ];
}
