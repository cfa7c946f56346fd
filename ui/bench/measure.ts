// What a server, a page and a browser cost. Wall clock and processor time: on a machine that others use too, the clock measures them.
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import type { CDPSession, Page } from "@playwright/test";

/** Processor time that a process has used, all threads, in ms. */
export function processorMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try { ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]); } catch { /* it has just ended */ }
  }
  return ns / 1e6;
}

export function quantile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
export function get(url: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http.get(url, { agent, headers: { "X-Vramscope-Token": token, "Accept-Encoding": "gzip" } }, (response) => {
      let bytes = 0;
      response.on("data", (part: Buffer) => { bytes += part.length; });
      response.on("end", () => (response.statusCode === 200 ? resolve(bytes) : reject(new Error(`${response.statusCode} for ${url}`))));
    }).on("error", reject);
  });
}

/** Memory that only the page's own process holds, in MB: not the browser's code, which all its processes share. */
export async function pageMegabytes(page: Page): Promise<number> {
  const browser = await page.context().browser()!.newBrowserCDPSession();
  const { processInfo } = await browser.send("SystemInfo.getProcessInfo");
  const used = processInfo.filter((p) => p.type === "renderer").map((p) => {
    const rollup = readFileSync(`/proc/${p.id}/smaps_rollup`, "utf8");
    return [...rollup.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].reduce((sum, match) => sum + Number(match[1]), 0) / 1000;
  });
  return Math.max(...used);
}

export async function heapMegabytes(session: CDPSession): Promise<number> {
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

interface TraceEvent { name: string; ph: string; tid: number; pid: number; dur?: number; tdur?: number; args?: { name?: string } }

/** Longest task of the page's main thread, in ms: by the clock and in processor time. */
export function longestTask(trace: Buffer): { clock: number; processor: number; tasks: number } {
  const events = (JSON.parse(trace.toString()) as { traceEvents: TraceEvent[] }).traceEvents;
  const main = new Set(events.filter((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain").map((e) => `${e.pid}/${e.tid}`));
  const tasks = events.filter((e) => e.ph === "X" && /RunTask$/.test(e.name) && main.has(`${e.pid}/${e.tid}`));
  return {
    clock: Math.max(0, ...tasks.map((t) => t.dur ?? 0)) / 1000,
    processor: Math.max(0, ...tasks.map((t) => t.tdur ?? t.dur ?? 0)) / 1000,
    tasks: tasks.length,
  };
}
