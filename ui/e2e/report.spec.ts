// The report: one file, opened from a file, with the network cut.
import { statSync } from "node:fs";
import path from "node:path";
import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect } from "@playwright/test";
import { settled, watch } from "./page";
import { data, json, trace } from "./program";

const REPORT = `file://${path.join(data, "train.html")}`;
const test = base.extend({
  page: async ({ page, context }, use) => {
    await context.setOffline(true);
    const problems = watch(page);
    await use(page);
    expect(problems).toEqual([]);
  },
});

test("is small and opens at once", async ({ page }) => {
  expect(statSync(path.join(data, "train.html")).size).toBeLessThan(5_000_000);
  // In processor time of the page, which does not depend on what else runs on the machine.
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const busy = async () => (await session.send("Performance.getMetrics")).metrics.find((each) => each.name === "TaskDuration")!.value;
  await page.goto("about:blank");
  const before = await busy();
  await page.goto(REPORT);
  await settled(page);
  expect(await busy() - before, "seconds until everything is drawn").toBeLessThan(1);
});

for (const view of ["overview", "timeline", "peak", "peak?at=peak&mode=flame", "steps", "layers", "leaks", "map?at=peak", "oom", "source"]) {
  test(`has ${view}`, async ({ page }) => {
    await page.goto(`${REPORT}#${view}`);
    await settled(page);
    await expect(page.locator("main h1").first()).not.toBeEmpty();
    await expect(page.locator("main [role=alert]")).toHaveCount(0);
    await expect(page.locator("main")).not.toContainText("not in this report");
  });
}

test("shows the figures of the command line", async ({ page }) => {
  const peak = json("peak", trace("train")) as { total: number };
  await page.goto(`${REPORT}#peak`);
  await settled(page);
  expect(Number(await page.locator("[data-total]").getAttribute("data-total"))).toBe(peak.total);
});

test("of one run offers no controls of a diff, but says how to get one", async ({ page }) => {
  await page.goto(`${REPORT}#diff`);
  await settled(page);
  await expect(page.locator("[data-note]")).toContainText("Only one run is open");
  await expect(page.locator("main select, main button")).toHaveCount(0);
});

test("is readable by everybody", async ({ page }) => {
  await page.goto(REPORT);
  await settled(page);
  expect((await new AxeBuilder({ page }).analyze()).violations.map((v) => v.id)).toEqual([]);
});

test("says what it does not hold, and where it is", async ({ page }) => {
  await page.goto(`${REPORT}#peak?at=moment:17`);
  await settled(page);
  await expect(page.locator("[data-note]")).toContainText("not in this report");
  await expect(page.locator("[data-note]")).toContainText("vramscope serve");
});

test("no link of it leads to what it does not hold", async ({ page }) => {
  for (const view of ["overview", "timeline", "peak", "steps", "layers", "leaks", "map", "oom", "source"]) {
    await page.goto(`${REPORT}#${view}`);
    await page.reload();
    await settled(page);
    const links = await page.locator("main a[href]").evaluateAll((all) => [...new Set(all.map((a) => a.getAttribute("href") ?? ""))]);
    // Of many rows the first and the last: all others are made the same way.
    for (const link of links.length > 12 ? [...links.slice(0, 6), ...links.slice(-6)] : links) {
      await page.goto(`${REPORT}${link}`);
      await settled(page);
      await expect(page.locator("main"), `${view}: ${link}`).not.toContainText("not in this report");
    }
  }
});

test("every finding's proof is in it", async ({ page }) => {
  await page.goto(REPORT);
  await settled(page);
  const links = await page.locator("[data-finding] a.proof").evaluateAll((all) => all.map((a) => a.getAttribute("href") ?? ""));
  for (const link of links) {
    await page.goto(`${REPORT}${link}`);
    await page.reload();
    await settled(page);
    await expect(page.locator("main"), link).not.toContainText("not in this report");
  }
});
