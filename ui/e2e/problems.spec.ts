import { expect, test } from "./page";
import { json, trace } from "./program";

test("a leak is named, with what grows", async ({ open, page }) => {
  const leaks = json("leaks", trace("leak")) as { verdict: string };
  await open("leaks?trace=1");
  expect(leaks.verdict).toBe("growing");
  await expect(page.locator("[data-verdict=growing]")).toBeVisible();
  await expect(page.getByRole("region", { name: "What grows" }).locator("tbody tr").first()).toBeVisible();
});

test("out of memory has a verdict and leads to its proof", async ({ open, page }) => {
  await open("oom?trace=2");
  await expect(page.locator("[data-cause='too big']")).toContainText("yes");
  await page.locator("main").getByRole("link", { name: "Pool map" }).click();
  await expect.poll(() => page.url()).toContain("#map?trace=2&at=oom:1");
  await expect(page.locator("main h1")).not.toBeEmpty();
});

test("no steps: why, and what to do", async ({ open, page }) => {
  await open("steps?trace=3");
  await expect(page.locator("[data-note]")).toContainText("No steps were found");
  await expect(page.locator("[data-note]")).toContainText("call vramscope.step()");
});

test("several traces have a start page, two can be compared", async ({ open, page }) => {
  await open("start");
  await expect(page.getByRole("region", { name: "Traces" }).locator("tbody tr")).toHaveCount(5);
  await open("diff?trace=0&with=1");
  await expect(page.locator("[data-diff='Peak']")).toBeVisible();
  const sentence = await page.locator("[data-sentence]").textContent();
  await page.keyboard.press("x");
  await expect(page.locator("[data-sentence]")).not.toHaveText(sentence ?? "");
});
