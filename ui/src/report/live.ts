// The blocks that a report contains, and which of them are live at a moment and match a filter.
import type { Blocks } from "../gen/rpc";
import { compileFilter, type Filterable } from "./filter";

export class RunBlocks {
  private readonly fields: Map<string, number>;
  private readonly matching = new Map<string, Uint8Array>();
  constructor(readonly all: Blocks) {
    this.fields = new Map(all.fields.map((name, i) => [name, i]));
  }

  text(block: number, field: string): string {
    if (field === "step") return this.all.texts[this.all.step[block]!] ?? "";
    const column = this.fields.get(field);
    return column === undefined ? "" : (this.all.texts[this.all.kinds[this.all.kind[block]! * this.fields.size + column]!] ?? "");
  }
  bytes(block: number): number {
    return this.all.granted[this.all.kind[block]!]!;
  }
  /** One byte for each block: whether it matches. */
  matches(filter: string): Uint8Array {
    let out = this.matching.get(filter);
    if (out) return out;
    const matches = compileFilter(filter);
    out = new Uint8Array(this.all.kind.length);
    for (let i = 0; i < out.length; i++) {
      const kind = this.all.kind[i]!;
      const block: Filterable = { text: (field) => this.text(i, field), granted: this.all.granted[kind]!, requested: this.all.requested[kind]! };
      out[i] = matches(block) ? 1 : 0;
    }
    this.matching.set(filter, out);
    return out;
  }
  /** The largest first. */
  liveAt(moment: number, filter: string): number[] {
    const { birth, lives } = this.all;
    const matches = this.matches(filter);
    const out: number[] = [];
    for (let i = 0; i < birth.length && birth[i]! <= moment; i++)
      if (matches[i] && (lives[i] === 0 || moment < birth[i]! + lives[i]!)) out.push(i);
    return out.sort((a, b) => this.bytes(b) - this.bytes(a) || a - b);
  }

  /** The state after all events up to that time. */
  momentAt(t: number): number {
    const times = this.all.t;
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle]! <= t) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}
