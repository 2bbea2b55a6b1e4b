// A WebSocket with the key of the client: with headers in Node, with subprotocols in a browser, which cannot send headers.

import type { Answer } from './transport.js';

export interface SocketEvents {
  message(data: string | Uint8Array): void;
  close(code: number): void;
  /** The error for an answer that is no WebSocket. */
  refused(answer: Answer): Promise<unknown>;
}

export interface Socket {
  /** False if the connection is gone already. */
  send(data: string | Uint8Array): boolean;
  close(code?: number): void;
  /** Stops reading until `resume`, where the platform can. */
  pause(): void;
  resume(): void;
}

/** The platform's own WebSocket. It does not tell why a server refused. */
export function browserSocket(address: string, key: string, events: SocketEvents): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const made = new WebSocket(address.replace(/^http/, 'ws'), ['paddock', `paddock.bearer.${key}`]);
    let open = false;
    made.binaryType = 'arraybuffer';
    made.onopen = () => {
      open = true;
      resolve({
        send: (data) => {
          if (made.readyState !== WebSocket.OPEN) return false;
          made.send(data as string | Uint8Array<ArrayBuffer>);
          return true;
        },
        close: (code) => made.close(code ?? 1000),
        pause: () => {},
        resume: () => {},
      });
    };
    made.onmessage = ({ data }) => events.message(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer));
    made.onclose = ({ code }) => {
      if (open) events.close(code);
      else reject(new Error(`the server refused the WebSocket (close code ${code})`));
    };
    made.onerror = () => {};
  });
}
