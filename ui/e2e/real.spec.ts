// Every view on real trainings: TensorFlow on the CPU, graph and eager mode. What the page shows is what the command line says.
import type { Locator, Page } from "@playwright/test";
import { expect, test, visit } from "./page";
import { json, noTensorFlow, trace } from "./program";

test.skip(noTensorFlow !== "", noTensorFlow);

interface Step { number: number; peak: number; after: number; allocated: number; allocs: number; forward_peak: number; backward_peak: number; optimizer_peak: number }
interface LedgerLine { name: string; bytes: number; residual: number }
interface Layer { name: string; total: number; own_peak: number; parameters: number; gradients: number; activations: number; optimizer_state: number }

/** Exact bytes of a cell: they stand in its title. */
const bytesIn = async (cell: Locator) => Number(((await cell.getAttribute("title")) ?? "").replace(/[^\d-]/g, ""));
/** The cells of a table's column, by the words of its head. */
async function column(page: Page, table: string, head: string): Promise<Locator[]> {
  const region = page.getByRole("region", { name: table, exact: true });
  const heads = await region.locator("thead th").allTextContents();
  const at = heads.findIndex((text) => text.replace(/[↓↑]/g, "").trim().startsWith(head));
  expect(at, `${head} in ${heads.join(" | ")}`).toBeGreaterThanOrEqual(0);
  return region.locator(`tbody tr td:nth-child(${at + 1}), tbody tr th:nth-child(${at + 1})`).all();
}
const columnBytes = async (page: Page, table: string, head: string) => Promise.all((await column(page, table, head)).map(bytesIn));
const columnText = async (page: Page, table: string, head: string) => Promise.all((await column(page, table, head)).map(async (cell) => ((await cell.textContent()) ?? "").trim()));

for (const view of ["overview", "timeline", "timeline?by=layer", "timeline?mode=steps", "peak", "peak?mode=tree", "peak?mode=flame", "steps", "layers", "leaks", "map", "oom", "source", "diff", "start"]) {
  test(`${view} opens`, async ({ page, real }) => {
    await visit(page, real, view);
    await expect(page.locator("main h1").first()).not.toBeEmpty();
    await expect(page.locator("main [role=alert]")).toHaveCount(0);
  });
}

test("overview: key figures, ledger, sentence", async ({ page, real }) => {
  await visit(page, real, "overview");
  const peak = json("peak", trace("graph"), "--at", "peak") as { total: number };
  const steady = json("peak", trace("graph"), "--at", "steady") as { total: number };
  await expect(page.locator("[data-figure='Steady peak'] [data-bytes]")).toHaveAttribute("data-bytes", String(steady.total));
  await expect(page.locator("[data-figure=Peak] [data-bytes]")).toHaveAttribute("data-bytes", String(peak.total));
  for (const [button, at] of [["Steady peak", "steady"], ["Peak", "peak"], ["End", "end"]] as const) {
    await page.getByRole("button", { name: button, exact: true }).click();
    const ledger = json("ledger", trace("graph"), "--at", at) as { lines: LedgerLine[] };
    expect(ledger.lines.length).toBeGreaterThan(1);
    for (const line of ledger.lines) {
      const name = line.name === "live blocks by category" ? "categories" : line.name;
      await expect(page.locator(`[data-ledger="${name}" i] [data-bytes]`).first(), `${line.name}, ${at}`).toHaveAttribute("data-bytes", String(line.bytes));
    }
  }
});

test("overview: what would read 0.0 beside a bar is counted in one line", async ({ page, real }) => {
  await visit(page, real, "overview");
  const { lines } = json("ledger", trace("graph"), "--at", "steady") as { lines: { parts: { name: string; value: number }[] }[] };
  const tiny = lines.at(-1)!.parts.filter((part) => part.value > 0 && part.value < 2 ** 20 / 20);
  expect(tiny.length).toBeGreaterThan(1);
  const row = page.locator("[data-ledger=Categories]");
  await expect(row.locator("[data-tiny]")).toHaveText(`${tiny.length} more, less than 0.1 each`);
  for (const link of await row.locator(".aside a").allTextContents()) expect(link).not.toMatch(/ 0\.0$/);
});

test("steps: every column of every step", async ({ page, real }) => {
  await visit(page, real, "steps");
  const steps = (json("steps", trace("graph")) as { steps: { steps: Step[]; sentence: string } }).steps;
  await expect(page.locator("[data-sentence]")).toHaveText(steps.sentence);
  expect(steps.steps.length).toBeGreaterThan(20);
  for (const category of ["activations", "activation gradients"]) await expect(page.locator(".chart .legend")).toContainText(category);
  const shown = (await columnText(page, "Steps", "Step")).map(Number);
  expect(shown).toEqual(steps.steps.map((step) => step.number));
  const heads: [string, (step: Step) => number][] = [["Peak", (s) => s.peak], ["Left after", (s) => s.after], ["Allocated", (s) => s.allocated], ["Forward peak", (s) => s.forward_peak], ["Backward peak", (s) => s.backward_peak], ["Optimizer peak", (s) => s.optimizer_peak]];
  for (const [head, value] of heads) expect(await columnBytes(page, "Steps", head), head).toEqual(steps.steps.map(value));
  expect((await columnText(page, "Steps", "Allocations")).map((text) => Number(text.replace(/,/g, "")))).toEqual(steps.steps.map((step) => step.allocs));
});

