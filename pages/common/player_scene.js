// A scenario in the browser: the numbers of a message, and where everybody is at any time.

const BRIDGE_S = 1.05; // two steps further apart in time say nothing about the time between (as in scenario/view.py)

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const int16 = (text) => new Int16Array(bytes(text).buffer);
const int32 = (text) => new Int32Array(bytes(text).buffer);

function spread(values, mask, count, unit, angle) {
  // Only valid states are sent: (v, 3) whole numbers -> (count, 3) metres and radians, NaN where not valid.
  const whole = int16(values), bit = bytes(mask), out = new Float32Array(3 * count).fill(NaN);
  for (let i = 0, k = 0; i < count; i++) {
    if (!(bit[i >> 3] & (1 << (i & 7)))) continue;
    out[3 * i] = whole[k] * unit;
    out[3 * i + 1] = whole[k + 1] * unit;
    out[3 * i + 2] = whole[k + 2] / angle;
    k += 3;
  }
  return out;
}

class Scene {
  constructor(message, { angle, legend, types, on_foot: onFoot }) {
    Object.assign(this, message);
    const { T, A, unit_m: unit } = message, names = message.kind.map((kind) => types[kind]);
    this.t = Float64Array.from(int32(message.t_ms), (ms) => ms / 1000);
    this.end = this.t[T - 1];
    this.ego = spread(message.ego, message.ego_valid, T, unit, angle);
    this.agents = spread(message.agents, message.agents_valid, A * T, unit, angle);
    this.series = Object.fromEntries(Object.entries(message.series).map(([name, text]) => [name, int16(text)]));
    const group = (name) => legend.findIndex((entry) => entry.types.includes(name));
    this.groups = names.map((name) => (group(name) < 0 ? legend.length - 1 : group(name)));
    this.onFoot = names.map((name) => onFoot.includes(name));
    this.roads = this.roadPaths(message.road, unit);
    this.box = this.bounds();
  }

  roadPaths(road, unit) {
    const xy = int16(road.xy), paths = {};
    road.kind.forEach((kind, j) => {
      const path = (paths[kind] ??= new Path2D());
      for (let i = road.start[j]; i < road.start[j + 1]; i++) {
        path[i === road.start[j] ? "moveTo" : "lineTo"](xy[2 * i] * unit, xy[2 * i + 1] * unit);
      }
    });
    return paths;
  }

  bounds() {
    // Around the ego's way, with 20 m of its surroundings.
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let i = 0; i < this.T; i++) {
      const x = this.ego[3 * i], y = this.ego[3 * i + 1];
      if (Number.isNaN(x)) continue;
      left = Math.min(left, x); right = Math.max(right, x); low = Math.min(low, y); high = Math.max(high, y);
    }
    if (left > right) [left, right, low, high] = [0, 0, 0, 0];
    return { x: (left + right) / 2, y: (low + high) / 2, width: right - left + 40, height: high - low + 40 };
  }

  at(time) {
    // The step at or before a time, and how far towards the next one.
    const t = this.t;
    let low = 0, high = this.T - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (t[middle] <= time + 1e-6) low = middle; else high = middle - 1;
    }
    const span = low < this.T - 1 ? t[low + 1] - t[low] : 0;
    return { step: low, part: span > 0 ? clamp((time - t[low]) / span, 0, 1) : 0, bridge: span <= BRIDGE_S };
  }

  pose(states, offset, now) {
    // Between two steps in which somebody is seen the way is straight; else where it is seen at the nearer one.
    const i = 3 * (offset + now.step), next = now.step < this.T - 1 ? i + 3 : i;
    const seen = !Number.isNaN(states[i]), then = !Number.isNaN(states[next]), f = now.part;
    if (seen && then && now.bridge) {
      const turn = states[next + 2] - states[i + 2];
      return { x: states[i] + f * (states[next] - states[i]), y: states[i + 1] + f * (states[next + 1] - states[i + 1]),
        heading: states[i + 2] + f * Math.atan2(Math.sin(turn), Math.cos(turn)) };
    }
    const k = f < 0.5 ? i : next;
    return Number.isNaN(states[k]) ? null : { x: states[k], y: states[k + 1], heading: states[k + 2] };
  }

  egoPose(now) {
    const pose = this.pose(this.ego, 0, now);
    return pose ?? this.lastEgo(now.step);
  }

  lastEgo(step) {
    for (let i = step; i >= 0; i--) {
      if (!Number.isNaN(this.ego[3 * i])) {
        return { x: this.ego[3 * i], y: this.ego[3 * i + 1], heading: this.ego[3 * i + 2], gone: true };
      }
    }
    return { x: 0, y: 0, heading: 0, gone: true };
  }

  tightest() {
    // Time of the smallest time to collision; where there is none, of the smallest gap.
    for (const values of [this.series.ttc, this.series.gap]) {
      let best = -1;
      values.forEach((value, i) => { if (value >= 0 && (best < 0 || value < values[best])) best = i; });
      if (best >= 0) return this.t[best];
    }
    return 0;
  }
}
