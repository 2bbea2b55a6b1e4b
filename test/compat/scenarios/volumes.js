// Volumes: what they are, their files, and how a sandbox sees them.
'use strict';

const since = '2.20.0';
let volume;

module.exports = [
  {
    name: 'volumes',
    since,
    async run({ sdk, version, rejects }, assert) {
      const name = `vol-${version}`;
      volume = await sdk.Volume.create(name);
      assert.equal(volume.name, name);
      assert(volume.volumeId && volume.token);
      await rejects(sdk.Volume.create(name), 'VolumeError');
      const info = await sdk.Volume.getInfo(volume.volumeId);
      assert.deepEqual([info.volumeId, info.name, info.token], [volume.volumeId, name, volume.token]);
      assert((await sdk.Volume.list()).some((v) => v.volumeId === volume.volumeId && v.name === name));
      assert.equal((await sdk.Volume.connect(volume.volumeId)).token, volume.token);
      await rejects(sdk.Volume.getInfo('none'), 'NotFoundError', 'VolumeNotFoundError');
      const other = await sdk.Volume.create(`${name}-gone`);
      assert.equal(await sdk.Volume.destroy(other.volumeId), true);
      assert.equal(await sdk.Volume.destroy(other.volumeId), false);
    },
  },
  {
    name: 'volume files',
    since,
    async run({ sdk, rejects }, assert) {
      const text = 'häslein\n';
      const written = await volume.writeFile('/a/file.txt', text);
      assert.deepEqual([written.path, written.name, written.type, written.size], ['/a/file.txt', 'file.txt', 'file', 9]);
      assert(Math.abs(written.mtime.getTime() - Date.now()) < 60000 && written.ctime >= written.mtime && written.atime.getTime());
      assert.equal(await volume.readFile('/a/file.txt'), text);
      assert.equal(Buffer.from(await volume.readFile('a/file.txt', { format: 'bytes' })).toString(), text);
      assert.equal(await (await volume.readFile('/a/file.txt', { format: 'blob' })).text(), text);
      const parts = [];
      for await (const part of await volume.readFile('/a/file.txt', { format: 'stream' })) parts.push(part);
      assert.equal(Buffer.concat(parts).toString(), text);
      const large = Buffer.alloc(3 << 20, 'x');
      assert.equal((await volume.writeFile('/large', new Blob([large]))).size, large.length);
      assert(Buffer.from(await volume.readFile('/large', { format: 'bytes' })).equals(large));
      await volume.writeFile('/a/file.txt', '');
      assert.equal(await volume.readFile('/a/file.txt'), '');
      assert.equal((await volume.getInfo('/a/file.txt')).size, 0);
      await rejects(volume.writeFile('/large', 'not this', { force: false }), 'VolumeError', 'ConflictError');
      assert.equal((await volume.getInfo('/large')).size, large.length);
      assert.equal((await volume.writeFile('/large', 'this', { force: true })).size, 4);
      assert.equal((await volume.writeFile('/fresh', 'x', { force: false })).size, 1);
      assert.equal(await volume.exists('/nothing'), false);
      assert.equal(await volume.exists('/a'), true);
      await rejects(volume.readFile('/nothing'), 'NotFoundError', 'VolumePathNotFoundError');
    },
  },
  {
    name: 'volume directories',
    since,
    async run({ rejects }, assert) {
      const made = await volume.makeDir('/d', { mode: 0o700, uid: 1234, gid: 4321 });
      assert.deepEqual([made.type, made.mode & 0o7777, made.uid, made.gid], ['directory', 0o700, 1234, 4321]);
      await rejects(volume.makeDir('/d'), 'VolumeError', 'ConflictError');
      await rejects(volume.makeDir('/x/y/z'), 'NotFoundError', 'VolumePathNotFoundError');
      await volume.makeDir('/x/y/z', { force: true });
      await volume.writeFile('/x/y/f', 'f', { mode: 0o600, uid: 77 });
      const list = await volume.list('/x', { depth: 2 });
      assert.deepEqual(list.map((e) => [e.path, e.name, e.type]),
        [['/x/y', 'y', 'directory'], ['/x/y/f', 'f', 'file'], ['/x/y/z', 'z', 'directory']]);
      assert.deepEqual([list[1].mode & 0o7777, list[1].uid], [0o600, 77]);
      assert.deepEqual((await volume.list('/x')).map((e) => e.path), ['/x/y']);
      const changed = await volume.updateMetadata('/x/y/f', { mode: 0o640, gid: 88 });
      assert.deepEqual([changed.mode & 0o7777, changed.uid, changed.gid], [0o640, 77, 88]);
      await volume.remove('/x');
      assert.equal(await volume.exists('/x'), false);
      await rejects(volume.remove('/x'), 'NotFoundError', 'VolumePathNotFoundError');
      await rejects(volume.list('/nothing'), 'NotFoundError', 'VolumePathNotFoundError');
    },
  },
  {
    name: 'volume in a sandbox',
    since,
    async run({ sdk, box, rejects }, assert) {
      await volume.writeFile('/from-outside', 'out');
      const b = await box(undefined, { volumeMounts: { '/workspace': volume } });
      assert.equal(await b.files.read('/workspace/from-outside'), 'out');
      await b.commands.run('echo -n in > /workspace/from-inside && ln -s from-inside /workspace/link');
      assert.equal(await volume.readFile('/from-inside'), 'in');
      const link = await volume.getInfo('/link');
      assert.deepEqual([link.type, link.target], ['symlink', 'from-inside']);
      assert.deepEqual((await b.getInfo()).volumeMounts, [{ name: volume.name, path: '/workspace' }]);
      await rejects(sdk.Volume.destroy(volume.volumeId), 'VolumeError', 'ConflictError');
      await b.kill();
      const again = await box(undefined, { volumeMounts: { '/workspace': volume.name } });
      assert.equal(await again.files.read('/workspace/from-inside'), 'in');
      await again.kill();
      await rejects(box(undefined, { volumeMounts: { '/proc/x': volume } }), 'SandboxError', 'InvalidArgumentError');
    },
  },
  {
    name: 'several volumes, mounted where the client says',
    since,
    async run({ sdk, version, box, rejects }, assert) {
      const other = await sdk.Volume.create(`vol-${version}-other`);
      await other.writeFile('/deep/file', 'of the other');
      const b = await box(undefined, { volumeMounts: { '/data': volume, '/home/user/more': other } });
      assert.equal(await b.files.read('/data/from-inside'), 'in');
      assert.equal(await b.files.read('/home/user/more/deep/file'), 'of the other');
      await b.commands.run('echo -n both | tee /data/both more/both');
      assert.equal(await volume.readFile('/both') + await other.readFile('/both'), 'bothboth');
      const mounts = (await b.getInfo()).volumeMounts.map((m) => [m.name, m.path]).sort();
      assert.deepEqual(mounts, [[volume.name, '/data'], [other.name, '/home/user/more']].sort());
      await rejects(sdk.Volume.destroy(other.volumeId), 'VolumeError', 'ConflictError');
      await rejects(box(undefined, { volumeMounts: { '/a': volume.name, '/a/b': other.name } }), 'SandboxError', 'InvalidArgumentError');
      await b.kill();
      assert.equal(await sdk.Volume.destroy(other.volumeId), true);
      assert.equal(await sdk.Volume.destroy(volume.volumeId), true);
    },
  },
];
