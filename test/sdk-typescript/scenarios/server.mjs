// What does not belong to one sandbox.
import { createServer } from 'node:http';

export default [
  ['the server tells how it is', async ({ paddock }, assert) => {
    assert.equal((await paddock.health()).status, 'ok');
    assert.equal((await paddock.healthz()).status, 'ok');
    assert.equal((await paddock.ready()).status, 'ok');
    assert.equal((await paddock.capabilities()).api, 'v1');
    assert.equal((await paddock.posture()).ok, true);
    assert((await paddock.dialects()).listeners[0].dialects.length > 1);
    assert.match(await paddock.metrics(), /^# (HELP|TYPE) /m);
    assert.equal((await paddock.openapi()).info.title, 'Paddock');
  }],
  ['tenants have quotas, limits and policies', async ({ paddock, named, sdk, rejects }, assert) => {
    const name = named('tenant'), tenant = await paddock.tenants.create(name);
    assert((await paddock.tenants.list()).some((one) => one.id === tenant.id));
    assert.equal((await paddock.tenants.setQuota(name, { boxes: 1 })).quota.boxes, 1);
    assert.equal((await paddock.tenants.get(name)).limits.boxes, 1);
    assert.equal((await paddock.tenants.setAi(name, { day: 3 })).limits.day, 3);
    assert.equal((await paddock.tenants.changeAi(name, { month: 9 })).limits.month, 9);
    assert.equal((await paddock.tenants.getAi(name)).limits.day, 3);
    assert.equal((await paddock.tenants.setEgress(name, { allow: ['example.org'] })).source, 'tenant');
    assert.equal((await paddock.tenants.getEgress(name)).policy.rules.length, 1);
    assert.notEqual((await paddock.tenants.resetEgress(name)).source, 'tenant');
    const key = await paddock.keys.create({ tenant: name, name: 'k', role: 'user' });
    assert((await paddock.keys.list()).some((one) => one.id === key.id && one.key === undefined));
    const { url } = await paddock.core.where(), user = new sdk.Paddock({ url, apiKey: key.key, maxRetries: 0 });
    const sb = await user.sandboxes.create();
    const e = await rejects(user.sandboxes.create(), sdk.QuotaError);
    assert.deepEqual([e.code, e.status, e.retryAfter > 0], ['quota_exceeded', 429, true]);
    await rejects(user.keys.list(), sdk.PermissionDeniedError);
    await sb.delete();
    await paddock.keys.remove(key.id);
    await rejects(user.sandboxes.get('x'), sdk.AuthenticationError);
    const page = await paddock.audit.list({ sandbox: key.id, limit: 1 });
    assert.deepEqual(page.entries.map((e) => [e.action, e.verdict]), [['key.delete', 'done']]);
    const [made] = (await paddock.audit.list({ sandbox: key.id, cursor: page.next })).entries;
    assert.deepEqual([made.action, made.code], ['key.create', null]);
  }],
  ['events are listed and streamed', async ({ paddock, main }, assert) => {
    const types = [];
    for await (const event of paddock.events.list({ sandbox: main.id })) types.push(event.type);
    assert.equal(types[0], 'created');
    let ready;
    const begun = new Promise((resolve) => { ready = resolve; }), seen = [];
    const watching = (async () => {
      for await (const event of paddock.events.stream({ types: ['paused', 'resumed'], sandbox: main.id, onReady: ready })) {
        seen.push(event.type);
        if (seen.length === 2) return;
      }
    })();
    await begun;
    await main.pause();
    await main.resume();
    await watching;
    assert.deepEqual(seen, ['paused', 'resumed']);
    const abort = new AbortController(), reason = new Error('enough');
    const endless = (async () => { for await (const _ of paddock.events.stream({ signal: abort.signal, onReady: () => abort.abort(reason) })) continue; })();
    assert.equal(await endless.catch((e) => e), reason);
  }],
  ['a webhook is delivered and its signature checked', async ({ paddock, main, sdk, until }, assert) => {
    const arrived = [];
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (piece) => { body += piece; }).on('end', () => {
        arrived.push({ body, signature: request.headers['paddock-signature'] });
        response.end();
      });
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const hook = await paddock.webhooks.create({ url: `http://127.0.0.1:${server.address().port}/hook`, events: ['paused'] });
    try {
      assert((await paddock.webhooks.list()).some((one) => one.id === hook.id));
      await main.pause();
      await main.resume();
      const mine = () => arrived.find((one) => JSON.parse(one.body).sandbox === main.id);
      const { body, signature } = await until('the event arrives', mine);
      assert.equal((await sdk.verifyWebhook(body, signature, hook.secret)).type, 'paused');
      await assert.rejects(sdk.verifyWebhook(`${body} `, signature, hook.secret), /not valid/);
      await assert.rejects(sdk.verifyWebhook(body, signature, 'other-secret'), /not valid/);
      await assert.rejects(sdk.verifyWebhook(body, signature, hook.secret, Date.now() + 3_600_000), /too old/);
      await assert.rejects(sdk.verifyWebhook(body, undefined, hook.secret), /not valid/);
      await until('the delivery is noted', async () => (await paddock.webhooks.get(hook.id)).deliveries.length > 0);
    } finally {
      await paddock.webhooks.remove(hook.id);
      server.close();
    }
  }],
  ['an agent is installed, started and removed', async ({ paddock, main, named, until }, assert) => {
    const manifest = { name: 'SDK', version: '1.0.0', runtime: 'node', entrypoint: 'index.js', permissions: { chains: ['eip155:1'] } };
    assert.deepEqual((await paddock.agents.preview(manifest)).permissions.chains, ['eip155:1']);
    const name = named('agent').toLowerCase();
    const agent = await paddock.agents.install(manifest, { name });
    try {
      assert.equal(agent.status, 'waiting');
      assert((await paddock.agents.list()).some((one) => one.id === agent.id));
      await main.run('mkdir -p /tmp/agent && echo "console.log(1 + 1); setInterval(() => {}, 1000)" > /tmp/agent/index.js && tar -C /tmp/agent -cf /workspace/agent.tar .', { check: true });
      assert.equal((await paddock.agents.upload(name, main.files.readStream('/workspace/agent.tar'))).status, 'building');
      await until('the image is built', async () => (await paddock.agents.get(name)).status === 'stopped');
      assert.equal((await paddock.agents.start(name)).status, 'running');
      await until('its output is logged', async () => (await paddock.agents.logs(name, { level: 'info', after: 0, limit: 1000 })).some((one) => one.message === '2'));
      assert.equal((await paddock.agents.restart(name)).status, 'running');
      assert.deepEqual(await paddock.agents.catalogues(), []);
      const newer = { ...manifest, version: '1.1.0', permissions: { chains: ['eip155:1', 'eip155:10'] } };
      assert.deepEqual((await paddock.agents.previewUpgrade(name, newer)).asks_more, ['permissions.chains: eip155:10']);
      assert.equal((await paddock.agents.upgrade(name, newer)).upgrade.status, 'waiting');
      await paddock.agents.upload(name, main.files.readStream('/workspace/agent.tar'));
      await until('it is upgraded and runs', async () => {
        const now = await paddock.agents.get(name);
        return now.upgrade === null && now.status === 'running' && now.manifest.version === '1.1.0';
      });
      assert.equal((await paddock.agents.stop(name)).status, 'stopped');
      assert.deepEqual((await paddock.agents.limits(name)).limits, []);
      assert.deepEqual((await paddock.agents.spending(name)).lines, []);
      assert.equal((await paddock.agents.restrict(name, { paused: true })).paused, true);
      await assert.rejects(paddock.agents.restrict(name, { paused: false }), { code: 'forbidden' });
    } finally {
      await paddock.agents.remove(agent.id);
    }
  }],
  ['transactions, wallets and the signer', async ({ paddock }, assert) => {
    // Without a wallet there are none; money.mjs has a daemon with some.
    for await (const one of paddock.transactions.list({ state: 'pending', asset: 'native' })) assert.fail(one.id);
    assert.match(await paddock.transactions.exportCsv(), /^id,created_at,state,/);
    const missing = { code: 'not_found' };
    await assert.rejects(paddock.transactions.get('nonsense'), missing);
    await assert.rejects(paddock.transactions.approve('nonsense', `0x${'11'.repeat(32)}`), missing);
    await assert.rejects(paddock.transactions.reject('nonsense', { note: 'no' }), missing);
    await assert.rejects(paddock.transactions.cancel('nonsense'), missing);
    await assert.rejects(paddock.transactions.speedUp('nonsense'), missing);
    await assert.rejects(paddock.transactions.revoke('nonsense', { note: 'no' }), missing);
    await assert.rejects(paddock.transactions.answer('nonsense', { rejected: true }), missing);
    assert.deepEqual(await paddock.wallets.list(), []);
    await assert.rejects(paddock.wallets.spending('none of mine'));
    await assert.rejects(paddock.wallets.connect({ chains: ['eip155:7'] }));
    await paddock.wallets.sessions().catch((error) => assert.equal(error.code, 'not_supported'));
    await assert.rejects(paddock.wallets.disconnect('nonsense'));
    assert.deepEqual(await paddock.signer.chains(), []);
    assert.equal((await paddock.signer.pause({ cancel_pending: true })).paused, true);
    assert.equal((await paddock.signer.get()).available, true);
    const { entries, verified } = await paddock.signer.audit({ limit: 1, verify: true });
    assert(entries.length === 1 && verified.broken_at === null);
  }],
  ['an image is imported and removed', async ({ paddock, main, named }, assert) => {
    await main.run('mkdir -p /tmp/root/etc && hostname > /tmp/root/etc/x && tar -C /tmp/root -cf /workspace/root.tar .', { check: true });
    const name = named('imported').toLowerCase();
    const image = await paddock.images.import(name, main.files.readStream('/workspace/root.tar'));
    assert.equal(image.name, name);
    await paddock.images.remove(name);
    assert(!(await paddock.images.list()).some((one) => one.digest === image.digest));
  }],
  ['the vault is rotated', async ({ paddock }, assert) => {
    assert.match((await paddock.vault.rotate()).key, /./);
    assert.match(await paddock.vault.authority(), /BEGIN CERTIFICATE/);
  }],
];
