// What the source of an imported trace does not contain is on the page and in the report, as the command line says it.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, settled, test, visit } from "./page";
import { serve, trace, vramscope } from "./program";

test("the overview says what an import lacks", async ({ page }) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "imported-"));
  const log = path.join(folder, "rmm.csv"), report = path.join(folder, "report.html");
  writeFileSync(log, "Thread,Time,Action,Pointer,Size,Stream\n7,00:00:01.000000,allocate,0x7f0000000000,2048,0x0\n");
  const said = /imported from (.*)\n/.exec(spawnSync(vramscope, ["peak", log], { encoding: "utf8" }).stderr)![1]!;
  expect(said).toContain("does not contain");
  const served = await serve(log, trace("train"));
  await visit(page, served, "overview");
  await expect(page.locator("[data-source]")).toHaveText(`This trace was imported from ${said}.`);
  expect(spawnSync(vramscope, ["report", log, "-o", report]).status).toBe(0);
  await page.goto(pathToFileURL(report).href);
  await settled(page);
  await expect(page.locator("[data-source]")).toHaveText(`This trace was imported from ${said}.`);
  served.stop();
  const recorded = await serve(trace("train"));
  await visit(page, recorded, "overview");
  await expect(page.locator("[data-source]")).toHaveCount(0);
  recorded.stop();
  rmSync(folder, { recursive: true, force: true });
});
