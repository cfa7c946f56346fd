// Text in the room that there is.
import { middle } from "../format/names";

/** Fewer characters of a longer name say nothing: "i…s", "4…9". */
const FEWEST = 6;

/** As much of a text as there is room for, cut in the middle; nothing where that would say nothing. */
export function cut(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  if (ctx.measureText(text).width <= room) return text;
  let n = Math.max(0, Math.floor((text.length * room) / Math.max(1, ctx.measureText(text).width)) + 1);
  while (n >= FEWEST && ctx.measureText(middle(text, n)).width > room) n--;
  return n >= FEWEST ? middle(text, n) : "";
}

/** Shorter forms of a name that still tell it apart from its neighbors: of "encoder/layer_48 to 49" the last part, then "48–49". */
function shorter(name: string): string[] {
  const last = name.slice(name.lastIndexOf("/") + 1);
  const range = /(\d+) to (\d+)$/.exec(last);
  return [name, last, ...(range ? [range[0], `${range[1]}–${range[2]}`] : [])];
}

/** The longest form of a name that fits; only if none does, a part of it. */
export function fitName(ctx: CanvasRenderingContext2D, name: string, room: number, more: string[] = []): string {
  const forms = [...shorter(name), ...more];
  return forms.find((form) => ctx.measureText(form).width <= room) ?? cut(ctx, forms.at(-1)!, room);
}
