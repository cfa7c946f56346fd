import type { Transport } from "../rpc/client";
export class MockTransport implements Transport {
  readonly kind = "server" as const;
  async ask(key: string): Promise<unknown> {
    throw new Error(`no mock for ${key}`);
  }
}
