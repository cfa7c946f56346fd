// A real training run, followed while it runs: TensorFlow on the CPU with the allocator class that GPUs use.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test as base } from "@playwright/test";
import { settled, watch } from "./page";
import { json, noTensorFlow, python, serve, TENSORFLOW, vramscope } from "./program";

const TRAINING = `
import numpy as np, keras, os, sys, time
model = keras.Sequential([keras.layers.Input((32,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
x, y = np.random.rand(512, 32).astype("float32"), np.random.randint(0, 10, 512)
class UntilSeen(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.12)
        self.model.stop_training = os.path.exists(sys.argv[1])
model.fit(x, y, batch_size=32, epochs=100000, verbose=0, callbacks=[UntilSeen()])
`;

// Long because one training run is followed to its end and beyond: starting it takes longer than everything else.
base("a training is followed, and its end turns into a saved view", async ({ page }) => {
  base.skip(noTensorFlow !== "", noTensorFlow);
  const problems = watch(page);
  const folder = mkdtempSync(path.join(os.tmpdir(), "vramscope-live-"));
  const script = path.join(folder, "train.py"), seen = path.join(folder, "seen");
  writeFileSync(script, TRAINING);
  const run = spawn(vramscope, ["run", "--live", "-o", folder, "--", python, script, seen], { env: { ...process.env, ...TENSORFLOW }, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  const address = await new Promise<string>((resolve, reject) => {
    run.stderr.on("data", (part: Buffer) => { said += part.toString(); const found = said.match(/live at (http:\S+)/); if (found) resolve(found[1]!); });
    run.on("exit", () => reject(new Error(`the run ended before its page was there: ${said}`)));
  });
  const ended = new Promise((resolve) => run.on("exit", resolve));
  await page.addInitScript(() => {
    const heard: number[] = [];
    (window as { heard?: number[] }).heard = heard;
    const real = window.fetch;
    window.fetch = async (what, how) => {
      if (what === "events") heard.push(performance.now()); // before the first of its messages can have been sent
      const response = await real(what, how);
      if (what !== "events" || !response.body) return response;
      const noted = new TransformStream<Uint8Array, Uint8Array>({ transform: (part, on) => { heard.push(performance.now()); on.enqueue(part); } });
      return new Response(response.body.pipeThrough(noted));
    };
  });
  await page.goto(address);
  const state = page.locator("[data-state]");
  await expect(state).toContainText("live");
  const events = async () => Number(((await state.textContent()) ?? "").match(/([\d,]+) events/)?.[1]?.replace(/,/g, "") ?? 0);
  const first = await events();
  await expect.poll(events).toBeGreaterThan(first);
  await page.evaluate(() => { location.hash = "timeline"; });
  await expect(page.locator("aside [data-total]")).toBeVisible();
  await expect.poll(async () => (await page.evaluate(() => (window as { heard?: number[] }).heard ?? [])).length).toBeGreaterThan(4);
  writeFileSync(seen, "");
  await expect(state).toHaveAttribute("data-state", "complete");
  await ended;
  await settled(page);
  const heard = await page.evaluate(() => (window as { heard?: number[] }).heard ?? []);
  // At most ten updates a second are sent; a busy machine may deliver many of them together, later.
  for (let i = 1; i < heard.length; i++) expect(i).toBeLessThanOrEqual((heard[i]! - heard[0]!) / 100 + 2);
  // The server has ended with the run; the views are there nevertheless, also those that nobody had looked at.
  for (const view of ["overview", "peak", "steps", "layers", "leaks", "map", "oom", "source", "timeline"]) {
    await page.evaluate((hash) => { location.hash = hash; }, view);
    await settled(page);
    await expect(page.locator("main h1").first(), view).not.toBeEmpty();
    await expect(page.locator("main [role=alert]"), view).toHaveCount(0);
  }
  await page.evaluate(() => { location.hash = "peak?at=moment:7"; });
  await expect(page.locator("main [role=alert]")).toContainText("vramscope serve");
  // What the page ended with is what the file says.
  const files = readdirSync(folder).filter((name) => name.endsWith(".vram"));
  const truth = json("summary", path.join(folder, files[0]!)) as { events?: number };
  if (truth.events !== undefined) expect(await events()).toBe(truth.events);
  const served = await serve(folder);
  try {
    for (const view of ["overview", "timeline", "peak", "peak?mode=tree", "steps", "layers", "leaks", "map", "oom", "source"]) {
      await page.goto(`${served.address}#${view}`);
      await page.reload();
      await settled(page);
      await expect(page.locator("main h1").first(), view).not.toBeEmpty();
      await expect(page.locator("main [role=alert]"), view).toHaveCount(0);
    }
    // The bytes beside the lines are those of the command line.
    const lines = json("peak", path.join(folder, files[0]!), "--by", "line") as { groups: { keys: string[]; bytes: number }[] };
    const ours = lines.groups.filter((group) => /^train\.py:\d+$/.test(group.keys[0] ?? ""));
    expect(ours.length).toBeGreaterThan(0);
    for (const group of ours) await expect(page.locator(`[data-line="${group.keys[0]!.split(":")[1]}"]`)).toHaveAttribute("data-bytes", String(group.bytes));
    await expect(page.locator("main")).toContainText("model.fit(x, y");
  } finally {
    served.stop();
  }
  expect(problems.filter((p) => !/ERR_CONNECTION_REFUSED|Failed to load/.test(p))).toEqual([]);
});
