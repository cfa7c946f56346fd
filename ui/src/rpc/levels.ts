// The grid of the time axis that requests for tiles speak of: tile `i` of level `k` covers [i·2^k, (i+1)·2^k) µs.
export const COLUMNS = 1024;
export const LOWEST_LEVEL = 10;

/** The level whose columns are at most one device pixel wide. */
export function levelFor(spanUs: number, pixels: number): number {
  return Math.max(LOWEST_LEVEL, Math.floor(Math.log2(Math.max(1, (spanUs * COLUMNS) / Math.max(1, pixels)))));
}
export function wholeLevel(durationUs: number): number {
  return Math.max(LOWEST_LEVEL, Math.ceil(Math.log2(Math.max(2, durationUs + 1))));
}
