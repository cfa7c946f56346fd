// Names of layers, ops and files that try to be more than names: in a real trace, on the server and in a report.
import path from "node:path";
import { expect, settled, test } from "./page";
import { data, serve, trace } from "./program";

const VIEWS = ["overview", "timeline?by=layer", "timeline?by=line&table=1", "peak?at=peak", "peak?mode=tree", "peak?mode=flame", "peak?table=1", "steps", "layers", "leaks", "map?at=peak", "map?table=1", "oom", "source", "start"];
const REPORT = path.join(data, "hostile.html");

for (const where of ["server", "report"] as const) {
  test(`in a ${where} they stay names`, async ({ page }) => {
    page.on("dialog", () => { throw new Error("a name opened a dialog"); });
    const served = where === "server" ? await serve(trace("hostile")) : null;
    try {
      for (const view of VIEWS) {
        await page.goto(`${served?.address ?? `file://${REPORT}`}#${view}`);
        await page.reload();
        await settled(page);
        expect(await page.evaluate(() => (window as { hacked?: number }).hacked), view).toBeUndefined();
        await expect(page.locator("img, main script, iframe"), view).toHaveCount(0);
        expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBeLessThanOrEqual(1440);
        const text = (await page.locator("body").innerText()) + (await page.title());
        expect(text.match(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e]/g), `${view}: control characters are written as escapes`).toBeNull();
        expect(text.match(/x{400,}/g), `${view}: long names are cut`).toBeNull();
      }
      await page.goto(`${served?.address ?? `file://${REPORT}`}#layers`);
      await page.reload();
      await expect(page.locator("main table")).toContainText("<img src=x onerror=");
    } finally {
      served?.stop();
    }
  });
}
