// The control plane: making, finding, listing, pausing, ending.
'use strict';

async function all(paginator) {
  const items = [];
  while (paginator.hasNext) items.push(...await paginator.nextItems());
  return items;
}

const NOT_FOUND = ['NotFoundError', 'SandboxNotFoundError'];

module.exports = [
  {
    name: 'create',
    async run({ main, box, sdk }, assert) {
      assert.match(main.sandboxId, /^[a-z0-9]{20}$/);
      const before = Date.now();
      const b = await box('base', { metadata: { purpose: 'a b&c=d', 'k/1': 'ü' }, envs: { A: '1' }, timeoutMs: 60000 });
      assert.notEqual(b.sandboxId, main.sandboxId);
      const info = await b.getInfo();
      assert.equal(info.sandboxId, b.sandboxId);
      assert.deepEqual({ ...info.metadata }, { purpose: 'a b&c=d', 'k/1': 'ü' });
      assert.equal(info.templateId, 'base');
      assert.equal(info.state, 'running');
      assert(info.cpuCount >= 1 && info.memoryMB >= 16, JSON.stringify(info));
      const left = info.endAt.getTime() - before;
      assert(left > 50000 && left < 90000, `${left} ms left`);
      await sdk.Sandbox.kill(b.sandboxId);
    },
  },
  {
    name: 'create from an unknown template',
    async run({ sdk, rejects }, assert) {
      const e = await rejects(sdk.Sandbox.create('no-such-template'), 'SandboxError', ...NOT_FOUND);
      assert.match(e.message, /404|not found/i);
    },
  },
  {
    name: 'create with a wrong key',
    async run({ sdk, rejects }) {
      await rejects(sdk.Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), 'AuthenticationError');
    },
  },
  {
    name: 'what cannot be done is refused',
    async run({ sdk, rejects }, assert) {
      const e = await rejects(sdk.Sandbox.create({ network: { egressProxy: { address: '192.0.2.1:1080' } } }), 'SandboxError');
      assert.match(e.message, /501.*egressProxy/);
    },
    since: '2.45.0',
  },
  {
    name: 'what a box may reach',
    since: '2.45.0',
    async run({ sdk, box }, assert) {
      const b = await box(undefined, { network: { allowOut: ['example.org'], denyOut: [sdk.ALL_TRAFFIC] } });
      assert.deepEqual((await b.getInfo()).network.allowOut, ['example.org']);
      await b.updateNetwork({ denyOut: ['192.0.2.0/24'] });
      const { network } = await b.getInfo();
      assert.deepEqual([network.allowOut, network.denyOut], [[], ['192.0.2.0/24']]);
      await b.kill();
    },
  },
  {
    name: 'connect',
    async run({ main, sdk }, assert) {
      const again = await sdk.Sandbox.connect(main.sandboxId);
      assert.equal(again.sandboxId, main.sandboxId);
      assert.equal((await again.getInfo()).state, 'running');
    },
  },
  {
    name: 'connect never shortens a life',
    async run({ main, sdk }, assert) {
      const before = (await main.getInfo()).endAt.getTime();
      await sdk.Sandbox.connect(main.sandboxId, { timeoutMs: 5000 });
      assert.equal((await main.getInfo()).endAt.getTime(), before);
      await sdk.Sandbox.connect(main.sandboxId, { timeoutMs: 600000 });
      assert((await main.getInfo()).endAt.getTime() > before);
    },
  },
  {
    name: 'connect to what is not there',
    async run({ sdk, rejects }) {
      await rejects(sdk.Sandbox.connect('zzzzzzzzzzzzzzzzzzzz'), ...NOT_FOUND);
      await rejects(sdk.Sandbox.getInfo('zzzzzzzzzzzzzzzzzzzz'), ...NOT_FOUND);
    },
  },
  {
    name: 'list by metadata, in pages',
    async run({ sdk, box, version }, assert) {
      const mine = `list of ${version} & more`, made = [];
      for (let i = 0; i < 3; i++) made.push((await box(undefined, { metadata: { mine, i: `${i}` } })).sandboxId);
      const found = await all(sdk.Sandbox.list({ query: { metadata: { mine } }, limit: 2 }));
      assert.deepEqual(found.map((s) => s.sandboxId), made.toReversed(), 'the newest first');
      assert.deepEqual(found.map((s) => s.metadata.i), ['2', '1', '0']);
      const one = await all(sdk.Sandbox.list({ query: { metadata: { mine, i: '1' } } }));
      assert.deepEqual(one.map((s) => s.sandboxId), [made[1]]);
      assert.deepEqual(await all(sdk.Sandbox.list({ query: { metadata: { mine }, state: ['paused'] } })), []);
      await Promise.all(made.map((id) => sdk.Sandbox.kill(id)));
      assert.deepEqual(await all(sdk.Sandbox.list({ query: { metadata: { mine } } })), []);
    },
  },
  {
    name: 'list in the other order, by time and template',
    since: '2.51.0',
    async run({ sdk, box, version }, assert) {
      const mine = `order of ${version}`;
      const first = await box(undefined, { metadata: { mine } });
      const second = await box(undefined, { metadata: { mine } });
      const ids = async (options) => (await all(sdk.Sandbox.list(options))).map((s) => s.sandboxId);
      assert.deepEqual(await ids({ query: { metadata: { mine } }, order: 'asc', limit: 1 }), [first.sandboxId, second.sandboxId]);
      const started = (await first.getInfo()).startedAt;
      assert.deepEqual(await ids({ query: { metadata: { mine }, startedAfter: started } }), [second.sandboxId, first.sandboxId]);
      const later = new Date((await second.getInfo()).startedAt.getTime() + 1);
      assert.deepEqual(await ids({ query: { metadata: { mine }, startedAfter: later } }), []);
      assert.deepEqual(await ids({ query: { metadata: { mine }, template: 'no-such-template' } }), []);
      assert.equal((await ids({ query: { metadata: { mine }, template: 'base' } })).length, 2);
      await Promise.all([first.kill(), second.kill()]);
    },
  },
  {
    name: 'timeout',
    async run({ sdk, box, until }, assert) {
      const b = await box(undefined, { timeoutMs: 60000 });
      const before = (await b.getInfo()).endAt.getTime();
      await b.setTimeout(120000);
      assert((await b.getInfo()).endAt.getTime() > before + 30000);
      await sdk.Sandbox.setTimeout(b.sandboxId, 1000);
      await until('the box ends', () => sdk.Sandbox.getInfo(b.sandboxId).then(() => false, (e) => NOT_FOUND.includes(e.constructor.name)));
    },
  },
  {
    name: 'kill',
    async run({ sdk, box }, assert) {
      const b = await box();
      assert.equal(await sdk.Sandbox.kill(b.sandboxId), true);
      assert.equal(await sdk.Sandbox.kill(b.sandboxId), false);
    },
  },
  {
    name: 'metrics',
    async run({ main }, assert) {
      const [m] = (await main.getMetrics()).slice(-1);
      assert(m.timestamp instanceof Date && Math.abs(m.timestamp - Date.now()) < 60000);
      assert(m.cpuCount >= 1 && m.cpuUsedPct >= 0 && m.memUsed > 0 && m.memTotal > m.memUsed, JSON.stringify(m));
    },
  },
  {
    name: 'pause and connect',
    async run({ sdk, box, version }, assert) {
      const mine = `pause of ${version}`;
      const b = await box(undefined, { metadata: { mine } });
      const pause = (id) => (sdk.Sandbox.pause || sdk.Sandbox.betaPause).call(sdk.Sandbox, id);
      assert.equal(await pause(b.sandboxId), true);
      assert.equal((await b.getInfo()).state, 'paused');
      assert.equal(await pause(b.sandboxId), false, 'it was paused already');
      const paused = await all(sdk.Sandbox.list({ query: { metadata: { mine }, state: ['paused'] } }));
      assert.deepEqual(paused.map((s) => s.sandboxId), [b.sandboxId]);
      const again = await sdk.Sandbox.connect(b.sandboxId, { timeoutMs: 90000 });
      const info = await again.getInfo();
      assert.equal(info.state, 'running');
      const left = info.endAt.getTime() - Date.now();
      assert(left > 60000 && left < 100000, `${left} ms left`);
      await again.kill();
    },
  },
  {
    name: 'pause at the end of its time',
    async run({ sdk, until, keep }, assert) {
      const b = sdk.Sandbox.betaCreate
        ? await sdk.Sandbox.betaCreate({ autoPause: true, timeoutMs: 1000 })
        : await sdk.Sandbox.create({ lifecycle: { onTimeout: 'pause' }, timeoutMs: 1000 });
      keep(b);
      await until('the box is paused', async () => (await b.getInfo()).state === 'paused');
      const again = await sdk.Sandbox.connect(b.sandboxId);
      assert.equal((await again.getInfo()).state, 'running');
      await again.kill();
    },
  },
];
