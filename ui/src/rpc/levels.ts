// Which tiles of the time axis to request.
import { LOWEST_LEVEL, TILE_COLUMNS } from "../gen/views";

/** The level whose columns are at most one device pixel wide. */
export function levelFor(spanUs: number, pixels: number): number {
  return Math.max(LOWEST_LEVEL, Math.floor(Math.log2(Math.max(1, (spanUs * TILE_COLUMNS) / Math.max(1, pixels)))));
}
export function wholeLevel(durationUs: number): number {
  return Math.max(LOWEST_LEVEL, Math.ceil(Math.log2(Math.max(2, durationUs + 1))));
}
