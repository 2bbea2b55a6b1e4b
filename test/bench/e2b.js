// Measures with E2B's own client, unmodified and warm, and prints one JSON object with
// milliseconds:
//   e2b.js latencies ROUNDS
//   e2b.js at-once COUNT
// Sandboxes are ended outside what is timed.
'use strict';
const sdk = require(require.resolve('e2b-2.51.0', { paths: [process.env.COMPAT_MODULES] }));

const now = () => Number(process.hrtime.bigint()) / 1e6;

async function timed(rounds, what, after = async () => {}) {
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const begun = now();
    const value = await what();
    times.push(now() - begun);
    await after(value);
  }
  return times;
}

async function first() {
  const b = await sdk.Sandbox.create();
  await b.commands.run('true');
  return b;
}

const end = (b) => b.kill();

async function latencies(rounds) {
  await timed(5, first, end); // connections, code, caches
  const out = { create_and_run: await timed(rounds, first, end) };

  const b = await sdk.Sandbox.create();
  const run = () => b.commands.run('true');
  await timed(10, run);
  out.run = await timed(rounds, run);

  await b.files.write('/home/user/kilobyte', 'k'.repeat(1024));
  const read = () => b.files.read('/home/user/kilobyte');
  await timed(10, read);
  out.read = await timed(rounds, read);
  await b.kill();
  return out;
}

async function atOnce(count) {
  await timed(1, () => sdk.Sandbox.create(), end);
  const begun = now();
  const many = await Promise.all(Array.from({ length: count }, () => sdk.Sandbox.create()));
  const out = { at_once: now() - begun };
  await Promise.all(many.map((b) => b.commands.run('true')));
  out.answered = now() - begun;
  await Promise.all(many.map(end));
  return out;
}

const what = { latencies, 'at-once': atOnce }[process.argv[2]];
what(Number(process.argv[3])).then((out) => {
  console.log(JSON.stringify(out));
  process.exit(0);
}, (e) => {
  console.error(e);
  process.exit(1);
});
