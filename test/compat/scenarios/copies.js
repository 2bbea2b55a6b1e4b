// Snapshots and forks.
'use strict';

module.exports = [
  {
    name: 'snapshot',
    since: '2.20.0',
    async run({ sdk, box, version }, assert) {
      const b = await box();
      const name = `snap-${version}`;
      const snapshot = await b.createSnapshot(version === 'e2b-2.20.1' ? undefined : { name });
      assert(snapshot.snapshotId);
      const copy = await box(snapshot.snapshotId);
      assert.notEqual(copy.sandboxId, b.sandboxId);
      assert.equal((await copy.getInfo()).state, 'running');
      const found = [], paginator = sdk.Sandbox.listSnapshots();
      while (paginator.hasNext) found.push(...await paginator.nextItems());
      assert(found.some((s) => s.snapshotId === snapshot.snapshotId));
      const own = await b.listSnapshots().nextItems();
      assert.deepEqual(own.map((s) => s.snapshotId), [snapshot.snapshotId]);
      await copy.kill();
      assert.equal(await sdk.Sandbox.deleteSnapshot(snapshot.snapshotId), true);
      assert.equal(await sdk.Sandbox.deleteSnapshot(snapshot.snapshotId), false);
    },
  },
  {
    name: 'fork',
    since: '2.39.0',
    async run({ box, keep }, assert) {
      const b = await box(undefined, { metadata: { of: 'fork' } });
      const forks = await b.fork({ count: 2, timeoutMs: 60000 });
      assert.equal(forks.length, 2);
      for (const f of forks) {
        assert(!(f instanceof Error), `${f}`);
        keep(f);
        const info = await f.getInfo();
        assert.equal(info.metadata.of, 'fork');
        assert(info.endAt.getTime() - Date.now() < 90000);
      }
      assert.equal(new Set([b, ...forks].map((f) => f.sandboxId)).size, 3);
    },
  },
];
