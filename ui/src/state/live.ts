// A live run: the server says when there is something new, at most ten times a second; the page asks again for what it shows.
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
  } catch (problem) {
    app.notice = (problem as Error).message;
  } finally {
    busy = false;
  }
}
