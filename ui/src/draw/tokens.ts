// Colors for canvases, read from the page's custom properties so that both follow one theme.
import { CATEGORIES } from "../gen/texts";

/** The part of a custom property's name that stands for a category: --c-optimizer-state fills it, --e-optimizer-state is its edge. */
export const slotOf = (category: string): string => (CATEGORIES.includes(category) ? category.toLowerCase().replaceAll(" ", "-") : "unknown");

/** The ground of a category outside canvases: unknown is always hatched. */
export const groundOf = (category: string): string => {
  const slot = slotOf(category);
  return slot === "unknown" ? "repeating-linear-gradient(135deg, var(--h-unknown) 0 1px, transparent 1px 4px) var(--c-unknown)" : `var(--c-${slot})`;
};

const NAMES = ["bg", "surface", "sunken", "text", "text-2", "text-3", "line", "line-2", "accent", "accent-soft", "signal", "signal-ink", "signal-soft",
  "n1", "n2", "n3", "edge"] as const;
type ColourName = (typeof NAMES)[number];

export interface Tokens extends Record<ColourName, string> {
  dark: boolean;
  fill(category: string): string;
  line_of(category: string): string;
  /** The lines over the fill of unknown. */
  hatch_of_unknown: string;
  /** Shades for groupings other than category: one hue, lightness by rank. */
  rank(index: number, count: number): string;
  age(share: number): string;
}

/** Colors of the system, which forced colors use, by their numbers: contrasts are computed from them. */
function resolved(colour: string): string {
  if (!/^[A-Z]/.test(colour)) return colour;
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = colour;
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

export function readTokens(): Tokens {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => resolved(style.getPropertyValue(`--${name}`).trim());
  const dark = document.documentElement.dataset.theme === "dark";
  const base = Object.fromEntries(NAMES.map((name) => [name, get(name)])) as Record<ColourName, string>;
  const cache = new Map<string, string>();
  const cached = (name: string) => {
    let value = cache.get(name);
    if (value === undefined) cache.set(name, (value = get(name)));
    return value;
  };
  return {
    ...base, dark,
    fill: (category) => cached(`c-${slotOf(category)}`),
    line_of: (category) => cached(`e-${slotOf(category)}`),
    hatch_of_unknown: get("h-unknown"),
    rank: (index, count) => {
      const share = count > 1 ? index / (count - 1) : 0;
      return dark ? `hsl(205 45% ${62 - 38 * share}%)` : `hsl(205 48% ${38 + 48 * share}%)`;
    },
    age: ageShade,
  };
}

const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
/** From 0, new, to 1, the oldest: viridis. */
export function ageShade(share: number): string {
  const x = Math.min(Math.max(share, 0), 0.9999) * 4;
  const a = VIRIDIS[Math.floor(x)]!;
  const b = VIRIDIS[Math.floor(x) + 1]!;
  const part = x - Math.floor(x);
  return `rgb(${a.map((v, i) => Math.round(v + (b[i]! - v) * part)).join(" ")})`;
}

/** Red, green and blue of what tokens give: #rrggbb, #rgb (as the build shortens it), rgb(r g b) or hsl(h s% l%). */
function channels(colour: string): [number, number, number] {
  if (/^#...$/.test(colour)) return channels(colour.replace(/[^#]/g, "$&$&"));
  const hex = colour.match(/^#(..)(..)(..)$/);
  if (hex) return [1, 2, 3].map((i) => parseInt(hex[i]!, 16)) as [number, number, number];
  const [a = 0, b = 0, c = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  if (!colour.startsWith("hsl")) return [a, b, c];
  const part = (n: number) => {
    const k = (n + a / 30) % 12;
    return 255 * (c / 100 - (b / 100) * Math.min(c / 100, 1 - c / 100) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return [part(0), part(8), part(4)];
}

function luminance(colour: string): number {
  const [r, g, b] = channels(colour).map((value) => {
    const v = value / 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** As WCAG counts it: 4.5 is enough for small text. */
export function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** The colour that `fill` has when it is drawn over `below` with this opacity. */
export function over(fill: string, below: string, opacity: number): string {
  const ground = channels(below);
  return `rgb(${channels(fill).map((v, i) => Math.round(v * opacity + ground[i]! * (1 - opacity))).join(" ")})`;
}

/** #14181F or white, whichever contrasts more with the fill. */
export const inkOn = (fill: string): string => (contrast("#14181f", fill) > contrast("#ffffff", fill) ? "#14181f" : "#ffffff");

/** How strong a cell of the peak is drawn: deeper is closer to the surface, the hue stays the category's. On some shades between a dark surface
 * and its fills no ink can be read; these leave them out. */
export const strength = (depth: number, dark: boolean): number => (dark ? [1, 0.72, 0.52, 0.34] : [1, 0.8, 0.6, 0.4])[Math.min(3, depth)]!;

const hatches = new Map<string, CanvasPattern>();
/** Diagonal lines, at an even pitch whatever the pixel ratio. */
export function hatch(ctx: CanvasRenderingContext2D, colour: string, pitch = 6): CanvasPattern | string {
  const key = `${colour}/${pitch}/${devicePixelRatio}`;
  const known = hatches.get(key);
  if (known) return known;
  const ratio = devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  tile.width = tile.height = pitch * ratio;
  const c = tile.getContext("2d");
  if (!c) return colour;
  c.scale(ratio, ratio);
  c.strokeStyle = colour;
  c.lineWidth = 1;
  c.beginPath();
  for (const shift of [-pitch, 0, pitch]) {
    c.moveTo(shift - 1, pitch + 1);
    c.lineTo(shift + pitch + 1, -1);
  }
  c.stroke();
  const pattern = ctx.createPattern(tile, "repeat");
  if (!pattern) return colour;
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  hatches.set(key, pattern);
  return pattern;
}
