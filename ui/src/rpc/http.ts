// Answers from `vramscope serve`.
import { NoServer, type Transport } from "./client";
import { decodeAnswer } from "./decode";
import { authorization } from "./token";

export class HttpTransport implements Transport {
  readonly kind = "server" as const;

  async ask(key: string): Promise<unknown> {
    let response: Response;
    try {
      response = await fetch(`api/${key}`, { headers: authorization(), credentials: "omit" });
    } catch {
      throw new NoServer("The server does not respond. Is `vramscope serve` still running?");
    }
    if (!response.ok) throw new Error((await response.text()).slice(0, 500) || `The server responded with status ${response.status}.`);
    return decodeAnswer(new Uint8Array(await response.arrayBuffer()));
  }
}
