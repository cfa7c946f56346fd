// The unit of each view's figures: one for a table or chart, as the verbs of the same name choose it.
import { unitFor, unitNamed, type Unit } from "./numbers";

type Maybe<T> = T | null | undefined;

export function unitOfLayers(layers: Maybe<{ rows: { own_peak: number }[] }>): Unit {
  return unitFor(Math.max(0, ...(layers?.rows.map((row) => row.own_peak) ?? [])));
}

export function unitOfLedger(ledger: Maybe<{ unit: string }>): Unit {
  return unitNamed(ledger?.unit ?? "");
}

export function unitOfPeak(peak: Maybe<{ total: number }>): Unit {
  return unitFor(peak?.total ?? 0);
}
