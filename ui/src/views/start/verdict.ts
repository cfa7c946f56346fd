// What is wrong with a process, in a few words.
import type { TraceInfo } from "../../gen/rpc";

/** Whether memory grows is known only of runs with enough steps. */
export function verdictOf(info: TraceInfo): string {
  if (info.error) return "cannot be read";
  return info.verdict || (info.growth === null ? "no failure" : "no failure, no growth");
}
