// The positions of the controls as text in the address: "batch:64,optimizer:sgd,card:H100-80GB".
export const CONTROLS = ["batch", "accumulate", "precision", "optimizer", "allocator", "card"] as const;
export type Control = (typeof CONTROLS)[number];
export type Changes = Record<Control, string>;

export function parseChanges(text: string): Changes {
  const out: Changes = { batch: "", accumulate: "", precision: "", optimizer: "", allocator: "", card: "" };
  for (const part of text.split(",")) {
    const cut = part.indexOf(":");
    const name = part.slice(0, cut) as Control;
    if (cut > 0 && CONTROLS.includes(name)) out[name] = part.slice(cut + 1);
  }
  return out;
}

export function formatChanges(changes: Changes): string {
  return CONTROLS.filter((name) => changes[name]).map((name) => `${name}:${changes[name]}`).join(",");
}
