// A page that follows a run for an hour: many updates in a short time, and its memory stays where it was.
import { readFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Page } from "@playwright/test";
import { heapMegabytes } from "../bench/measure";
import { expect, settled, test } from "./page";
import { data, serve, trace, type Served } from "./program";

// An hour has 36,000 updates at most; VRAMSCOPE_UPDATES=36000 sends all of them.
const UPDATES = Number(process.env.VRAMSCOPE_UPDATES ?? 400);
// A page that kept one of its answers with every update would need a hundred times as much.
const MOST_BYTES_AN_UPDATE = 1500;

declare global { interface Window { news?: (message: string) => void } }

/** A server of a trace that has no end yet and was written just now: somebody records it. */
async function unfinished(name: string): Promise<Served> {
  const file = path.join(data, `${name}.vram`);
  writeFileSync(file, readFileSync(trace("train")));
  truncateSync(file, Math.floor(readFileSync(file).length * 0.9));
  const beat = setInterval(() => utimesSync(file, new Date(), new Date()), 1000);
  const served = await serve(file);
  return { ...served, stop: () => { clearInterval(beat); served.stop(); } };
}

/** The server's news come from here instead, as fast as the page takes them. */
async function ownNews(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const real = window.fetch;
    window.fetch = (what, how) => {
      if (what !== "events") return real(what, how);
      const body = new ReadableStream<Uint8Array>({ start: (stream) => { window.news = (message) => stream.enqueue(new TextEncoder().encode(`data: ${message}\n\n`)); } });
      return Promise.resolve(new Response(body));
    };
  });
}

async function update(page: Page, times: number): Promise<void> {
  await page.evaluate(async (count) => {
    for (let i = 0; i < count; i++) {
      window.news!('{"state":"live","revision":1}');
      do await new Promise((done) => setTimeout(done, 0)); while (document.documentElement.dataset.pending !== "0");
    }
  }, times);
  await settled(page);
}

for (const view of ["timeline", "overview", "peak", "map"]) {
  test(`${view}: no growth while it follows`, async ({ page }) => {
    test.setTimeout(600_000 + UPDATES * 100);
    await ownNews(page);
    const served = await unfinished(`growth-${view}`);
    try {
      await page.goto(`${served.address}#${view}`);
      await settled(page);
      const session = await page.context().newCDPSession(page);
      const measure = async () => ({ heap: await heapMegabytes(session), ...(await session.send("Memory.getDOMCounters")) });
      await update(page, 100);
      const before = await measure();
      await update(page, UPDATES);
      const after = await measure();
      console.log(`    ${view}: heap ${before.heap.toFixed(2)} to ${after.heap.toFixed(2)} MB, nodes ${before.nodes} to ${after.nodes}, listeners ${before.jsEventListeners} to ${after.jsEventListeners} in ${UPDATES} updates`);
      expect(((after.heap - before.heap) * 1e6) / UPDATES).toBeLessThan(MOST_BYTES_AN_UPDATE);
      expect(after.nodes).toBeLessThanOrEqual(before.nodes + 50);
      expect(after.jsEventListeners).toBeLessThanOrEqual(before.jsEventListeners + 20);
    } finally {
      served.stop();
    }
  });
}

test("following pauses when the user looks elsewhere, and goes on when asked", async ({ page }) => {
  await ownNews(page);
  const served = await unfinished("paused");
  try {
    await page.goto(`${served.address}#timeline`);
    await settled(page);
    await expect(page.locator("[data-state]")).toContainText("live");
    await page.keyboard.press("+");
    const follow = page.getByRole("button", { name: /Follow/ });
    await expect(follow).toBeVisible();
    await follow.click();
    await expect(follow).toHaveCount(0);
    await expect.poll(() => page.url()).not.toContain("r=");
  } finally {
    served.stop();
  }
});
