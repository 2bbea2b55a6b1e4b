// Checking that a webhook's request comes from Paddock.

import type { Event } from './schema.js';

const LATEST_S = 300;

async function hmac(secret: string, text: string): Promise<string> {
  const subtle = globalThis.crypto?.subtle ?? (await import('#node')).subtleCrypto();
  const bytes = (t: string) => new TextEncoder().encode(t);
  const key = await subtle.importKey('raw', bytes(secret), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signed = new Uint8Array(await subtle.sign('HMAC', key, bytes(text)));
  return Array.from(signed, (b) => b.toString(16).padStart(2, '0')).join('');
}

function same(a: string, b: string): boolean {
  let differ = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) differ |= a.charCodeAt(i) ^ b.charCodeAt(i % (b.length || 1));
  return differ === 0;
}

/**
 * The event of a webhook's request, or an error if the signature is not that of the secret or is older than five minutes.
 * `body` is the body as it arrived; `signature` is the header `Paddock-Signature`.
 */
export async function verifyWebhook(body: string, signature: string | null | undefined, secret: string, now = Date.now()): Promise<Event> {
  const [, seconds, hex] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature ?? '') ?? [];
  if (!seconds || !hex || !same(hex, await hmac(secret, `${seconds}.${body}`))) throw new Error('the signature of the webhook is not valid');
  if (Math.abs(now / 1000 - Number(seconds)) > LATEST_S) throw new Error('the signature of the webhook is too old');
  return JSON.parse(body) as Event;
}
