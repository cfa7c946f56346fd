// A real TensorBoard in a real browser: the scalars of the memory callback and of an exported trace, and the tab with the report of a recorded run.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { json, noTensorFlow, python, root, TENSORFLOW, trace, vramscope } from "./program";

test.skip(noTensorFlow !== "", noTensorFlow);
test.describe.configure({ mode: "serial" });

interface Row { phase: string; epoch: number; batch: number | null; at: string; current: number; peak: number }

const MIB = 1 << 20;
let folder: string;
let rows: Row[];
let board: ChildProcess;
let address: string;

/** TensorBoard finds the tab as it does where the package is installed: by the entry point in its metadata. */
function environment(): NodeJS.ProcessEnv {
  const metadata = path.join(folder, "installed/vramscope-0.dist-info");
  mkdirSync(metadata, { recursive: true });
  writeFileSync(path.join(metadata, "METADATA"), "Metadata-Version: 2.1\nName: vramscope\nVersion: 0\n");
  writeFileSync(path.join(metadata, "entry_points.txt"), "[tensorboard_plugins]\nvramscope = vramscope.tensorboard_plugin:VramscopePlugin\n");
  return { ...process.env, ...TENSORFLOW, PYTHONPATH: `${path.dirname(metadata)}:${path.join(root, "python")}`, VRAMSCOPE_BUILD: path.dirname(vramscope) };
}

test.beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "board-"));
  const env = environment(), logs = path.join(folder, "logs");
  const printed = execFileSync(vramscope, ["run", "-q", "-o", path.join(logs, "recorded"), "--", python, path.join(root, "ui/e2e/board.py"), logs],
    { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  rows = JSON.parse(printed.trim().split("\n").at(-1)!) as Row[];
  mkdirSync(path.join(logs, "exported"));
  execFileSync(vramscope, ["export", trace("train"), "--to", "tensorboard", "-o", path.join(logs, "exported/events.out.tfevents.1.run")], { stdio: "pipe" });
  board = spawn(python, ["-m", "tensorboard.main", "--logdir", logs, "--host", "127.0.0.1", "--port", "0"], { env, stdio: ["ignore", "pipe", "pipe"] });
  address = await new Promise<string>((resolve, reject) => {
    let said = "";
    const listen = (part: Buffer) => {
      said += part.toString();
      const found = said.match(/http:\/\/127\.0\.0\.1:\d+\//);
      if (found) resolve(found[0]);
    };
    board.stdout?.on("data", listen);
    board.stderr?.on("data", listen);
    board.on("exit", (code) => reject(new Error(`TensorBoard ended with ${code}: ${said.slice(-2000)}`)));
  });
});

test.afterAll(() => {
  board?.kill();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** [step, value] of a tag, as TensorBoard has it for its charts. */
async function points(page: Page, tag: string, run = "memory"): Promise<[number, number][]> {
  const answer = await page.request.get(`${address}data/plugin/scalars/scalars?run=${run}&tag=${encodeURIComponent(tag)}`);
  return ((await answer.json()) as [number, number, number][]).map(([, step, value]) => [step, value]);
}

test("scalars: one chart per phase and number, with the values of the rows", async ({ page }) => {
  const whole = (phase: string, name: "current" | "peak") =>
    rows.filter((row) => row.phase === phase && row.at === "end" && row.batch === null).map((row) => [row.epoch - 1, row[name] / MIB]);
  await expect.poll(async () => (await points(page, "memory/train/CPU:0/peak (MiB)")).length).toBe(3);
  for (const phase of ["train", "evaluate"])
    for (const name of ["current", "peak"] as const) expect(await points(page, `memory/${phase}/CPU:0/${name} (MiB)`), phase).toEqual(whole(phase, name));
  expect((await points(page, "memory/train batch/CPU:0/peak (MiB)")).map(([step]) => step)).toEqual([1, 3, 5, 7, 9, 11]);

  await page.goto(`${address}#timeseries`);
  await page.getByRole("combobox", { name: "Filter tags (regex)" }).fill("memory/train/.*peak");
  const card = page.locator("scalar-card").filter({ hasText: "memory/train/CPU:0/peak (MiB)" });
  await expect(card).toHaveCount(1);
  await expect(card.locator("line-chart canvas, line-chart svg").first()).toBeVisible();
});

test("an exported trace has the peaks of its steps", async ({ page }) => {
  const { steps } = json("steps", trace("train")) as { steps: { steps: { number: number; peak: number }[] } };
  const written = () => points(page, "memory/train/GPU 0/peak (MiB)", "exported");
  await expect.poll(async () => (await written()).length).toBe(steps.steps.length);
  expect((await written()).map(([step, value]) => [step, value * MIB])).toEqual(steps.steps.map((step) => [step.number, step.peak]));
});

test("the Memory tab shows the report of the run", async ({ page }) => {
  await page.goto(address);
  await page.getByRole("tab", { name: "Memory", exact: true }).click();
  const tab = page.frameLocator("iframe").first();
  await expect(tab.getByLabel("Run")).toHaveValue(/^recorded\/.*\.vram$/);
  const report = tab.frameLocator("iframe[title='vramscope report']");
  const peak = json("peak", path.join(folder, "logs/recorded"), "--at", "peak") as { total: number };
  await expect(report.locator("[data-figure=Peak] [data-bytes]")).toHaveAttribute("data-bytes", String(peak.total));
  await report.getByRole("link", { name: "Steps" }).first().click();
  await expect(report.getByRole("region", { name: "Steps", exact: true })).toBeVisible();
});
