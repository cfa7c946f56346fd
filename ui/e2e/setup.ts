import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { data, generate, trace, vramscope } from "./program";

// Generated once for all tests; small enough to take no time.
export default function setup(): void {
  rmSync(data, { recursive: true, force: true });
  generate("train", "autotune", "steps=24", "layers=6");
  generate("leak", "leak", "steps=40");
  generate("oom", "toobig");
  generate("nosteps", "nomarks", "steps=2");
  execFileSync(vramscope, ["report", trace("train"), "-o", path.join(data, "train.html")], { stdio: "pipe" });
}
