// Tiles of the time axis: tile `i` of level `k` covers [i·2^k, (i+1)·2^k) µs in at most 1,024 columns. Tiles lie on a fixed grid,
// so that a growing run changes only its last ones. The sharpest available tile is shown.
import { NoServer, NotInReport, type AnswerOf, type ParamsOf } from "../../rpc/client";
import { app } from "../../state/app.svelte";

const MOST_TILES = 300;
type Kind = "stack" | "tracks" | "marks";

export class Tiles<N extends Kind> {
  private have = new Map<string, AnswerOf<N>>();
  private asked = new Set<string>();
  version = $state(0);
  error = $state("");
  /** There is nobody who could tell more detail. */
  absent = $state(false);

  constructor(private readonly name: N, private readonly extra: () => Omit<ParamsOf<N>, "level" | "tile">) {}

  clear(): void {
    this.have.clear();
    this.asked.clear();
    this.error = "";
    this.absent = false;
  }
  /** Live data: what is drawn stays until its successor is there. */
  refresh(): void {
    this.asked.clear();
  }

  get(level: number, tile: number): AnswerOf<N> | undefined {
    const key = `${level}/${tile}`;
    if (!this.asked.has(key)) this.request(key, level, tile);
    return this.use(key);
  }
  private use(key: string): AnswerOf<N> | undefined {
    const answer = this.have.get(key);
    if (answer) { this.have.delete(key); this.have.set(key, answer); } // least recently used goes first
    return answer;
  }

  /** What covers [t0, t1]: sharp tiles, else the nearest coarser ones. In order of time, without overlap. */
  covering(t0: number, t1: number, level: number, whole: number): { t0: number; t1: number; level: number; data: AnswerOf<N> }[] {
    void this.version;
    const out: { t0: number; t1: number; level: number; data: AnswerOf<N> }[] = [];
    const span = 2 ** level;
    for (let tile = Math.max(0, Math.floor(t0 / span)); tile * span < t1; tile++) {
      const sharp = this.get(level, tile);
      if (sharp && !missing(sharp)) {
        out.push({ t0: tile * span, t1: (tile + 1) * span, level, data: sharp });
        continue;
      }
      for (let up = level + 1; up <= whole; up++) {
        const coarse = this.use(`${up}/${Math.floor((tile * span) / 2 ** up)}`);
        if (coarse && !missing(coarse)) {
          out.push({ t0: tile * span, t1: (tile + 1) * span, level: up, data: coarse });
          break;
        }
      }
    }
    return out;
  }

  private request(key: string, level: number, tile: number): void {
    this.asked.add(key);
    const params = { ...this.extra(), level, tile } as unknown as ParamsOf<N>;
    const before = JSON.stringify(this.extra());
    app.client.ask(this.name, params).then(
      (answer) => {
        if (JSON.stringify(this.extra()) !== before) return;
        this.have.set(key, answer);
        if (this.have.size > MOST_TILES) {
          const oldest = this.have.keys().next().value as string;
          this.have.delete(oldest);
          this.asked.delete(oldest); // requested again when it comes back into view
        }
        this.error = "";
        this.version++;
      },
      (problem: Error) => {
        // What is there stays: neither a report nor the page of a finished run has anything finer.
        if (problem instanceof NotInReport || (problem instanceof NoServer && app.ended && this.have.size > 0)) this.absent = true;
        else this.error = problem.message;
        this.version++;
      },
    );
  }
}

const missing = (data: object): boolean => (data as { missing?: boolean }).missing === true;
