import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { data, generate, record, trace, vramscope } from "./program";

// Generated and recorded once for all tests.
export default async function setup(): Promise<() => void> {
  rmSync(data, { recursive: true, force: true });
  const recorded = Promise.all([record("graph"), record("eager", "--eager")]);
  generate("train", "autotune", "steps=24", "layers=6");
  generate("leak", "leak", "steps=40");
  generate("oom", "toobig");
  generate("fragmented", "fragmented");
  generate("hostile", "hostile");
  generate("long", "clean", "steps=1000"); // more than one chunk
  generate("nosteps", "nomarks", "steps=2");
  execFileSync(vramscope, ["report", trace("train"), "-o", path.join(data, "train.html")], { stdio: "pipe" });
  execFileSync(vramscope, ["report", trace("hostile"), "-o", path.join(data, "hostile.html")], { stdio: "pipe" });
  const folders = (await recorded).flat();
  return () => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true }));
}
