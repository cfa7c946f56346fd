// Notifications from the server, one per line. The browser's own EventSource cannot send the token in a header.
import { authorization } from "./token";

const AGAIN_MS = 2000;

/** Splits what came into messages; the rest of an unfinished one stays in `left`. */
export function takeMessages(left: string): { messages: string[]; left: string } {
  const parts = left.split("\n\n");
  return { messages: parts.slice(0, -1).filter((p) => p.startsWith("data: ")).map((p) => p.slice(6)), left: parts.at(-1) ?? "" };
}

/** Calls `tell` with each message until the returned function is called; reconnects if the connection was lost. */
export function listen(tell: (message: string) => void): () => void {
  const end = new AbortController();
  void (async () => {
    while (!end.signal.aborted) {
      try {
        const response = await fetch("events", { headers: authorization(), signal: end.signal });
        if (response.ok && response.body) await read(response.body, tell);
      } catch { /* the server is gone, or nobody listens any more */ }
      if (!end.signal.aborted) await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  })();
  return () => end.abort();
}

async function read(body: ReadableStream<Uint8Array>, tell: (message: string) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let left = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const taken = takeMessages(left + decoder.decode(value, { stream: true }));
    left = taken.left;
    taken.messages.forEach(tell);
  }
}
