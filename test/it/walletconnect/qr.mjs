// Reads a QR code, given as rows of 0 and 1 on stdin (JSON), and writes what it says.
import jsqr from "jsqr";

let text = "";
for await (const piece of process.stdin) text += piece;
const rows = JSON.parse(text);
const [scale, quiet] = [4, 4];
const side = (rows.length + 2 * quiet) * scale;
const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
for (let y = 0; y < rows.length * scale; y++)
  for (let x = 0; x < rows.length * scale; x++)
    if (rows[Math.floor(y / scale)][Math.floor(x / scale)] === "1")
      pixels.fill(0, ((y + quiet * scale) * side + x + quiet * scale) * 4, ((y + quiet * scale) * side + x + quiet * scale) * 4 + 3);
process.stdout.write((jsqr.default ?? jsqr)(pixels, side, side)?.data ?? "");
