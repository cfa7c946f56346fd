// The built program and generated traces, as every test uses them.
import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const build = process.env.VRAMSCOPE_BUILD ?? path.join(root, "build");
export const vramscope = path.join(build, "vramscope");
export const data = path.join(build, "ui-data");

export const trace = (name: string): string => path.join(data, `${name}.vram`);

export function generate(name: string, kind: string, ...settings: string[]): void {
  mkdirSync(data, { recursive: true });
  execFileSync(path.join(build, "tracegen"), [kind, trace(name), ...settings], { stdio: ["ignore", "pipe", "pipe"] });
}

export const python = process.env.VRAMSCOPE_PYTHON ?? path.join(root, ".venv/bin/python");
const hasTensorFlow = existsSync(python);
/** Why a test with a real training is left out; empty: it is not. In `make test` nothing may be missing. */
export const noTensorFlow = hasTensorFlow || process.env.VRAMSCOPE_REQUIRE_ALL === "1" ? "" : `no Python with TensorFlow at ${python}`;
/** On the CPU, with the allocator class that GPUs use. */
export const TENSORFLOW = { TF_CPU_ALLOCATOR_USE_BFC: "1", TF_CPP_MIN_LOG_LEVEL: "3", CUDA_VISIBLE_DEVICES: "" };

/** A real training of TensorFlow, as the trace `name`. Returns the folder of its source, which the Source view reads. */
export async function record(name: string, ...args: string[]): Promise<string[]> {
  if (noTensorFlow) return [];
  const folder = mkdtempSync(path.join(os.tmpdir(), `${name}-`)); // its path is in pictures: it reveals nothing about this machine
  const script = path.join(folder, "train.py");
  copyFileSync(path.join(root, "ui/e2e/train.py"), script);
  const child = spawn(vramscope, ["run", "-q", "-o", folder, "--", python, script, ...args], { env: { ...process.env, ...TENSORFLOW }, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (part: Buffer) => { said += part.toString(); });
  const code = await new Promise<number | null>((resolve) => child.on("exit", resolve));
  if (code !== 0) throw new Error(`${name}: the training ended with ${code}: ${said.slice(-2000)}`);
  const [file] = readdirSync(folder).filter((entry) => entry.endsWith(".vram"));
  mkdirSync(data, { recursive: true });
  copyFileSync(path.join(folder, file!), trace(name));
  return [folder];
}

/** What the command line says: the truth that the page must show. Of a damaged trace it answers what can be read, and ends with 2. */
export function json(...args: string[]): Record<string, unknown> {
  const done = spawnSync(vramscope, [...args, "--json"], { encoding: "utf8", maxBuffer: 64 << 20 });
  if (done.status !== 0 && !(done.status === 2 && done.stdout)) throw new Error(`${args.join(" ")}: ${done.status} ${done.stderr}`);
  return JSON.parse(done.stdout) as Record<string, unknown>;
}

export interface Served {
  address: string;
  origin: string;
  token: string;
  pid: number;
  stop: () => void;
}

export async function serve(...traces: string[]): Promise<Served> {
  const child: ChildProcess = spawn(vramscope, ["serve", ...traces], { stdio: ["ignore", "pipe", "inherit"] });
  const address = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (part: Buffer) => {
      text += part.toString();
      const line = text.match(/^(http:\S+)\n/m);
      if (line) resolve(line[1]!);
    });
    child.on("exit", (code) => reject(new Error(`vramscope serve ended with ${code}`)));
  });
  const { origin, hash } = new URL(address);
  return { address, origin, token: hash.replace("#token=", ""), pid: child.pid ?? 0, stop: () => child.kill("SIGTERM") };
}
