// Choosing an instant. The page knows moments, numbers of events; the address holds what people can read and what another recording
// of the same program has too: a time within a step.
import { instant } from "../format/numbers";
import { NAMED_INSTANTS, STEADY_PEAK } from "../gen/texts";
import type { Place } from "./address";
import { app } from "./app.svelte";

/** As users write a time. */
export const atTime = (us: number): string => `${(us / 1e6).toFixed(6)}s`;

export const isNamed = (at: string): boolean => NAMED_INSTANTS.some(({ name }) => name === at);

/** What a view offers: the named instants that this run has, and the selected one, at `us`, if it is another. */
export function instantOptions(us: number | undefined): { value: string; text: string }[] {
  const named = NAMED_INSTANTS.filter(({ name }) => name !== STEADY_PEAK.name || app.overview?.steady_t != null).map(({ name, title }) => ({ value: name, text: title }));
  return us === undefined || isNamed(app.place.at) ? named : [...named, { value: app.place.at, text: instant(us) }];
}

let newest = 0;
/** Goes to a moment that lies at this time. Where the answer is missing, as in a report, the address gets the time, and the view says why. */
export async function choose(moment: number, us: number, change: Partial<Place> = {}, keep = true): Promise<void> {
  const turn = ++newest;
  const params = { trace: app.place.trace, at: `moment:${moment}`, filter: app.place.filter };
  let at = atTime(us);
  try {
    const answer = await app.client.ask("instant", params);
    at = answer.link;
    app.client.put("instant", { ...params, at }, answer);
  } catch { /* the view asks again and shows the reason */ }
  if (turn === newest) app.go({ ...change, at }, keep);
}
