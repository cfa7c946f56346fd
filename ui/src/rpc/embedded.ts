// Answers that the report writer put into the page: base64 of gzip of (u32 key length, key, u32 answer length, answer)*.
import { NotInReport, type Transport } from "./client";
import { decodeAnswer } from "./decode";

export class EmbeddedTransport implements Transport {
  readonly kind = "report" as const;
  private constructor(private readonly answers: Map<string, Uint8Array>) {}

  static async open(base64: string): Promise<EmbeddedTransport> {
    const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new EmbeddedTransport(readAnswers(new Uint8Array(await new Response(stream).arrayBuffer())));
  }

  async ask(key: string): Promise<unknown> {
    const answer = this.answers.get(key);
    if (!answer) throw new NotInReport("This detail is not in the report. Open the trace with `vramscope serve`.");
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
