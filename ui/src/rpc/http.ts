// Answers from `vramscope serve`. The token came with the page's address and lives in a cookie that scripts cannot read.
import { NoServer, type Transport } from "./client";
import { decodeAnswer } from "./decode";

export class HttpTransport implements Transport {
  readonly kind = "server" as const;

  async ask(key: string): Promise<unknown> {
    let response: Response;
    try {
      response = await fetch(`api/${key}`, { credentials: "same-origin" });
    } catch {
      throw new NoServer("The server does not answer. Is `vramscope serve` still running?");
    }
    if (!response.ok) throw new Error((await response.text()).slice(0, 500) || `The server answered ${response.status}.`);
    return decodeAnswer(new Uint8Array(await response.arrayBuffer()));
  }
}
