// The state of the page as text after `#`: a link or a reloaded report opens the same place. Unknown parts are ignored, never an
// error.
import { FIRST_OPEN, VIEW_TABLE, type View } from "../gen/views";
export type { View };

export function viewNamed(name: View) {
  return VIEW_TABLE.find((view) => view.name === name)!;
}

export interface Place {
  view: View;
  trace: number;
  at: string; // an instant as the engine understands it: steady, peak, end, oom:1, step:20+6.318ms, 6.244485s
  range: [number, number] | null; // what the timeline shows, microseconds
  brush: [number, number] | null;
  by: string;
  filter: string;
  selected: string; // a block by its id, or a group such as layer:conv2d_1
  solo: string; // the only group that the timeline shows
  open: string; // levels of Peak
  into: string; // names from the root to the part that Peak's tree map or flame graph shows
  mode: string; // which chart of a view
  pool: string;
  other: number; // second run of a diff
  file: string;
  table: boolean;
}

export const HOME: Place = {
  view: "overview", trace: 0, at: "steady", range: null, brush: null, by: "category", filter: "", selected: "", solo: "",
  open: FIRST_OPEN, into: "", mode: "", pool: "", other: -1, file: "", table: false,
};

const TEXT = { at: "at", by: "by", filter: "f", selected: "sel", solo: "only", open: "open", into: "in", mode: "mode", pool: "pool", file: "file" } as const;

export function parseAddress(hash: string): Place {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const name = cut < 0 ? text : text.slice(0, cut);
  const params = new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1));
  const place: Place = { ...HOME };
  if (VIEW_TABLE.some((view) => view.name === name)) place.view = name as View;
  for (const key of Object.keys(TEXT) as (keyof typeof TEXT)[]) {
    const value = params.get(TEXT[key]);
    if (value !== null) place[key] = value.slice(0, 2000);
  }
  const seconds = params.get("t"); // users type a bare time in seconds
  if (seconds !== null && !params.has("at")) place.at = /^\d+(\.\d+)?$/.test(seconds) ? `${seconds}s` : seconds;
  place.trace = whole(params.get("trace"), 0);
  place.other = whole(params.get("with"), -1);
  place.range = pair(params.get("r"));
  place.brush = pair(params.get("brush"));
  place.table = params.get("table") === "1";
  return place;
}

export function formatAddress(place: Place): string {
  const parts: string[] = [];
  const put = (key: string, value: string) => parts.push(`${key}=${encodeURIComponent(value).replace(/%2C/g, ",").replace(/%3A/g, ":")}`);
  if (place.trace !== HOME.trace) put("trace", String(place.trace));
  for (const key of Object.keys(TEXT) as (keyof typeof TEXT)[]) if (place[key] !== HOME[key]) put(TEXT[key], place[key]);
  if (place.other >= 0) put("with", String(place.other));
  if (place.range) put("r", seconds(place.range));
  if (place.brush) put("brush", seconds(place.brush));
  if (place.table) put("table", "1");
  return `#${place.view}${parts.length ? "?" + parts.join("&") : ""}`;
}

function seconds([a, b]: [number, number]): string {
  return `${(a / 1e6).toFixed(6)}..${(b / 1e6).toFixed(6)}`;
}

function pair(text: string | null): [number, number] | null {
  const match = text?.match(/^(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)$/);
  if (!match) return null;
  const a = Math.round(Number(match[1]) * 1e6);
  const b = Math.round(Number(match[2]) * 1e6);
  return b > a ? [a, b] : null;
}

function whole(text: string | null, otherwise: number): number {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) : otherwise;
}
