// A live run: the server reports new data at most ten times per second, and the page requests again what it shows.
import { FIRST_ASKS } from "../gen/views";
import type { Name, ParamsOf } from "../rpc/client";
import { listen } from "../rpc/news";
import { LOWEST_LEVEL } from "../gen/views";
import { wholeLevel } from "../rpc/levels";
import { HOME } from "./address";
import { app } from "./app.svelte";

interface Tick {
  state: "live" | "complete";
}

export function follow(): () => void {
  if (!app.hello?.live) return () => {};
  app.live = true;
  const end = listen((message) => {
    const tick = JSON.parse(message) as Tick;
    if (document.hidden && tick.state === "live") return; // the page is hidden: nothing to fetch
    void refresh(tick);
    if (tick.state === "complete") end();
  });
  return end;
}

let busy = false;
async function refresh(tick: Tick): Promise<void> {
  if (busy && tick.state === "live") return; // a slow page drops updates and never queues them
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
    for (const { request, at, params } of FIRST_ASKS)
      for (const instant of at ? ["steady", "peak", "end"] : [""]) ask(request, { trace, ...(at ? { at: instant } : {}), ...params } as ParamsOf<Name>);
    // The time axis as shown initially, and the strip above it.
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
