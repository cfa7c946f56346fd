// The filter stays in its box from view to view. In a saved report, every view shows what a server shows under that filter, or what
// it shows without one and, in one line, that it does not apply it.
import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import type { Page } from "@playwright/test";
import { VIEW_TABLE, type View } from "../src/gen/views";
import { expect, settled, test, watch } from "./page";
import { data, generate, serve, trace, vramscope } from "./program";

const FILTERS = ["layer:dense_2 or size>=1MiB", "layer:nowhere"];
/** From the blocks in it, the page works out a filter. `small` is a report that has no room for them. */
const REPORTS: Record<string, { runs: [name: string, kind: string, ...settings: string[]][]; small?: boolean }> = {
  "of two runs, one of which failed": { runs: [["failed", "killed"], ["tuned", "autotune", "steps=24", "layers=6"]] },
  "too small for its blocks": { runs: [["crowded", "killed", "leak=65536", "steps=1000"]], small: true },
};

/** What the program refuses names the size of the page without any answer. */
function smallestBudget(traces: string[]): string {
  const { stderr } = spawnSync(vramscope, ["report", ...traces, "-o", path.join(data, "never.html"), "--report-budget", "1"], { encoding: "utf8" });
  return String(Number(stderr.match(/takes (\d+) bytes/)![1]) + 101_000);
}

interface Shown { cells: Record<string, string[]>; excuses: string[] }

/** What a view says in figures: its totals, and each cell of its tables under the head of its column. */
async function shown(page: Page, view: View, filter: string): Promise<Shown> {
  await page.bringToFront(); // behind the other page it would draw one frame per second
  await page.evaluate((hash) => { location.hash = hash; }, `${view}?${view === "oom" ? "" : "table=1&"}f=${encodeURIComponent(filter)}`);
  await settled(page);
  const cells = await page.locator("main").evaluate((main) => {
    const out: Record<string, string[]> = {};
    const put = (key: string, text: string) => { (out[key] ??= []).push(text.replace(/\s+/g, " ").trim()); };
    main.querySelectorAll("[data-total]").forEach((each) => put("total", each.getAttribute("data-total")!));
    main.querySelectorAll("table").forEach((table, n) => {
      const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent!.replace(/[↑↓]/g, "").trim());
      table.querySelectorAll("tbody tr").forEach((row) => row.querySelectorAll("td").forEach((cell, i) => put(`${n} ${heads[i]}`, cell.innerText)));
    });
    return out;
  });
  return { cells, excuses: await page.locator("[data-unfiltered] > span:first-child").allInnerTexts() };
}

/** The page says that it lacks these: only the program works them out for filtered steps. */
function withoutRemarks({ cells }: Shown): Shown["cells"] {
  return Object.fromEntries(Object.entries(cells).filter(([column]) => !/^0 (note|.* peak)$/.test(column)));
}

for (const [name, { runs, small }] of Object.entries(REPORTS))
  test(`a report ${name} applies the filter in every view or says that it does not`, async ({ page, context }) => {
    const traces = runs.map(([run, ...settings]) => { generate(`filters-${run}`, ...settings); return trace(`filters-${run}`); });
    const file = path.join(data, `filters-${runs[0]![0]}.html`);
    execFileSync(vramscope, ["report", ...traces, "-o", file, ...(small ? ["--report-budget", smallestBudget(traces)] : [])], { stdio: "pipe" });
    const server = await serve(...traces), live = await context.newPage(), problems = watch(live);
    await page.goto(`file://${file}`);
    await live.goto(server.address);
    for (const { name: view, unfiltered } of VIEW_TABLE)
      for (const filter of FILTERS) {
        const which = `${view}, ${filter}`, report = await shown(page, view, filter);
        let truth = await shown(live, view, filter);
        expect(truth.excuses.length, which).toBe(unfiltered ? 1 : 0);
        expect(report.excuses.length, which).toBeLessThanOrEqual(1);
        if (report.excuses.length) expect(report.excuses[0], which).toMatch(/ (is|are) about all blocks: the filter .* is not applied here\.$/);
        if (report.excuses.length && !unfiltered) truth = await shown(live, view, "");
        const isFiltered = report.excuses.length === 0;
        if (view === "steps" && isFiltered) expect(withoutRemarks(report), which).toEqual(withoutRemarks(truth));
        else expect(report.cells, which).toEqual(truth.cells);
      }
    expect(problems).toEqual([]);
    server.stop();
  });
