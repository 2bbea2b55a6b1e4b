// The frames of a WebSocket, as a client sends and reads them (RFC 6455). Without I/O.

export const OP = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

const LARGEST = 64 << 20;

/** One whole message, masked as a client's must be. The mask need not be secret here: the bytes are the caller's own. */
export function frame(op: number, data: Uint8Array): Uint8Array {
  const n = data.length, extra = n < 126 ? 0 : n < 65536 ? 2 : 8;
  const out = new Uint8Array(2 + extra + 4 + n), view = new DataView(out.buffer);
  out[0] = 0x80 | op;
  out[1] = 0x80 | (extra === 0 ? n : extra === 2 ? 126 : 127);
  if (extra === 2) view.setUint16(2, n);
  else if (extra === 8) view.setBigUint64(2, BigInt(n));
  const mask = 2 + extra, body = mask + 4;
  view.setUint32(mask, (Math.random() * 0x1_0000_0000) >>> 0);
  for (let i = 0; i < n; i++) out[body + i] = data[i]! ^ out[mask + (i & 3)]!;
  return out;
}

export interface FrameEvents {
  message(data: string | Uint8Array): void;
  ping(data: Uint8Array): void;
  close(code: number): void;
}

/** Takes bytes as they come and tells whole messages. */
export class FrameReader {
  private pending = new Uint8Array(0);
  private parts: Uint8Array[] = [];
  private size = 0;
  private kind = 0;

  constructor(private readonly events: FrameEvents) {}

  /** False if the server does not keep to the protocol: the connection is of no use then. */
  push(bytes: Uint8Array): boolean {
    this.pending = this.pending.length ? joined([this.pending, bytes]) : bytes.slice();
    for (;;) {
      const taken = this.one();
      if (taken < 0) return false;
      if (taken === 0) return true;
      this.pending = this.pending.subarray(taken);
    }
  }

  /** Reads one frame; returns its length, 0 if it is not complete, or -1. */
  private one(): number {
    const b = this.pending;
    if (b.length < 2) return 0;
    const short = b[1]! & 0x7f, extra = short < 126 ? 0 : short === 126 ? 2 : 8, head = 2 + extra;
    if (b[1]! & 0x80 || b[0]! & 0x70) return -1; // masked, or an extension that nobody asked for
    if (b.length < head) return 0;
    const view = new DataView(b.buffer, b.byteOffset);
    const n = extra === 0 ? short : extra === 2 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if (n > LARGEST) return -1;
    if (b.length < head + n) return 0;
    return this.take(b[0]! & 0x0f, (b[0]! & 0x80) !== 0, b.subarray(head, head + n)) ? head + n : -1;
  }

  private take(op: number, last: boolean, data: Uint8Array): boolean {
    if (op >= 8) {
      if (!last || data.length > 125) return false;
      if (op === OP.ping) this.events.ping(data.slice());
      else if (op === OP.close) this.events.close(data.length >= 2 ? (data[0]! << 8) | data[1]! : 1005);
      return true;
    }
    if ((op === OP.more) !== (this.parts.length > 0)) return false;
    if (op !== OP.more) this.kind = op;
    this.size += data.length;
    if (this.size > LARGEST) return false;
    this.parts.push(data.slice());
    if (last) {
      const whole = joined(this.parts);
      this.parts = [];
      this.size = 0;
      this.events.message(this.kind === OP.text ? new TextDecoder().decode(whole) : whole);
    }
    return true;
  }
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((n, one) => n + one.length, 0));
  let at = 0;
  for (const one of parts) {
    all.set(one, at);
    at += one.length;
  }
  return all;
}
