// The transport of a report: answers that were written into it, and those that follow from the blocks in it.
import type { Blocks, Instant, Layers, Ooms, Overview, Peak, PoolMap, Source, Stack, Steps, Suggestions } from "../gen/rpc";
import { NotInReport, requestKey, withoutFilter, type Transport } from "../rpc/client";
import type { EmbeddedTransport } from "../rpc/embedded";
import { instantOf, peakOf, type When } from "./answers";
import { compileFilter } from "./filter";
import { RunBlocks } from "./live";
import { stackOf } from "./stack";
import { layersOf, stepsOf } from "./steps";
import { blockOf, mapOf, oomsOf, placeOf, rangeOf, sourceOf } from "./views";

const FIELDS = ["category", "layer", "op", "line", "dtype", "shape", "phase", "step", "pool", "known"];
const MOST_SUGGESTIONS = 12;

export class ReportTransport implements Transport {
  readonly kind = "report" as const;
  private readonly runs = new Map<string, Promise<RunBlocks>>();
  constructor(private readonly written: EmbeddedTransport) {}

  async ask(key: string): Promise<unknown> {
    try {
      return await this.written.ask(key);
    } catch (problem) {
      if (!(problem instanceof NotInReport)) throw problem;
      const [name, query] = key.split("?");
      const params = new URLSearchParams(query);
      const answer = (await this.computed(name!, params)) ?? (await this.unfiltered(name!, params));
      if (answer === null) throw problem;
      return answer;
    }
  }

  /** The answer about all blocks, marked as such: the view says so. */
  private async unfiltered(name: string, params: URLSearchParams): Promise<unknown> {
    if (!params.get("filter")) return null;
    const all = await this.find<object>(name, Object.fromEntries([...params].filter(([key]) => key !== "filter")));
    if (!all) return null;
    const copy = { ...all };
    withoutFilter.add(copy);
    return copy;
  }

  private async computed(name: string, params: URLSearchParams): Promise<unknown> {
    const trace = params.get("trace") ?? "0", filter = params.get("filter") ?? "", at = params.get("at") ?? "";
    if (name === "suggest") return this.suggest(trace, params.get("text") ?? "");
    if (name === "stack") return this.stack(trace, params);
    if (name === "steps" || name === "ooms" || name === "range" || name === "place" || name === "block") return this.ofRun(name, trace, params);
    if (!["peak", "instant", "layers", "source", "map"].includes(name)) return null;
    const when = await this.when(trace, at);
    const run = when && ((await this.blocks(trace)) ?? (await this.blocks(trace, at)));
    if (!when || !run) return null;
    if (name === "layers" || name === "source" || name === "map") return this.ofInstant(name, run, when, trace, params);
    return name === "instant" ? instantOf(run, when, filter) : peakOf(run, when, params.get("open") ?? "", filter, await this.categories(trace));
  }

  /** Answers about the run as a whole. */
  private async ofRun(name: "steps" | "ooms" | "range" | "place" | "block", trace: string, params: URLSearchParams): Promise<unknown> {
    const run = await this.blocks(trace), filter = params.get("filter") ?? "", number = (key: string) => Number(params.get(key));
    const written = name === "ooms" ? await this.find<Ooms>("ooms", { trace }) : null;
    if (written?.ooms.length === 0) return written; // with any filter
    if (!run) return null;
    if (name === "block") return blockOf(run, number("id"));
    const steps = await this.find<Steps>("steps", { trace });
    if (name === "range") return rangeOf(run, steps, number("t0"), number("t1"), filter);
    if (name === "place") {
      const link = (moment: number) => this.linkAt(run, steps, moment);
      return placeOf(run, steps, (await this.when(trace, "peak"))?.moment ?? null, number("moment"), params.get("go") ?? "", link);
    }
    if (name === "steps") return steps && !steps.empty ? stepsOf(run, steps, filter) : null;
    return written && oomsOf(run, written, await Promise.all(written.ooms.map((oom) => this.when(trace, oom.at))), filter);
  }
  private linkAt(run: RunBlocks, steps: Steps | null, moment: number): string {
    const t = run.all.t[moment]!, step = stepAt(steps, t);
    return linkOf(run, moment, t, step < 0 ? null : steps!.number[step]!, step < 0 ? null : t - steps!.t0[step]!);
  }

  private async ofInstant(name: "layers" | "source" | "map", run: RunBlocks, when: When, trace: string, params: URLSearchParams): Promise<unknown> {
    const at = params.get("at") ?? "", filter = params.get("filter") ?? "";
    if (name === "map") {
      const written = await this.find<PoolMap>("map", { trace, at, pool: params.get("pool") ?? "" });
      return written && mapOf(run, written, filter);
    }
    const all = async <T>(extra: object) => (await Promise.all([at, "steady", "peak", "end"].map((each) => this.find<T>(name, { trace, at: each, ...extra })))).filter((each) => each !== null);
    if (name === "source") {
      const file = params.get("file") ?? "";
      return sourceOf(run, [...(await all<Source>({ file })), ...(await all<Source>({}))], when, at, file, filter);
    }
    const [written] = await all<Layers>({});
    return written && !written.empty && run.all.t.length ? layersOf(run, written, await this.find<Steps>("steps", { trace }), when, at, filter) : null;
  }

