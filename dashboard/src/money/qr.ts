/* A QR code (ISO 18004) of a text: bytes, error correction M, versions 1 to 40. test/dashboard reads it back with jsQR. */

const ECC = [10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, ...Array<number>(19).fill(28)];
const BLOCKS = [1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49];

/* Modules for data and error correction of a version, in bits. */
function room(version: number): number {
  let bits = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const n = Math.floor(version / 7) + 2;
    bits -= (25 * n - 10) * n - 55;
    if (version >= 7) bits -= 36;
  }
  return bits;
}

const dataBytes = (version: number) => Math.floor(room(version) / 8) - ECC[version - 1]! * BLOCKS[version - 1]!;

function times(a: number, b: number): number {
  let r = 0;
  for (let i = 7; i >= 0; i--) r = ((r << 1) ^ ((r >> 7) * 0x11d) ^ (((b >> i) & 1) * a)) & 0xff;
  return r;
}

/* Reed-Solomon: the generator of a degree, and the remainder of a block. */
function generator(degree: number): number[] {
  const g = Array<number>(degree).fill(0);
  g[degree - 1] = 1;
  for (let root = 1, i = 0; i < degree; i++, root = times(root, 2))
    for (let j = 0; j < degree; j++) g[j] = times(g[j]!, root) ^ (g[j + 1] ?? 0);
  return g;
}

function remainder(block: number[], g: number[]): number[] {
  const r = Array<number>(g.length).fill(0);
  for (const b of block) {
    const factor = b ^ r.shift()!;
    r.push(0);
    g.forEach((c, i) => (r[i]! ^= times(c, factor)));
  }
  return r;
}

/* The codewords in the order in which they are drawn. */
function codewords(text: Uint8Array, version: number): number[] {
  const bits: number[] = [];
  const put = (value: number, n: number) => {
    for (let i = n - 1; i >= 0; i--) bits.push((value >>> i) & 1);
  };
  const room = dataBytes(version);
  put(4, 4);
  put(text.length, version < 10 ? 8 : 16);
  text.forEach((b) => put(b, 8));
  put(0, Math.min(4, room * 8 - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < room * 8; pad ^= 0xec ^ 0x11) put(pad, 8);
  const data = Array.from({ length: room }, (_, i) => parseInt(bits.slice(i * 8, i * 8 + 8).join(""), 2));

  const n = BLOCKS[version - 1]!;
  const ecc = ECC[version - 1]!;
  const g = generator(ecc);
  const short = Math.floor(room / n);
  const longer = room % n;
  const blocks: number[][] = [];
  for (let i = 0, at = 0; i < n; i++) {
    const size = short + (i < n - longer ? 0 : 1);
    blocks.push(data.slice(at, (at += size)));
  }
  const checks = blocks.map((b) => remainder(b, g));
  const out: number[] = [];
  for (let i = 0; i <= short; i++) for (const b of blocks) if (i < b.length) out.push(b[i]!);
  for (let i = 0; i < ecc; i++) for (const c of checks) out.push(c[i]!);
  return out;
}

const MASKS: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

class Grid {
  readonly dark: boolean[][];
  readonly fixed: boolean[][];
  constructor(readonly size: number) {
    this.dark = Array.from({ length: size }, () => Array<boolean>(size).fill(false));
    this.fixed = Array.from({ length: size }, () => Array<boolean>(size).fill(false));
  }
  set(x: number, y: number, dark: boolean) {
    if (x < 0 || y < 0 || x >= this.size || y >= this.size) return;
    this.dark[y]![x] = dark;
    this.fixed[y]![x] = true;
  }
}

function drawPatterns(g: Grid, version: number) {
  const last = g.size - 7;
  for (let i = 0; i < g.size; i++) {
    g.set(6, i, i % 2 === 0);
    g.set(i, 6, i % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [last + 3, 3], [3, last + 3]] as const)
    for (let dy = -4; dy <= 4; dy++)
      for (let dx = -4; dx <= 4; dx++) {
        const d = Math.max(Math.abs(dx), Math.abs(dy));
        g.set(cx + dx, cy + dy, d !== 2 && d !== 4);
      }
  if (version < 2) return;
  const n = Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (n * 2 - 2)) * 2;
  const places = [6, ...Array.from({ length: n - 1 }, (_, i) => g.size - 7 - (n - 2 - i) * step)];
  places.forEach((cx, i) =>
    places.forEach((cy, j) => {
      if ((i === 0 && j === 0) || (i === 0 && j === n - 1) || (i === n - 1 && j === 0)) return; // a finder is there
      for (let dy = -2; dy <= 2; dy++) for (let dx = -2; dx <= 2; dx++) g.set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
    }),
  );
}

