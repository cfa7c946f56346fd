// A page on a served trace. Every test fails if the page reports an error, breaks its policy or asks for anything outside.
import { test as base, expect, type Page } from "@playwright/test";
import { noTensorFlow, serve, trace, type Served } from "./program";

interface Fixtures {
  open: (view: string) => Promise<void>;
}
interface WorkerFixtures {
  served: Served;
  real: Served;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  served: [async ({}, use) => {
    const served = await serve(trace("train"), trace("leak"), trace("oom"), trace("nosteps"), trace("fragmented"));
    await use(served);
    served.stop();
  }, { scope: "worker" }],
  real: [async ({}, use) => {
    const names = noTensorFlow ? ["train", "leak"] : ["graph", "eager"]; // tests of real trainings are then left out
    const served = await serve(...names.map(trace));
    await use(served);
    served.stop();
  }, { scope: "worker" }],
  page: async ({ page }, use) => {
    const problems = watch(page);
    await use(page);
    expect(problems).toEqual([]);
  },
  open: async ({ page, served }, use) => {
    await page.goto(served.address);
    await expect(page.locator("nav [aria-current]")).toBeVisible();
    await use(async (view) => {
      await page.evaluate((hash) => { location.hash = hash; }, view);
      await settled(page);
    });
  },
});

export function watch(page: Page): string[] {
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => { if (message.type() === "error") problems.push(`console: ${message.text()}`); });
  page.on("request", (request) => { if (!/^(http:\/\/127\.0\.0\.1:|data:|file:|blob:)/.test(request.url())) problems.push(`outside: ${request.url()}`); });
  return problems;
}

/** Opens a view of a server anew: nothing is left of the one before. */
export async function visit(page: Page, served: Served, view: string): Promise<void> {
  await page.goto(`${served.address}#${view}`);
  await page.reload();
  await settled(page);
}

/** The view has its answer: a sentence, or a note in its place; and nothing is on its way any more. */
export async function settled(page: Page): Promise<void> {
  await expect(page.locator("main h1, main [data-note]").first()).toBeVisible();
  const frame = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await frame();
  await expect(page.locator("html[data-pending='0']")).toHaveCount(1);
  await frame(); // what has come is drawn, and may have asked for more
  await expect(page.locator("html[data-pending='0']")).toHaveCount(1);
}

export { expect };
