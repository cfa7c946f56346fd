// Live memory and the pool over one step: as it would be, with what was recorded behind it and the card's memory above.
import { byteScale, drawByteGrid } from "./axis";
import type { Tokens } from "./tokens";
import type { WhatifStep } from "../gen/rpc";
import { size, type Unit } from "../format/numbers";

const X0 = 60, TOP = 14, BELOW = 24;

export function drawCourse(ctx: CanvasRenderingContext2D, width: number, height: number, tokens: Tokens, step: WhatifStep, unit: Unit, card: { name: string; available: number } | null): void {
  const bottom = height - BELOW, highest = Math.max(step.pool, step.live, step.live_before);
  // A card that is far larger would press everything to the floor.
  const near = card !== null && card.available <= 2.5 * highest;
  const scale = byteScale(near ? Math.max(highest, card.available) : highest, unit.bytes, 4);
  const y = (bytes: number) => bottom - (bytes / scale.top) * (bottom - TOP);
  drawByteGrid(ctx, tokens, scale, unit.bytes, y, X0, width);
  const path = (values: number[]) => {
    ctx.beginPath();
    values.forEach((value, i) => {
      ctx.lineTo(X0 + (i / values.length) * (width - X0), y(value));
      ctx.lineTo(X0 + ((i + 1) / values.length) * (width - X0), y(value));
    });
  };
  path(step.live_curve);
  ctx.lineTo(width, bottom);
  ctx.lineTo(X0, bottom);
  ctx.fillStyle = tokens["accent-soft"];
  ctx.fill();
  const stroke = (values: number[], colour: string, dash: number[], line: number) => {
    path(values);
    ctx.setLineDash(dash);
    ctx.lineWidth = line;
    ctx.strokeStyle = colour;
    ctx.stroke();
    ctx.setLineDash([]);
  };
  stroke(step.live_curve_before, tokens["text-3"], [4, 3], 1);
  stroke(step.live_curve, tokens.accent, [], 1.5);
  stroke(step.pool_curve, tokens.edge, [], 1.5);
  if (card && near) {
    ctx.fillStyle = tokens["signal-ink"];
    ctx.fillRect(X0, Math.round(y(card.available)), width - X0, 1);
    ctx.fillText(`${card.name}: ${size(card.available)} for the pool`, width - 4, y(card.available) + 9);
  }
  ctx.fillStyle = tokens["text-3"];
  ctx.textAlign = "left";
  ctx.fillText("start of the step", X0, height - 9);
  ctx.textAlign = "right";
  ctx.fillText("end", width, height - 9);
}