function drawFormat(g: Grid, mask: number) {
  let r = mask; // level M is 00
  for (let i = 0; i < 10; i++) r = (r << 1) ^ ((r >> 9) * 0x537);
  const bits = ((mask << 10) | r) ^ 0x5412;
  const bit = (i: number) => ((bits >> i) & 1) === 1;
  for (let i = 0; i < 6; i++) g.set(8, i, bit(i));
  g.set(8, 7, bit(6));
  g.set(8, 8, bit(7));
  g.set(7, 8, bit(8));
  for (let i = 9; i < 15; i++) g.set(14 - i, 8, bit(i));
  for (let i = 0; i < 8; i++) g.set(g.size - 1 - i, 8, bit(i));
  for (let i = 8; i < 15; i++) g.set(8, g.size - 15 + i, bit(i));
  g.set(8, g.size - 8, true);
}

function drawVersion(g: Grid, version: number) {
  if (version < 7) return;
  let r = version;
  for (let i = 0; i < 12; i++) r = (r << 1) ^ ((r >> 11) * 0x1f25);
  const bits = (version << 12) | r;
  for (let i = 0; i < 18; i++) {
    const a = g.size - 11 + (i % 3);
    const b = Math.floor(i / 3);
    g.set(a, b, ((bits >> i) & 1) === 1);
    g.set(b, a, ((bits >> i) & 1) === 1);
  }
}

function drawData(g: Grid, words: number[]) {
  let i = 0;
  for (let right = g.size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let v = 0; v < g.size; v++)
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? g.size - 1 - v : v;
        if (g.fixed[y]![x] || i >= words.length * 8) continue;
        g.dark[y]![x] = ((words[i >> 3]! >> (7 - (i & 7))) & 1) === 1;
        i++;
      }
  }
}

/* How hard it is to read: runs, blocks, what looks like a finder, and too much of one colour. */
function penalty(g: Grid): number {
  const n = g.size;
  let sum = 0;
  let dark = 0;
  for (const at of [(a: number, b: number) => g.dark[a]![b]!, (a: number, b: number) => g.dark[b]![a]!])
    for (let a = 0; a < n; a++) {
      let line = "";
      for (let b = 0; b < n; b++) line += at(a, b) ? "1" : "0";
      for (const run of line.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2;
      for (const finder of [/(?=10111010000)/g, /(?=00001011101)/g]) sum += 40 * (line.match(finder) ?? []).length;
    }
  for (let y = 0; y < n; y++)
    for (let x = 0; x < n; x++) {
      const c = g.dark[y]![x]!;
      if (c) dark++;
      if (x + 1 < n && y + 1 < n && c === g.dark[y]![x + 1] && c === g.dark[y + 1]![x] && c === g.dark[y + 1]![x + 1]) sum += 3;
    }
  return sum + Math.floor(Math.abs(dark * 20 - n * n * 10) / (n * n)) * 10;
}

/* Rows of modules, true is dark, without the quiet zone of four. */
export function qr(text: string): boolean[][] {
  const data = new TextEncoder().encode(text);
  let version = 1;
  while (version <= 40 && dataBytes(version) * 8 < 4 + (version < 10 ? 8 : 16) + data.length * 8) version++;
  if (version > 40) throw new Error("The text is too long for a QR code.");
  const g = new Grid(version * 4 + 17);
  drawPatterns(g, version);
  drawFormat(g, 0); // so that its place is taken
  drawVersion(g, version);
  drawData(g, codewords(data, version));
  const turn = (mask: number) => g.dark.forEach((row, y) => row.forEach((_, x) => !g.fixed[y]![x] && MASKS[mask]!(x, y) && (row[x] = !row[x])));
  let best = 0;
  let least = Infinity;
  for (let mask = 0; mask < 8; mask++) {
    turn(mask);
    drawFormat(g, mask);
    const p = penalty(g);
    if (p < least) [best, least] = [mask, p];
    turn(mask);
  }
  turn(best);
  drawFormat(g, best);
  return g.dark;
}
