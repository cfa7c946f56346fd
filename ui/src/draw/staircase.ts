// What is left after each step: a staircase, from zero.
import { byteScale, drawByteGrid } from "./axis";
import type { Tokens } from "./tokens";
import { inUnit, type Unit } from "../format/numbers";

export function drawStaircase(ctx: CanvasRenderingContext2D, width: number, height: number, tokens: Tokens, number: Float64Array, left: Float64Array, unit: Unit, grows: boolean): void {
  const n = number.length;
  if (n === 0) return;
  const x0 = 52, bottom = height - 22, top = 12;
  const scale = byteScale(left.reduce((a, b) => Math.max(a, b), 0), unit.bytes, 4);
  const y = (v: number) => bottom - (v / scale.top) * (bottom - top);
  drawByteGrid(ctx, tokens, scale, unit.bytes, y, x0, width);
  const slot = (width - x0) / n;
  ctx.beginPath();
  ctx.moveTo(x0, y(0));
  for (let i = 0; i < n; i++) {
    ctx.lineTo(x0 + i * slot, y(left[i]!));
    ctx.lineTo(x0 + (i + 1) * slot, y(left[i]!));
  }
  ctx.lineTo(width, y(0));
  ctx.fillStyle = grows ? tokens["signal-soft"] : tokens.n2;
  ctx.fill();
  ctx.beginPath();
  for (let i = 0; i < n; i++) {
    ctx.lineTo(x0 + i * slot, y(left[i]!));
    ctx.lineTo(x0 + (i + 1) * slot, y(left[i]!));
  }
  ctx.strokeStyle = grows ? tokens["signal-ink"] : tokens.edge;
  ctx.lineWidth = 1.5;
  ctx.stroke();
  ctx.fillStyle = tokens["text-3"];
  ctx.textAlign = "left";
  ctx.fillText(`step ${number[0]}`, x0, height - 8);
  ctx.textAlign = "right";
  ctx.fillText(`${number[n - 1]}`, width, height - 8);
  ctx.fillStyle = tokens.text;
  ctx.font = "500 11.5px Inter, system-ui, sans-serif";
  ctx.fillText(inUnit(left[n - 1]!, unit), width - 2, Math.max(8, y(left[n - 1]!) - 9));
}
