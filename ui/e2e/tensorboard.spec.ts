// TensorBoard itself, with our tab and our scalars.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test as base } from "@playwright/test";
import { build, data, json, noTensorFlow, python, root, trace, vramscope } from "./program";

const logs = path.join(data, "logs"), plugins = path.join(data, "plugins"), run = path.join(logs, "today");

// TensorBoard finds plugins among what is installed: the package is installed as far as it can see.
function install(): void {
  const info = path.join(plugins, "vramscope-0.dist-info");
  mkdirSync(info, { recursive: true });
  writeFileSync(path.join(info, "METADATA"), "Metadata-Version: 2.1\nName: vramscope\nVersion: 0\n");
  writeFileSync(path.join(info, "entry_points.txt"), "[tensorboard_plugins]\nvramscope = vramscope.tensorboard_plugin:VramscopePlugin\n");
}

const test = base.extend<object, { address: string }>({
  address: [async ({}, use) => {
    rmSync(logs, { recursive: true, force: true });
    mkdirSync(run, { recursive: true });
    install();
    copyFileSync(trace("train"), path.join(run, "run.vram"));
    execFileSync(vramscope, ["export", trace("train"), "--to", "tensorboard", "-o", path.join(run, "events.out.tfevents.1.run")], { stdio: "pipe" });
    const child = spawn(python, ["-m", "tensorboard.main", "--logdir", logs, "--host", "127.0.0.1", "--port", "0"], {
      env: { ...process.env, PYTHONPATH: `${plugins}:${path.join(root, "python")}`, VRAMSCOPE_BUILD: build }, stdio: ["ignore", "ignore", "pipe"] });
    await use(await new Promise<string>((resolve, reject) => {
      let said = "";
      child.stderr.on("data", (part: Buffer) => {
        said += part.toString();
        const at = said.match(/ at (http:\S+)/);
        if (at) resolve(at[1]!);
      });
      child.on("exit", (code) => reject(new Error(`TensorBoard ended with ${code}: ${said.slice(-2000)}`)));
    }));
    child.kill("SIGTERM");
  }, { scope: "worker" }],
});
test.skip(noTensorFlow !== "", noTensorFlow);

test("the tab shows the report of a run", async ({ page, address }) => {
  await page.goto(`${address}#vramscope`);
  await expect(page.getByText("Memory", { exact: true }).first()).toBeVisible();
  const tab = page.frameLocator("iframe:visible");
  await expect(tab.getByLabel("Run")).toHaveValue("today/run.vram");
  const report = tab.frameLocator("iframe[title='vramscope report']");
  await expect(report.locator("main h1").first()).not.toBeEmpty();
  const { overview } = json("summary", trace("train")) as { overview: { sentence: string } };
  await expect(report.locator("main")).toContainText(overview.sentence);
});

test("the scalars are those of the steps", async ({ page, address }) => {
  await page.goto(`${address}#timeseries`);
  const tag = "memory/train/GPU 0/peak (MiB)";
  await expect(page.getByText("memory", { exact: false }).first()).toBeVisible();
  const points = await page.evaluate(async (wanted) => {
    const query = new URLSearchParams({ run: "today", tag: wanted });
    return await (await fetch(`data/plugin/scalars/scalars?${query}`)).json() as number[][];
  }, tag);
  const { steps } = json("steps", trace("train")) as { steps: { steps: { number: number; peak: number }[] } };
  expect(points.map(([, step, value]) => [step, value! * 2 ** 20])).toEqual(steps.steps.map((step) => [step.number, step.peak]));
});
