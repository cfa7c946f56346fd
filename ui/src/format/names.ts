// Names come from recorded programs and may contain anything.
const LONGEST = 160;

/** Control and direction characters as escapes; the rest as it is. Cut where a name would break a table. */
export function shown(name: string, longest = LONGEST): string {
  const safe = name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202f\u2066-\u2069\ufeff]/g, (c) =>
    `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return safe.length > longest ? `${safe.slice(0, longest - 1)}…` : safe;
}

/** Cut in the middle: long names of layers and ops differ at both ends. */
export function middle(name: string, longest: number): string {
  if (name.length <= longest) return name;
  const tail = Math.floor((longest - 1) / 2);
  return `${name.slice(0, longest - 1 - tail)}…${name.slice(-tail)}`;
}

export function orUnknown(name: string): string {
  return name === "" ? "\u2013" : shown(name);
}

/** Blocks outside of all layers have the empty name. */
export function layerName(name: string): string {
  return name || "outside any layer";
}

/** Splits a sentence at its `code` marks: odd parts are code. */
export function codeParts(text: string): string[] {
  return text.split("`");
}

/** The part of an op's path that distinguishes ops: its last name, with the one before where that is only "mul_1" or "zeros". */
export function shortOp(op: string): string {
  const parts = op.split("/");
  const last = parts.at(-1) ?? op;
  const before = parts.at(-2);
  return before && /^[a-z]/.test(last) && last.length < 12 ? `${before}/${last}` : last;
}

export function hex(address: number): string {
  return `0x${address.toString(16).padStart(12, "0")}`;
}
