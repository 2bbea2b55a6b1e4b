// Takes the place of src/node.ts where there is no Node (bundles for browsers).

import type * as node from './node.js';

const absent = (): never => {
  throw new Error('this needs Node, Bun or Deno');
};

export const nodeTransport: typeof node.nodeTransport = absent;
export const readText: typeof node.readText = absent;
export const openSocket: typeof node.openSocket = absent;
export const subtleCrypto: typeof node.subtleCrypto = absent;
