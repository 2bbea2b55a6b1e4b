// Runs the scenarios on one platform against the daemon that the environment names.
//
//   run.mjs --list              the scenarios' names
//   run.mjs LABEL ANSWERS       one JSON object a line: {scenario, ok, ms, error}
//
// Each call of the SDK is noted in the file ANSWERS, a line for each: {operation, status, body}. LABEL makes names unique,
// as several platforms share the daemon.
import assert from 'node:assert/strict';
import { appendFileSync, writeFileSync } from 'node:fs';

const FILES = ['sandbox', 'files', 'live', 'network', 'server', 'money', 'failures', 'others'];
const LATEST_MS = 60_000;

async function until(what, ask, latestMs = 30_000) {
  const end = Date.now() + latestMs;
  for (;;) {
    const value = await ask();
    if (value) return value;
    assert(Date.now() < end, `${what}: not within ${latestMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function scenarios() {
  return (await Promise.all(FILES.map(async (file) => (await import(`./scenarios/${file}.mjs`)).default))).flat();
}

async function main(label, answers) {
  const sdk = await import('@paddock/sandbox');
  writeFileSync(answers, '');
  const onAnswer = (operation, status, body) => appendFileSync(answers, `${JSON.stringify({ operation, status, body })}\n`);
  const paddock = new sdk.Paddock({ onAnswer }), made = [];
  const world = {
    sdk, paddock, label, until, onAnswer,
    named: (name) => `${label}-${name}`,
    async box(options) {
      const sb = await paddock.sandboxes.create(options);
      made.push(sb);
      return sb;
    },
    async rejects(promise, Class) {
      const e = await promise.then(() => assert.fail(`nothing was thrown, instead of ${Class.name}`), (thrown) => thrown);
      assert(e instanceof Class, `${Class.name} was expected, and came: ${e?.stack ?? e}`);
      return e;
    },
  };
  world.main = await world.box({ name: world.named('main'), metadata: { run: label }, ttl_seconds: 600 });
  for (const [name, run] of await scenarios()) {
    const begun = Date.now();
    let error;
    try {
      await within(run(world, assert), LATEST_MS);
    } catch (e) {
      error = `${e?.stack ?? e}`.slice(0, 3000);
    }
    console.log(JSON.stringify({ scenario: name, ok: !error, ms: Date.now() - begun, error }));
  }
  await Promise.all(made.map((sb) => sb.delete().catch(() => {})));
}

if (process.argv[2] === '--list') {
  for (const [name] of await scenarios()) console.log(name);
} else {
  await main(process.argv[2], process.argv[3]);
  process.stdout.write('', () => process.exit(0)); // when all is written
}
