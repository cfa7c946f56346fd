import { describe, expect, it } from "vitest";
import { decodeAnswer } from "./decode";
import { readAnswers } from "./embedded";
import { requestKey } from "./client";

function answer(json: string, blob: number[]): Uint8Array {
  const text = new TextEncoder().encode(json);
  const out = new Uint8Array(8 + text.length + blob.length);
  out.set([0x56, 0x53, 0x41, 0x31]);
  new DataView(out.buffer).setUint32(4, text.length, true);
  out.set(text, 8);
  out.set(blob, 8 + text.length);
  return out;
}

describe("answers", () => {
  it("reads differences as zigzag varints", () => {
    // 5, 5, 3, 303: differences 5, 0, -2, 300
    const data = answer('{"a":{"$":[0,4,"d"]},"b":[1]}', [10, 0, 3, 0xd8, 0x04]);
    const value = decodeAnswer(data) as { a: Float64Array; b: number[] };
    expect([...value.a]).toEqual([5, 5, 3, 303]);
    expect(value.b).toEqual([1]);
  });
  it("keeps whole numbers beyond 32 bits", () => {
    const big = 140737488355328; // 2^47, an address
    const blob: number[] = [];
    let rest = BigInt(big) * 2n;
    while (rest >= 128n) { blob.push(Number(rest & 127n) | 128); rest >>= 7n; }
    blob.push(Number(rest));
    expect([...(decodeAnswer(answer('{"a":{"$":[0,1,"d"]}}', blob)) as { a: Float64Array }).a]).toEqual([big]);
  });
  it("reads doubles at any offset", () => {
    const bytes = new Uint8Array(9);
    new DataView(bytes.buffer).setFloat64(1, 0.25, true);
    expect([...(decodeAnswer(answer('{"a":{"$":[1,1,"f"]}}', [...bytes])) as { a: Float64Array }).a]).toEqual([0.25]);
  });
  it("refuses what is no answer", () => {
    expect(() => decodeAnswer(new TextEncoder().encode("<html>not this</html>"))).toThrow(/format/);
    expect(() => decodeAnswer(answer("{}", []).subarray(0, 9))).toThrow(/truncated/);
  });
});

it("splits the data of a report", () => {
  const part = (text: string) => { const bytes = new TextEncoder().encode(text); const out = new Uint8Array(4 + bytes.length); new DataView(out.buffer).setUint32(0, bytes.length, true); out.set(bytes, 4); return [...out]; };
  const answers = readAnswers(Uint8Array.from([...part("hello"), ...part("AAA"), ...part("steps?trace=0"), ...part("B")]));
  expect([...answers.keys()]).toEqual(["hello", "steps?trace=0"]);
  expect(new TextDecoder().decode(answers.get("steps?trace=0"))).toBe("B");
});

it("writes a request the same way in every place", () => {
  expect(requestKey("hello", {})).toBe("hello");
  expect(requestKey("instant", { trace: 0, at: "step:2+6.3ms", filter: "" })).toBe("instant?trace=0&at=step%3A2%2B6.3ms");
});
