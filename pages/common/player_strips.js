// Strips under the picture: speed, gap and time to collision over time, with a cursor.

const LEFT = 44, RIGHT = 92, STRIP = 90, GAP = 12; // pixels

function stripsOf(player) {
  const { data } = player;
  return [
    { name: "Ego speed, m/s", top: data.speed_top_mps, factor: 0.01, values: "speed", unit: "m/s", none: "not seen" },
    { name: "Smallest gap to anybody, m (dotted: to the leader)", top: data.gap_top_m, factor: 0.01, values: "gap",
      second: "leader_gap", unit: "m", none: "nobody" },
    { name: `Smallest time to collision, s (line: ${data.ttc_alarm_s} s)`, top: data.ttc_top_s, factor: 0.001,
      values: "ttc", unit: "s", alarm: data.ttc_alarm_s, none: `over ${data.ttc_top_s}\u00a0s` },
  ];
}

function ticksTo(top) {
  const step = [1, 2, 5, 10, 20, 25].find((size) => top / size <= 4 && Number.isInteger(top / size)) ?? top / 2;
  return Array.from({ length: Math.round(top / step) + 1 }, (_, k) => k * step);
}

const stripTop = (k) => k * (STRIP + GAP) + 16;
const timeAt = (player, width, t) => LEFT + (t / Math.max(player.duration, 1e-9)) * (width - LEFT - RIGHT);

function drawAxes(player) {
  // All of the strips that does not move, on a canvas of its own.
  const { strips, ratio, palette } = player, under = document.createElement("canvas");
  under.width = strips.width; under.height = strips.height;
  const ctx = under.getContext("2d"), width = strips.width / ratio;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  stripsOf(player).forEach((strip, k) => {
    const top = stripTop(k), bottom = top + STRIP - 16;
    const height = (value) => bottom - clamp(value / strip.top, 0, 1) * (bottom - top);
    ctx.strokeStyle = palette.grid;
    ctx.lineWidth = 1;
    for (const tick of ticksTo(strip.top)) {
      ctx.beginPath();
      ctx.moveTo(LEFT, Math.round(height(tick)) + 0.5);
      ctx.lineTo(width - RIGHT, Math.round(height(tick)) + 0.5);
      ctx.stroke();
      words(ctx, palette, String(tick), LEFT - 7, height(tick) + 4, { align: "right", quiet: true });
    }
    words(ctx, palette, strip.name, LEFT, top - 5, { weight: 600 });
    if (strip.alarm) {
      ctx.fillStyle = ctx.strokeStyle = palette.red;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(LEFT, height(strip.alarm), width - LEFT - RIGHT, bottom - height(strip.alarm));
      ctx.globalAlpha = 1;
      line(ctx, [[LEFT, height(strip.alarm)], [width - RIGHT, height(strip.alarm)]], 1.2, [5, 4]);
    }
    player.scenes.forEach((scene, i) => drawSeries(ctx, player, strip, scene, i, height, width));
  });
  drawSeconds(ctx, player, width);
  return under;
}

function drawSeries(ctx, player, strip, scene, i, height, width) {
  for (const [name, dash, pixels] of [[strip.second, [1.5, 4], 1.4], [strip.values, i ? [7, 4] : [], 2]]) {
    if (!name) continue;
    ctx.strokeStyle = ctx.fillStyle = player.lineColour(i);
    let points = [];
    const flush = () => {
      if (points.length > 1) line(ctx, points, pixels, dash);
      else if (points.length) ctx.fillRect(points[0][0] - 1, points[0][1] - 1, 2, 2);
      points = [];
    };
    scene.series[name].forEach((value, j) => {
      const told = value >= 0 && value * strip.factor <= strip.top * (name === strip.second ? 1 : 1e9);
      if (told) points.push([timeAt(player, width, scene.t[j]), height(value * strip.factor)]);
      else flush();
    });
    flush();
  }
}

function line(ctx, points, pixels, dash = []) {
  ctx.lineWidth = pixels;
  ctx.lineJoin = "round";
  ctx.setLineDash(dash);
  ctx.beginPath();
  points.forEach(([x, y], j) => ctx[j ? "lineTo" : "moveTo"](x, y));
  ctx.stroke();
  ctx.setLineDash([]);
}

function words(ctx, palette, text, x, y, { align = "left", weight = 400, quiet = false, color, size = 12 } = {}) {
  ctx.font = `${weight} ${size}px ${palette.font}`;
  ctx.textAlign = align;
  ctx.fillStyle = color ?? (quiet ? palette.quiet : palette.text);
  ctx.fillText(text, x, y);
}

function drawSeconds(ctx, player, width) {
  const { palette, duration } = player, bottom = stripTop(2) + STRIP - 16;
  const every = [0.5, 1, 2, 5, 10, 30, 60].find((s) => (s / duration) * (width - LEFT - RIGHT) >= 64) ?? 120;
  for (let k = 0; k * every <= duration + 1e-6; k++) {
    const x = timeAt(player, width, k * every);
    words(ctx, palette, k ? String(k * every) : "0 s", x, bottom + 17, { align: "center", quiet: true });
  }
}

function drawCursor(player) {
  const { strips, ratio, palette, under, time } = player, ctx = strips.getContext("2d");
  if (!under) return;
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, strips.width, strips.height);
  ctx.drawImage(under, 0, 0);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const width = strips.width / ratio, x = timeAt(player, width, time);
  stripsOf(player).forEach((strip, k) => {
    ctx.strokeStyle = palette.text;
    line(ctx, [[x, stripTop(k)], [x, stripTop(k) + STRIP - 16]], 1.3);
    player.scenes.forEach((scene, i) => {
      const now = scene.at(time), step = now.part < 0.5 ? now.step : Math.min(now.step + 1, scene.T - 1);
      const value = scene.series[strip.values][step], ended = time > scene.end + 1e-6;
      const text = ended ? "ended" : value < 0 ? strip.none : `${(value * strip.factor).toFixed(1)}\u00a0${strip.unit}`;
      const alarm = strip.alarm && !ended && value >= 0 && value * strip.factor < strip.alarm;
      const top = stripTop(k), bottom = top + STRIP - 16;
      if (value >= 0 && !ended) {
        ctx.fillStyle = player.lineColour(i);
        ctx.beginPath();
        ctx.arc(x, bottom - clamp((value * strip.factor) / strip.top, 0, 1) * (bottom - top), 3.2, 0, 2 * Math.PI);
        ctx.fill();
      }
      words(ctx, palette, text, width - RIGHT + 10, top + 22 + 20 * i, { weight: alarm ? 700 : 600, size: 14,
        color: alarm ? palette.red : player.lineColour(i) });
    });
  });
}
