// Two runs that were named by their folders: what differs, by how much, and a budget so that it stays.
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, settled, test as base } from "./page";
import { data, generate, json, noTensorFlow, serve, trace, vramscope, type Served } from "./program";

const test = base.extend<object, { runs: Served & { folders: string[] } }>({
  runs: [async ({}, use, { workerIndex }) => {
    const folders = ["before", "after"].map((name) => path.join(data, `diff-${workerIndex}`, name));
    for (const [i, folder] of folders.entries()) {
      const name = `diff-${workerIndex}-${i}`;
      generate(name, "clean", "steps=30", i ? "layers=6" : "layers=4");
      mkdirSync(folder, { recursive: true });
      copyFileSync(trace(name), path.join(folder, `host-${1000 + i}-20260101T000000Z.vram`));
    }
    const served = await serve(...folders);
    await use({ ...served, folders });
    served.stop();
  }, { scope: "worker" }],
});

test("runs have the names of their folders, and reasons add up", async ({ page, runs }) => {
  await page.goto(`${runs.address}#diff?with=1`);
  await page.reload();
  await settled(page);
  const truth = json("diff", ...runs.folders) as { sentence: string; sides: { name: string; steady_peak: number }[]; categories: { key: string; change: number }[] };
  expect(truth.sides.map((side) => side.name)).toEqual(["before", "after"]);
  await expect(page.getByRole("combobox", { name: "Run A" }).locator("option").first()).toHaveText("before");
  const sentence = (await page.locator("main h1").textContent())!;
  expect(sentence).toBe(truth.sentence);
  // The parts in the sentence are the whole, each rounded on its own.
  const [whole, parts] = [sentence.match(/needs ([\d.]+) MiB (more|less)/)!, [...sentence.split(". By layer")[0]!.matchAll(/([+−])([\d.]+) MiB/g)]];
  expect(parts.length).toBeGreaterThan(0);
  const sum = parts.reduce((total, [, sign, size]) => total + (sign === "+" ? 1 : -1) * Number(size), 0);
  expect(Math.abs(sum - (whole[2] === "more" ? 1 : -1) * Number(whole[1]))).toBeLessThanOrEqual(0.05 * (parts.length + 1) + 0.001);
  expect(truth.categories.reduce((total, row) => total + row.change, 0)).toBe(truth.sides[1]!.steady_peak - truth.sides[0]!.steady_peak);
  for (const pass of ["Forward", "Backward"]) await expect(page.locator(`[data-pass=${pass}] .strong`)).not.toHaveText("–");
  await expect(page.locator("[data-differs]")).toBeVisible();
});

test("both steps have their passes, and no bar reaches a number", async ({ page, runs }) => {
  await page.goto(`${runs.address}#diff?with=1`);
  await page.reload();
  await settled(page);
  const text = await page.evaluate(async () => {
    const token = sessionStorage.getItem("vramscope-token");
    const answer = await fetch("/api/diff?a=0&b=1&at=steady&by=layer&filter=", { headers: { Authorization: `Bearer ${token}` } });
    return new TextDecoder("latin1").decode(await answer.arrayBuffer());
  });
  for (const pass of ["forward", "backward"]) expect(text.split(`"name":"${pass}"`).length - 1, `${pass} in A and in B`).toBe(2);
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await settled(page);
    const gaps = await page.locator(".butterfly tbody tr:has(.wing i)").evaluateAll((rows) => rows.map((row) => {
      const cell = row.querySelectorAll(".num")[1]!; // its number may fill it
      const bars = [...row.querySelectorAll(".wing:not(.left) i")].map((bar) => bar.getBoundingClientRect().right);
      return cell.getBoundingClientRect().left + parseFloat(getComputedStyle(cell).paddingLeft) - Math.max(...bars, 0);
    }));
    expect(gaps.length).toBeGreaterThan(3);
    expect(Math.min(...gaps), `${width}`).toBeGreaterThanOrEqual(6);
  }
});

test("what differs stands first", async ({ page, real }) => {
  test.skip(noTensorFlow !== "", noTensorFlow);
  await page.goto(`${real.address}#diff?with=1`);
  await page.reload();
  await settled(page);
  const row = page.locator("[data-differs-in=arguments] td");
  await expect(row.nth(1)).toHaveText("–");
  await expect(row.nth(2)).toHaveText("--eager");
  const above = await page.locator("[data-differs]").evaluate((table) => table.compareDocumentPosition(document.querySelector("main canvas")!) & Node.DOCUMENT_POSITION_FOLLOWING);
  expect(above).toBeTruthy();
});

test("Gate this writes a budget that its run meets and a larger one does not", async ({ page, runs }) => {
  const report = path.join(runs.folders[0]!, "../both.html");
  execFileSync(vramscope, ["report", ...runs.folders, "-o", report], { stdio: "pipe" });
  for (const address of [runs.address, `file://${report}`]) { // a page and a report
    await page.goto(`${address}#diff?with=1`);
    await page.reload();
    await settled(page);
    await page.getByRole("button", { name: "Gate this" }).click();
    await page.getByRole("group", { name: "Limits from" }).getByRole("button", { name: /before/ }).click();
    const shown = await page.locator("[data-budget]").textContent();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download vram.toml" }).click()]);
    expect(download.suggestedFilename()).toBe("vram.toml");
    const file = path.join(runs.folders[0]!, "../vram.toml");
    await download.saveAs(file);
    expect(readFileSync(file, "utf8")).toBe(shown);
    const check = (folder: string) => spawnSync(vramscope, ["check", folder, "--budget", file], { encoding: "utf8" });
    expect(check(runs.folders[0]!).status).toBe(0);
    const larger = check(runs.folders[1]!);
    expect(larger.status, larger.stderr).toBe(1);
    expect(larger.stdout).toContain("steady_peak");
    await page.keyboard.press("Escape");
    await expect(page.getByRole("dialog", { name: "Refuse runs" })).toHaveCount(0);
  }
});
