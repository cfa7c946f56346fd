// Requests answers from any source, and caches the newest ones.
import type { Requests } from "../gen/rpc";

export type Name = keyof Requests;
export type ParamsOf<N extends Name> = Requests[N]["params"];
export type AnswerOf<N extends Name> = Requests[N]["answer"];

/** Brings the bytes of one answer. `key` is also the request's path on the server. */
export interface Transport {
  readonly kind: "report" | "server";
  ask(key: string): Promise<unknown>;
}

/** Answers of a report that leave the asked filter aside: the view says so. */
export const withoutFilter = new WeakSet<object>();

/** A question that this report cannot answer; the message says where the answer is. */
export class NotInReport extends Error {}

/** The server does not answer any more. */
export class NoServer extends Error {}

export function requestKey(name: string, params: object): string {
  const query = Object.entries(params)
    .filter(([, value]) => value !== "" && value !== undefined)
    .map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`)
    .join("&");
  return query ? `${name}?${query}` : name;
}

const CACHE_ENTRIES = 400;

export class Client {
  private cache = new Map<string, Promise<unknown>>();
  private pending = 0;
  constructor(readonly transport: Transport) {}

  ask<N extends Name>(name: N, params: ParamsOf<N>): Promise<AnswerOf<N>> {
    const key = requestKey(name, params);
    let answer = this.cache.get(key);
    if (answer) {
      this.cache.delete(key); // put back below as the newest
    } else {
      answer = this.transport.ask(key);
      this.count(1);
      answer.catch(() => this.cache.delete(key)).finally(() => this.count(-1));
    }
    this.cache.set(key, answer);
    if (this.cache.size > CACHE_ENTRIES) this.cache.delete(this.cache.keys().next().value as string);
    return answer as Promise<AnswerOf<N>>;
  }

  /** An answer that is known under another key too. */
  put<N extends Name>(name: N, params: ParamsOf<N>, answer: AnswerOf<N>): void {
    this.cache.set(requestKey(name, params), Promise.resolve(answer));
  }

  /** How many answers are on their way, for whoever waits for a finished page: tests, printing. */
  private count(change: number): void {
    this.pending += change;
    if (typeof document !== "undefined") document.documentElement.dataset.pending = String(this.pending);
  }

  /** The run went on: what was asked before may have another answer now. */
  forget(): void {
    this.cache.clear();
  }
}
