// The binary form of an answer: "VSA1", length of the JSON, the JSON, then bulk columns that the JSON points into with
// {"$": [offset, count, coding]}. Coding "d" = zigzag varint deltas of whole numbers, "f" = little-endian doubles.
const MAGIC = 0x31415356;

export function decodeAnswer(data: Uint8Array): unknown {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  if (data.byteLength < 8 || view.getUint32(0, true) !== MAGIC) throw new Error("the response is not in vramscope's format; reload the page");
  const length = view.getUint32(4, true);
  if (8 + length > data.byteLength) throw new Error("the response is truncated; reload the page");
  const text = new TextDecoder().decode(data.subarray(8, 8 + length));
  const blob = data.subarray(8 + length);
  return JSON.parse(text, (_key, value: unknown) => {
    const place = (value as { $?: [number, number, string] } | null)?.$;
    return place ? column(blob, place[0], place[1], place[2]) : value;
  });
}

function column(blob: Uint8Array, offset: number, count: number, coding: string): Float64Array {
  const out = new Float64Array(count);
  if (coding === "f") {
    const view = new DataView(blob.buffer, blob.byteOffset + offset);
    for (let i = 0; i < count; i++) out[i] = view.getFloat64(8 * i, true);
    return out;
  }
  let at = offset;
  let value = 0;
  for (let i = 0; i < count; i++) {
    let low = 0;
    let scale = 1;
    let byte: number;
    do {
      byte = blob[at++] ?? 0;
      low += (byte & 127) * scale; // multiplication, because shifts are limited to 32 bits
      scale *= 128;
    } while (byte & 128);
    value += low % 2 ? -(low + 1) / 2 : low / 2;
    out[i] = value;
  }
  return out;
}
