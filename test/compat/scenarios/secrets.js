// Secrets: what is known of them, and how they get into requests.
'use strict';

const since = '2.45.0';

module.exports = [
  {
    name: 'secrets',
    since,
    async run({ sdk, version, rejects }, assert) {
      const name = `Key-of-${version}`, stored = name.toLowerCase();
      const made = await sdk.Secret.create(name, 'first value');
      assert.deepEqual([made.name, made.version, made.metadata], [stored, 1, {}]);
      assert(Math.abs(made.createdAt.getTime() - Date.now()) < 60000);
      await rejects(sdk.Secret.create(name, 'again'), 'SecretError', 'ConflictError');
      const changed = await sdk.Secret.update(name, 'second value');
      assert.deepEqual([changed.secretId, changed.version], [made.secretId, 2]);
      assert(changed.updatedAt >= made.createdAt);
      for (const ref of [stored, made.secretId]) assert.equal((await sdk.Secret.getInfo(ref)).name, stored);
      await sdk.Secret.create(`${name}-2`, 'x');
      const found = [], pages = sdk.Secret.list({ limit: 1 });
      while (pages.hasNext) {
        const page = await pages.nextItems();
        assert(page.length <= 1);
        found.push(...page.map((s) => s.name));
      }
      assert(found.includes(stored) && found.includes(`${stored}-2`));
      assert.equal(new Set(found).size, found.length);
      assert(!JSON.stringify(await sdk.Secret.list().nextItems()).includes('second value'));
      await sdk.Secret.update(name, 'third value', { metadata: { team: 'billing', 'häslein': '' } });
      const noted = await sdk.Secret.update(name, 'fourth value');
      assert.deepEqual([noted.version, noted.metadata], [4, { team: 'billing', 'häslein': '' }], 'without any they stay');
      assert.deepEqual((await sdk.Secret.getInfo(name)).metadata, noted.metadata);
      assert.deepEqual((await sdk.Secret.update(name, 'fifth value', { metadata: {} })).metadata, {});
      const third = await sdk.Secret.create(`${name}-3`, 'x', { metadata: { of: 'the third' } });
      assert.deepEqual(third.metadata, { of: 'the third' });
      const listed = (await sdk.Secret.list().nextItems()).find((s) => s.name === `${stored}-3`);
      assert.deepEqual(listed.metadata, { of: 'the third' });
      assert.equal(await sdk.Secret.destroy(`${name}-3`), true);
      assert.equal(await sdk.Secret.exists(stored), true);
      assert.equal(await sdk.Secret.destroy(made.secretId), true);
      assert.equal(await sdk.Secret.destroy(stored), false);
      assert.equal(await sdk.Secret.exists(stored), false);
      await rejects(sdk.Secret.update(stored, 'x'), 'SecretNotFoundError');
      assert.equal(await sdk.Secret.destroy(`${name}-2`), true);
    },
  },
  {
    name: 'secrets in rules',
    since: '2.51.0',
    async run({ sdk, box }, assert) {
      await sdk.Secret.create('rule-key', 'value');
      const headers = { Authorization: `Bearer ${sdk.Secret.fill('rule-key')}`, 'X-Plain': 'as it is' };
      const rules = { 'api.example.org': [{ transform: { headers } }] };
      const b = await box(undefined, { network: { allowOut: ['*.example.org'], denyOut: [sdk.ALL_TRAFFIC], rules } });
      assert.deepEqual((await b.getInfo()).network.rules, rules);
      await b.kill();
      assert.equal(await sdk.Secret.destroy('rule-key'), true);
    },
  },
];