  private async find<T>(name: string, params: object): Promise<T | null> {
    return this.written.ask(requestKey(name, params)).then((answer) => answer as T, () => null);
  }
  private async blocks(trace: string, at = ""): Promise<RunBlocks | null> {
    const key = `${trace} ${at}`;
    if (!this.runs.has(key)) {
      const found = await this.find<Blocks>("blocks", { trace, at });
      if (!found) return null;
      this.runs.set(key, Promise.resolve(new RunBlocks(found)));
    }
    return this.runs.get(key)!;
  }

  /** The bands of the timeline are the categories in the order of stacks. */
  private async categories(trace: string): Promise<string[]> {
    return (await this.find<Steps>("steps", { trace }))?.categories ?? [];
  }

  private async when(trace: string, at: string): Promise<When | null> {
    const same = (await this.find<Instant>("instant", { trace, at })) ?? (await this.find<Peak>("peak", { trace, at, open: "category,layer,op,line" }));
    if (same) {
      const instant = same as Partial<Instant>;
      return { moment: same.moment, t: same.t, note: same.note, atLeast: same.at_least, link: instant.link ?? at, step: instant.step ?? null, stepUs: instant.step_us ?? null };
    }
    const run = await this.blocks(trace);
    if (!run) return null;
    const steps = await this.find<Steps>("steps", { trace });
    const moment = momentOf(run, steps, at);
    if (moment === null || moment >= run.all.t.length) return null;
    const t = run.all.t[moment]!;
    const step = stepAt(steps, t);
    const stepUs = step < 0 ? null : t - steps!.t0[step]!;
    return { moment, t, note: "", atLeast: false, link: linkOf(run, moment, t, step < 0 ? null : steps!.number[step]!, stepUs), step: step < 0 ? null : steps!.number[step]!, stepUs };
  }

  private async suggest(trace: string, text: string): Promise<Suggestions | null> {
    const run = (await this.blocks(trace)) ?? (await this.blocks(trace, "steady")) ?? (await this.blocks(trace, "peak"));
    if (!run) return null;
    let error = "";
    try { compileFilter(text); } catch (problem) { error = (problem as Error).message; }
    const word = text.split(/\s+/).pop() ?? "";
    const [field, value] = word.includes(":") ? [word.slice(0, word.indexOf(":")), word.slice(word.indexOf(":") + 1)] : ["", word];
    const bytes = new Map<string, number>();
    const peak = (await this.when(trace, "peak"))?.moment ?? 0;
    for (const block of word ? run.liveAt(peak, "") : [])
      for (const each of field ? [field] : FIELDS) {
        const text = run.text(block, each);
        const shown = `${each}:${each === "category" ? text.replace(/ /g, "_") : /[\s()"]/.test(text) ? JSON.stringify(text) : text}`;
        if (text && text.toLowerCase().includes(value!.toLowerCase())) bytes.set(shown, (bytes.get(shown) ?? 0) + run.bytes(block));
      }
    const items = [...bytes].sort((a, b) => b[1] - a[1]).slice(0, MOST_SUGGESTIONS).map(([text, bytes]) => ({ text, bytes }));
    return { items, error };
  }

  private async stack(trace: string, params: URLSearchParams): Promise<Stack | null> {
    const run = await this.blocks(trace), overview = await this.find<Overview>("overview", { trace });
    if (!run || !overview) return null;
    const by = params.get("by") || "category", filter = params.get("filter") ?? "";
    const level = Number(params.get("level")), tile = Number(params.get("tile"));
    const names = await this.bands(trace, by, overview);
    if (!names) return null;
    const t0 = tile * 2 ** level, t1 = Math.min((tile + 1) * 2 ** level, overview.end_t + 1);
    if (t0 >= t1) return null;
    return stackOf(run, by, names, filter, t0, Math.min(t1, overview.end_t));
  }
  /** As in the tile of the whole run, which every report has. */
  private async bands(trace: string, by: string, overview: Overview): Promise<string[] | null> {
    for (let level = 10; level <= 50; level++) {
      if (2 ** level <= overview.end_t) continue;
      const whole = await this.find<Stack>("stack", { trace, by, level, tile: 0 });
      if (whole) return whole.groups.map((group) => group.name);
    }
    return null;
  }
}

function stepAt(steps: Steps | null, t: number): number {
  return steps ? steps.t0.findLastIndex((begin, i) => begin <= t && t <= steps.t1[i]!) : -1;
}

/** As src/analyze/query/instant_text.cpp writes instants. Of steps: those that the step's number alone names. */
function momentOf(run: RunBlocks, steps: Steps | null, at: string): number | null {
  const plain = /^moment:(\d+)$/.exec(at);
  if (plain) return Number(plain[1]);
  if (at === "start") return 0;
  const [text, nth] = at.split("#");
  const ofStep = /^step:(\d+)\+([\d.]+)ms$/.exec(text!), time = /^([\d.]+)s$/.exec(text!);
  let t: number;
  if (ofStep && steps) {
    const step = steps.number.indexOf(Number(ofStep[1]));
    if (step < 0) return null;
    t = Math.round(steps.t0[step]! + Number(ofStep[2]) * 1e3);
  } else if (time) t = Math.round(Number(time[1]) * 1e6);
  else return null;
  return nth ? run.momentAt(t - 1) + Number(nth) : run.momentAt(t);
}

function linkOf(run: RunBlocks, moment: number, t: number, step: number | null, stepUs: number | null): string {
  if (moment === 0) return "start";
  const text = step !== null && step > 0 && stepUs !== null ? `step:${step}+${(stepUs / 1e3).toFixed(3)}ms` : `${(t / 1e6).toFixed(6)}s`;
  return moment === run.momentAt(t) ? text : `${text}#${moment - run.momentAt(t - 1)}`;
}
