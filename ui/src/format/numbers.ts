// How numbers are written: one decimal, comma for thousands, true minus sign, one unit per table or chart.
export const MINUS = "\u2212";
export const UNKNOWN = "\u2013";

export interface Unit {
  name: "B" | "KiB" | "MiB" | "GiB";
  bytes: number;
}
const UNITS: Unit[] = [
  { name: "B", bytes: 1 },
  { name: "KiB", bytes: 1024 },
  { name: "MiB", bytes: 1024 ** 2 },
];
const GIB: Unit = { name: "GiB", bytes: 1024 ** 3 };

/** By its name; MiB for any other. */
export function unitNamed(name: string): Unit {
  return [...UNITS, GIB].find((unit) => unit.name === name) ?? UNITS[2]!;
}

/** The unit of a table or chart, chosen by its largest figure: MiB from 1 to 999,999, as in src/support/units.cpp. */
export function unitFor(largest: number): Unit {
  const size = Math.abs(largest);
  if (size >= 1_000_000 * 1024 ** 2) return GIB;
  return size >= 1024 ** 2 ? UNITS[2]! : size >= 1024 ? UNITS[1]! : UNITS[0]!;
}

const grouped = (value: number, decimals: number) =>
  value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

export function count(value: number): string {
  return signed(value, grouped(Math.abs(value), 0));
}

/** "1 event", "22,649 events". */
export function counted(value: number, thing: string): string {
  return `${count(value)} ${thing}${value === 1 ? "" : "s"}`;
}

/** A figure without its unit, which stands once in the head. */
export function inUnit(bytes: number | null | undefined, unit: Unit): string {
  if (bytes === null || bytes === undefined || Number.isNaN(bytes)) return UNKNOWN;
  return signed(bytes, grouped(Math.abs(bytes) / unit.bytes, unit.bytes === 1 ? 0 : 1));
}

export function size(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || Number.isNaN(bytes)) return UNKNOWN;
  const unit = unitFor(bytes);
  return `${inUnit(bytes, unit)} ${unit.name}`;
}

export function change(bytes: number | null, unit: Unit): string {
  if (bytes === null || Number.isNaN(bytes)) return UNKNOWN;
  const text = inUnit(bytes, unit);
  return bytes > 0 ? `+${text}` : text;
}

export function exact(bytes: number | null | undefined): string {
  return bytes === null || bytes === undefined || Number.isNaN(bytes) ? "not known" : `${count(bytes)} bytes`;
}

export function percent(share: number): string {
  return `${(Math.floor(share * 1000 + 0.5) / 10).toFixed(1)} %`;
}

export function duration(us: number | null | undefined): string {
  if (us === null || us === undefined || Number.isNaN(us)) return UNKNOWN;
  if (us < 1000) return `${us.toFixed(0)} µs`;
  if (us < 1e6) return `${inTenths(us, 1e3)} ms`;
  if (us < 600e6) return `${inTenths(us, 1e6)} s`;
  return us < 3 * 3600e6 ? `${inTenths(us, 60e6)} min` : `${inTenths(us, 3600e6)} h`;
}

/** How long ago a block was allocated. */
export function age(us: number | null | undefined): string {
  return us === 0 ? "new" : duration(us);
}

/** One decimal, a half rounded up: in whole numbers, because 6.35 is a little less in binary. As in src/support/units.cpp. */
function inTenths(value: number, unit: number): string {
  return grouped((Math.floor(value / unit) * 10 + Math.floor(((value % unit) * 10 + unit / 2) / unit)) / 10, 1);
}

/** How far into its step an instant is: as step_text() in src/analyze/captions.cpp. */
export function sinceStep(us: number): string {
  return us < 1e6 ? `${(us / 1e3).toFixed(3)} ms` : instant(us);
}

/** "0.004300": seconds since the start of the trace. */
export function seconds(us: number): string {
  return (us / 1e6).toFixed(6);
}

export function instant(us: number): string {
  return `${seconds(us)} s`;
}

function signed(value: number, text: string): string {
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}
