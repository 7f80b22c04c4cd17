// What the map component draws with: reading the message of avshift_core/latent/pack.py, points as pixels, lines.
// Joined with map.js to one module by map.py.

const GRID = 65535, MISSING = 255;
const ALL = -1, NONE = -2; // which category is in front, beside one of them
const GREY = { light: [150, 150, 150], dark: [120, 120, 120] };
const MOST_CORNERS = 64;

// Message -----------------------------------------------------------------------------------------------------------

function read(data) {
  const bytes = data.slice(), view = new DataView(bytes.buffer);
  const length = view.getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const n = head.n, blocks = {};
  let at = 4 + length;
  const x = new Uint16Array(bytes.buffer, at, n), y = new Uint16Array(bytes.buffer, at + 2 * n, n);
  at += 4 * n;
  for (const name of ["colour", ...head.blocks]) {
    blocks[name] = bytes.subarray(at, at + n);
    at += n;
  }
  const grid = head.density ? new Int8Array(bytes.buffer, at, head.density.bins ** 2) : null;
  return { head, n, x, y, blocks, grid };
}

// Colours -----------------------------------------------------------------------------------------------------------

function rgb(hex) {
  const number = parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

function ramp(stops) {
  // 255 colours, evenly between the stops.
  const known = stops.map(rgb), out = new Uint8Array(3 * MISSING);
  for (let level = 0; level < MISSING; level++) {
    const place = (level / (MISSING - 1)) * (known.length - 1), low = Math.min(Math.floor(place), known.length - 2);
    for (let c = 0; c < 3; c++) {
      out[3 * level + c] = Math.round(known[low][c] + (place - low) * (known[low + 1][c] - known[low][c]));
    }
  }
  return out;
}

function luminance(text) {
  // Of a CSS colour as the browser resolves it, 0 to 1.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.fillStyle = "#ffffff";
  canvas.fillStyle = text;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return (0.2126 * r + 0.7152 * g + 0.0722 * b) / 255;
}

// Points as pixels --------------------------------------------------------------------------------------------------

function disc(radius) {
  // Offsets (dx, dy) of the pixels of a round spot.
  const out = [], reach = Math.ceil(radius);
  for (let dy = -reach; dy <= reach; dy++) {
    for (let dx = -reach; dx <= reach; dx++) if (dx * dx + dy * dy <= radius * radius + 0.3) out.push([dx, dy]);
  }
  return { offsets: out, reach };
}

// Every pixel sums what lies on it in whole numbers, so that the order of the points cannot matter. `front` are the
// points with a colour, `back` those that are only shown to be there.
class Sums {
  constructor(width, height) {
    const size = width * height;
    Object.assign(this, { width, height, front: new Uint32Array(size), back: new Uint32Array(size) });
    [this.a, this.b, this.c, this.weight] = [0, 0, 0, 0].map(() => new Uint32Array(size));
  }

  clear() {
    for (const part of [this.front, this.back, this.a, this.b, this.c, this.weight]) part.fill(0);
  }
}

function accumulate(sums, points, place, spot, paint) {
  // place: grid -> pixels as {kx, x0, ky, y0}; paint: {code, table (256 x a, b, c, weight), chosen, highlight}.
  const { width, height, front, back, a, b, c, weight } = sums, { x, y, n } = points;
  const { kx, x0, ky, y0 } = place, { code, table, chosen, highlight } = paint;
  const { reach, offsets } = spot, count = offsets.length;
  const step = Int32Array.from(offsets, ([dx, dy]) => dy * width + dx);
  const right = width - reach, bottom = height - reach;
  for (let i = 0; i < n; i++) {
    const px = Math.floor(x[i] * kx + x0), py = Math.floor(y[i] * ky + y0);
    if (px < -reach || py < -reach || px >= width + reach || py >= height + reach) continue;
    const k = code[i], behind = k === MISSING || (chosen !== ALL && k !== chosen) || (highlight && !highlight[i]);
    const whole = px >= reach && py >= reach && px < right && py < bottom, at = py * width + px;
    const t = 4 * k, w = table[t + 3], ta = table[t], tb = table[t + 1], tc = table[t + 2];
    for (let s = 0; s < count; s++) {
      if (!whole) {
        const u = px + offsets[s][0], v = py + offsets[s][1];
        if (u < 0 || v < 0 || u >= width || v >= height) continue;
      }
      const pixel = at + step[s];
      if (behind) {
        back[pixel]++;
      } else {
        front[pixel]++;
        weight[pixel] += w;
        a[pixel] += ta;
        b[pixel] += tb;
        c[pixel] += tc;
      }
    }
  }
}

function opacity(counts) {
  // One point's opacity, so that a typical covered pixel is three quarters covered.
  let covered = 0, total = 0;
  for (let i = 0; i < counts.length; i++) {
    if (counts[i]) covered++;
    total += counts[i];
  }
  const each = covered ? 1 - 0.25 ** (covered / total) : 0.75;
  const one = Math.min(Math.max(each, 0.2), 0.85), table = new Uint8Array(256);
  for (let k = 0; k < 256; k++) table[k] = Math.round(255 * (1 - (1 - one) ** k));
  return table;
}

function develop(sums, image, colours, grey, faint) {
  // Sums -> pixels. colours: null when a, b, c are red, green, blue; else the ramp, and a holds levels.
  const { front, back, a, b, c, weight } = sums, alpha = opacity(front), little = littleEndian();
  const out = new Uint32Array(image.data.buffer), behind = (grey[2] << 16) | (grey[1] << 8) | grey[0];
  for (let i = 0; i < out.length; i++) {
    const count = front[i], w = weight[i];
    let ink = 0, cover = 0;
    if (count) {
      cover = alpha[count < 255 ? count : 255];
      if (colours) {
        const level = 3 * Math.round(a[i] / w);
        ink = (colours[level + 2] << 16) | (colours[level + 1] << 8) | colours[level];
      } else ink = (Math.round(c[i] / w) << 16) | (Math.round(b[i] / w) << 8) | Math.round(a[i] / w);
    } else if (back[i]) {
      ink = behind;
      cover = Math.min(faint + 6 * back[i], 2 * faint);
    }
    const pixel = ((cover << 24) | ink) >>> 0;
    out[i] = little ? pixel : swapped(pixel);
  }
}

const littleEndian = () => new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;
const swapped = (v) => ((v >>> 24) | ((v >>> 8) & 0xff00) | ((v << 8) & 0xff0000) | (v << 24)) >>> 0;

function heat(grid, bins, low, high) {
  // The density difference as a small picture, upside up.
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = bins;
  const context = canvas.getContext("2d"), image = context.createImageData(bins, bins);
  for (let row = 0; row < bins; row++) {
    for (let column = 0; column < bins; column++) {
      const value = grid[row * bins + column] / 127, o = 4 * ((bins - 1 - row) * bins + column);
      [image.data[o], image.data[o + 1], image.data[o + 2]] = value < 0 ? low : high;
      image.data[o + 3] = Math.round(230 * Math.abs(value) ** 0.8);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Lines -------------------------------------------------------------------------------------------------------------

function simplify(corners, most) {
  // Ramer, Douglas and Peucker, as coarse as it takes to leave `most` corners; whole steps of the grid.
  const whole = corners.map((p) => p.map((v) => Math.min(Math.max(Math.round(v), 0), GRID)));
  const line = whole.filter((p, i) => !i || p[0] !== whole[i - 1][0] || p[1] !== whole[i - 1][1]);
  for (let within = 8; line.length > 2; within *= 1.4) {
    const kept = peucker(line, within);
    if (kept.length <= most) return kept;
  }
  return line;
}

function peucker(line, within) {
  const keep = new Uint8Array(line.length), open = [[0, line.length - 1]];
  keep[0] = keep[line.length - 1] = 1;
  while (open.length) {
    const [first, last] = open.pop(), [ax, ay] = line[first], dx = line[last][0] - ax, dy = line[last][1] - ay;
    const length = Math.hypot(dx, dy);
    let far = 0, at = -1;
    for (let i = first + 1; i < last; i++) {
      const px = line[i][0] - ax, py = line[i][1] - ay;
      const off = length ? Math.abs(px * dy - py * dx) / length : Math.hypot(px, py);
      if (off > far) [far, at] = [off, i];
    }
    if (far > within) {
      keep[at] = 1;
      open.push([first, at], [at, last]);
    }
  }
  return line.filter((_, i) => keep[i]);
}

function area(corners) {
  return Math.abs(corners.reduce((sum, [x, y], i) => {
    const [u, v] = corners[(i + 1) % corners.length];
    return sum + x * v - u * y;
  }, 0)) / 2;
}

// Elements ----------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function above(line) {
  // Where a line's name stands, so that it hides nothing inside.
  const across = line.map(([x]) => x), up = line.map(([, y]) => y);
  return [(Math.min(...across) + Math.max(...across)) / 2, Math.min(...up) - 10];
}

const number = (value) => value.toLocaleString("en-US");
const pathOf = (corners) => corners.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") + "Z";
const pairs = (flat) => Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);
