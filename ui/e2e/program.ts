// The built program and generated traces, as every test uses them.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const build = process.env.VRAMSCOPE_BUILD ?? path.join(root, "build");
export const vramscope = path.join(build, "vramscope");
export const data = path.join(build, "ui-data");

export const trace = (name: string): string => path.join(data, `${name}.vram`);

export function generate(name: string, kind: string, ...settings: string[]): void {
  mkdirSync(data, { recursive: true });
  execFileSync(path.join(build, "tracegen"), [kind, trace(name), ...settings], { stdio: ["ignore", "pipe", "pipe"] });
}

/** What the command line says: the truth that the page must show. */
export function json(...args: string[]): Record<string, unknown> {
  return JSON.parse(execFileSync(vramscope, [...args, "--json"], { encoding: "utf8", maxBuffer: 64 << 20 })) as Record<string, unknown>;
}

export interface Served {
  address: string;
  origin: string;
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
  return { address, origin: new URL(address).origin, pid: child.pid ?? 0, stop: () => child.kill("SIGTERM") };
}
