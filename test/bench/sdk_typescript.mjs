// The same calls over node:http by hand, over fetch by hand and with the SDK, in turn. Prints the medians, {call: {raw, fetch, sdk}},
// in milliseconds. Arguments: the package's index.js, the number of rounds.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [, , index, rounds] = process.argv, { PADDOCK_URL, PADDOCK_API_KEY } = process.env;
const { Sandbox } = await import(pathToFileURL(index).href);
const { hostname: host, port } = new URL(PADDOCK_URL), agent = new http.Agent({ keepAlive: true, noDelay: true });
const authorization = `Bearer ${PADDOCK_API_KEY}`;

function raw(method, path, json) {
  return new Promise((resolve, reject) => {
    const body = json && JSON.stringify(json);
    const headers = { authorization, ...(body ? { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } : {}) };
    const request = http.request({ host, port, method, path, headers, agent }, (answer) => {
      const parts = [];
      answer.on('data', (piece) => parts.push(piece));
      answer.on('end', () => resolve(JSON.parse(Buffer.concat(parts).toString())));
    });
    request.on('error', reject);
    request.end(body);
  });
}

async function byFetch(method, path, json) {
  const headers = { authorization, ...(json ? { 'content-type': 'application/json' } : {}) };
  return (await fetch(PADDOCK_URL + path, { method, headers, ...(json ? { body: JSON.stringify(json) } : {}) })).json();
}

const sb = await Sandbox.create(), path = `/v1/sandboxes/${sb.id}`;
const calls = {
  'show a sandbox': {
    raw: () => raw('GET', path), fetch: () => byFetch('GET', path), sdk: () => sb.refresh(),
  },
  'exec': {
    raw: () => raw('POST', `${path}/exec`, { argv: ['true'] }), fetch: () => byFetch('POST', `${path}/exec`, { argv: ['true'] }), sdk: () => sb.run(['true']),
  },
};

const figures = {};
for (const [name, ways] of Object.entries(calls)) {
  const times = { raw: [], fetch: [], sdk: [] };
  for (let i = -50; i < Number(rounds); i++)
    // In a new order each time: what a call leaves to do for the machine slows the next one.
    for (const way of Object.keys(ways).map((one) => [Math.random(), one]).sort((a, b) => a[0] - b[0]).map(([, one]) => one)) {
      const call = ways[way], begun = performance.now();
      await call();
      if (i >= 0) times[way].push(performance.now() - begun);
    }
  const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  figures[name] = Object.fromEntries(Object.entries(times).map(([way, values]) => [way, median(values)]));
}
await sb.delete();
process.stdout.write(`${JSON.stringify(figures)}\n`, () => process.exit(0));
