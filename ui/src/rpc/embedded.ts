// Answers that the report writer embedded in the page: base64 of gzip of (u32 key length, key, u32 answer length, answer)*. An answer
// "=KEY" is that of the other key.
import { NotInReport, type Transport } from "./client";
import { decodeAnswer } from "./decode";

const SAME = "=".charCodeAt(0);

export class EmbeddedTransport implements Transport {
  readonly kind = "report" as const;
  private constructor(private readonly answers: Map<string, Uint8Array>) {}

  static async open(base64: string): Promise<EmbeddedTransport> {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new EmbeddedTransport(readAnswers(new Uint8Array(await new Response(stream).arrayBuffer())));
  }

  async ask(key: string): Promise<unknown> {
    let answer = this.answers.get(key);
    if (answer?.[0] === SAME) answer = this.answers.get(new TextDecoder().decode(answer.subarray(1)));
    if (!answer) throw new NotInReport("The report does not contain this detail. Open the trace with `vramscope serve`.");
    return decodeAnswer(answer);
  }
}

export function readAnswers(data: Uint8Array): Map<string, Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  const answers = new Map<string, Uint8Array>();
  const text = new TextDecoder();
  let at = 0;
  const part = () => {
    const length = view.getUint32(at, true);
    const bytes = data.subarray(at + 4, at + 4 + length);
    at += 4 + length;
    return bytes;
  };
  while (at + 4 <= data.byteLength) answers.set(text.decode(part()), part());
  return answers;
}
