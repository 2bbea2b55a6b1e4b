// Runs the scenarios with one version of a client of E2B against the daemon that
// the environment names (E2B_API_URL, E2B_SANDBOX_URL, E2B_API_KEY, E2B_DOMAIN).
//
//   run.js PACKAGE          one JSON object a line: {scenario, ok, ms, error}
//   run.js --list PACKAGE   the scenarios' names, without the package being there
//
// A scenario is a function of the package and of what earlier ones left in `world`;
// `since` says which version brought what it is about. Written from the packages'
// type definitions.
'use strict';
const assert = require('assert');
const path = require('path');

const LATEST_MS = 25000; // of one scenario

function scenariosOf(name) {
  const interpreter = name === '@e2b/code-interpreter' || name.startsWith('code-');
  const files = interpreter ? ['interpreter', 'interpreter_edges'] : ['control', 'copies', 'templates', 'commands', 'terminal', 'files', 'host', 'volumes', 'secrets'];
  // The newest of the interpreter has no number in its name.
  const version = name === '@e2b/code-interpreter' ? [Infinity] : name.replace(/^(e2b|code)-/, '').split('.').map(Number);
  const known = (since) => !since || since.split('.').map(Number).reduce((r, v, i) => r || version[i] - v, 0) >= 0;
  return files.flatMap((file) => {
    let all;
    try {
      all = require(path.join(__dirname, 'scenarios', `${file}.js`));
    } catch (e) {
      if (e.code !== 'MODULE_NOT_FOUND') throw e;
      all = [];
    }
    return all.filter((s) => known(s.since));
  });
}

// Waits for what is not told: asks again and again, and fails after a while.
async function until(what, ask, latestMs = 15000) {
  const end = Date.now() + latestMs;
  for (;;) {
    const value = await ask();
    if (value) return value;
    assert(Date.now() < end, `${what}: not within ${latestMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

async function rejects(promise, ...names) {
  try {
    await promise;
  } catch (e) {
    assert(names.includes(e.constructor.name) || names.includes(e.name), `${e.constructor.name}: ${e.message}`);
    return e;
  }
  return assert.fail(`nothing was thrown, instead of ${names.join(' or ')}`);
}

async function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no end after ${ms} ms`)), ms); });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function main(name) {
  const root = process.env.COMPAT_MODULES;
  const sdk = require(require.resolve(name, { paths: [root] }));
  const made = [];
  const world = {
    sdk, until, rejects, version: name,
    // A box of the scenario's own, ended at the end.
    async box(template, options) {
      const b = await (template ? sdk.Sandbox.create(template, options) : sdk.Sandbox.create(options));
      made.push(b);
      return b;
    },
    keep: (b) => made.push(b),
  };
  world.main = await world.box(undefined, { timeoutMs: 300000, metadata: { run: name }, envs: { OF_BOX: 'yes' } });
  for (const s of scenariosOf(name)) {
    const begun = Date.now();
    let error;
    try {
      await within(s.run(world, assert), s.latestMs ?? LATEST_MS);
    } catch (e) {
      error = `${e.stack || e}`.slice(0, 2000);
    }
    process.stdout.write(`${JSON.stringify({ scenario: s.name, ok: !error, ms: Date.now() - begun, error })}\n`);
  }
  await Promise.all(made.map((b) => b.kill().catch(() => {})));
}

if (process.argv[2] === '--list') {
  for (const s of scenariosOf(process.argv[3])) console.log(s.name);
} else {
  main(process.argv[2]).then(() => process.exit(0), (e) => {
    console.error(e);
    process.exit(1);
  });
}