test("layers: names as in model.summary(), with their bytes", async ({ page, real }) => {
  await visit(page, real, "layers");
  const layers = json("layers", trace("graph"), "--at", "steady") as { rows: Layer[]; sentence: string };
  await expect(page.locator("[data-sentence]")).toHaveText(layers.sentence);
  const names = await columnText(page, "Layers", "Layer");
  // In the order of the model; what is not a layer is grouped by its purpose.
  const model = ["(input)", "conv2d", "batch_normalization", "conv2d_1", "max_pooling2d", "conv2d_2", "global_average_pooling2d", "dense", "dense_1"];
  expect(names.filter((name) => model.includes(name))).toEqual(model);
  const groups = ["(loss and metrics)", "(optimizer)", "(sequential)", "outside any layer"];
  expect(names.filter((name) => !model.includes(name) && !groups.includes(name))).toEqual([]);
  expect(names.map((name) => (name === "outside any layer" ? "" : name))).toEqual(layers.rows.map((row) => row.name));
  expect(await columnBytes(page, "Layers", "At this instant")).toEqual(layers.rows.map((row) => row.total));
  expect(await columnBytes(page, "Layers", "Own peak")).toEqual(layers.rows.map((row) => row.own_peak));
  expect(await columnBytes(page, "Layers", "Parameters")).toEqual(layers.rows.map((row) => row.parameters));
  expect(await columnBytes(page, "Layers", "Activations")).toEqual(layers.rows.map((row) => row.activations));
});

test("peak: rows add up to the command line's total, filtered too", async ({ page, real }) => {
  for (const [address, ...args] of [["peak?at=steady", "--at", "steady"], ["peak?at=peak", "--at", "peak"], ["peak?at=steady&f=category%3Aactivations", "--at", "steady", "--where", "category:activations"]] as const) {
    await visit(page, real, address);
    const said = json("peak", trace("graph"), ...args) as { total: number; count: number };
    expect(Number(await page.locator("[data-total]").getAttribute("data-total")), address).toBe(said.total);
    const region = page.getByRole("region", { name: /Live blocks|blocks/i }).first();
    expect(await region.locator("tbody tr").count(), address).toBeGreaterThan(0);
  }
});

test("leaks and OOM say the command line's sentence", async ({ page, real }) => {
  for (const [view, verb] of [["leaks", "leaks"], ["oom", "oom"]] as const) {
    await visit(page, real, view);
    await expect(page.locator("[data-sentence]"), view).toHaveText((json(verb, trace("graph")) as { sentence: string }).sentence);
  }
});

test("diff: graph against eager mode, figures and layers", async ({ page, real }) => {
  await visit(page, real, "diff?with=1&table=1");
  const said = json("diff", trace("graph"), trace("eager")) as { sentence: string; layers: { key: string; bytes: (number | null)[]; change: number }[]; sides: { peak: number; steady_peak: number }[] };
  await expect(page.locator("[data-sentence]")).toHaveText(said.sentence);
  const names = await columnText(page, "Difference by layer", "layer");
  const changes = await columnBytes(page, "Difference by layer", "B − A");
  for (const row of said.layers) {
    const at = names.indexOf(row.key === "" ? "outside any layer" : row.key);
    expect(at, row.key).toBeGreaterThanOrEqual(0);
    expect(Math.abs(changes[at]!), row.key).toBe(Math.abs(row.change));
  }
  await visit(page, real, "diff?with=1");
  for (const [figure, key] of [["Steady peak", "steady_peak"], ["Peak", "peak"]] as const) {
    const cells = page.locator(`[data-diff="${figure}"] td[title]`);
    expect([await bytesIn(cells.nth(0)), await bytesIn(cells.nth(1))]).toEqual(said.sides.map((side) => side[key]));
  }
});

test("source: the bytes beside the lines are those of peak --by line", async ({ page, real }) => {
  await visit(page, real, "source");
  const lines = json("peak", trace("graph"), "--at", "steady", "--by", "line") as { groups: { keys: string[]; bytes: number }[] };
  const ours = lines.groups.filter((group) => /^train\.py:\d+$/.test(group.keys[0] ?? ""));
  expect(ours.length).toBeGreaterThan(3);
  for (const group of ours) await expect(page.locator(`[data-line="${group.keys[0]!.split(":")[1]}"]`)).toHaveAttribute("data-bytes", String(group.bytes));
  const most = ours.reduce((a, b) => (b.bytes > a.bytes ? b : a));
  await expect(page.locator("[data-sentence]")).toHaveText(new RegExp(`^${most.keys[0]!.replace(".", "\\.")} holds the most: .* at the steady peak\\.$`));
  const conv = page.locator("main tr", { hasText: "keras.layers.Conv2D(32, 3" }).first();
  await expect(conv).toHaveAttribute("data-bytes", /\d+/);
});
