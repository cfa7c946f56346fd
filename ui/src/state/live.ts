// A live run: the server says when there is something new, at most ten times a second; the page asks again for what it shows.
import type { Name, ParamsOf } from "../rpc/client";
import { LOWEST_LEVEL, wholeLevel } from "../rpc/levels";
import { HOME } from "./address";
import { app } from "./app.svelte";

interface Tick {
  state: "live" | "complete";
}

export function follow(): () => void {
  if (!app.hello?.live) return () => {};
  app.live = true;
  const source = new EventSource("events");
  source.onmessage = (message) => {
    const tick = JSON.parse(String(message.data)) as Tick;
    if (document.hidden && tick.state === "live") return; // nobody looks: nothing to fetch
    void refresh(tick);
    if (tick.state === "complete") source.close();
  };
  return () => source.close();
}

let busy = false;
async function refresh(tick: Tick): Promise<void> {
  if (busy && tick.state === "live") return; // a slow page drops updates, never queues them
  busy = true;
  try {
    app.client.forget();
    app.hello = await app.client.ask("hello", {});
    app.revision++;
    app.live = tick.state === "live";
    app.ended = !app.live;
    if (app.ended) keep();
  } catch (problem) {
    app.notice = (problem as Error).message;
  } finally {
    busy = false;
  }
}

const MOST_TRACES = 8;

/** The server of `run --live` ends with the run. What every view shows first is asked for while it still answers, and stays at hand. */
function keep(): void {
  const ask = <N extends Name>(name: N, params: ParamsOf<N>) => void app.client.ask(name, params).catch(() => {});
  const readable = app.hello?.traces.filter((t) => !t.error) ?? [];
  for (const { id: trace, duration_us } of readable.slice(0, MOST_TRACES)) {
    for (const name of ["overview", "steps", "leaks", "ooms"] as const) ask(name, { trace });
    for (const at of ["steady", "peak", "end"]) {
      ask("peak", { trace, at, open: HOME.open, filter: "" });
      ask("layers", { trace, at, filter: "" });
      ask("map", { trace, at, pool: "" });
      ask("source", { trace, at, file: "" });
      ask("instant", { trace, at, filter: "" });
    }
    // The time axis as it is seen at first, and the strip above it.
    const whole = wholeLevel(duration_us);
    for (const level of new Set([whole, whole - 1, whole - 4].map((l) => Math.max(LOWEST_LEVEL, l))))
      for (let tile = 0; tile * 2 ** level < duration_us; tile++) {
        ask("stack", { trace, by: HOME.by, filter: "", level, tile });
        if (level < whole - 1) continue;
        ask("tracks", { trace, level, tile });
        ask("marks", { trace, level, tile });
      }
  }
}
