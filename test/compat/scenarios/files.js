// Files.
'use strict';

const NOT_FOUND = ['NotFoundError', 'FileNotFoundError'];

async function drain(stream) {
  const parts = [];
  for await (const part of stream) parts.push(Buffer.from(part));
  return Buffer.concat(parts);
}

module.exports = [
  {
    name: 'file as text',
    async run({ main }, assert) {
      const info = await main.files.write('text.txt', 'grün\n');
      assert.deepEqual([info.name, info.path, info.type], ['text.txt', '/home/user/text.txt', 'file']);
      assert.equal(await main.files.read('/home/user/text.txt'), 'grün\n');
      assert.equal((await main.commands.run('stat -c "%U %a" text.txt; cat text.txt')).stdout, 'user 644\ngrün\n');
      await main.files.write('text.txt', 'new');
      assert.equal(await main.files.read('text.txt'), 'new');
    },
  },
  {
    name: 'file as bytes, blob and stream',
    async run({ main }, assert) {
      const bytes = Uint8Array.from({ length: 300000 }, (_, i) => (i * 7919) % 256);
      await main.files.write('/tmp/bytes', bytes.buffer);
      assert(Buffer.from(bytes).equals(Buffer.from(await main.files.read('/tmp/bytes', { format: 'bytes' }))));
      const blob = await main.files.read('/tmp/bytes', { format: 'blob' });
      assert(Buffer.from(bytes).equals(Buffer.from(await blob.arrayBuffer())));
      assert(Buffer.from(bytes).equals(await drain(await main.files.read('/tmp/bytes', { format: 'stream' }))));
      await main.files.write('/tmp/blob', new Blob([bytes]));
      await main.files.write('/tmp/stream', new Blob([bytes]).stream());
      const sums = (await main.commands.run('sha256sum < /tmp/bytes; sha256sum < /tmp/blob; sha256sum < /tmp/stream')).stdout.split('\n');
      assert(sums[0] === sums[1] && sums[1] === sums[2], sums.join(' '));
    },
  },
  {
    name: 'empty file',
    async run({ main }, assert) {
      await main.files.write('/tmp/empty', '');
      assert.equal(await main.files.read('/tmp/empty'), '');
      assert.equal((await main.files.read('/tmp/empty', { format: 'bytes' })).length, 0);
    },
  },
  {
    name: 'file in directories that are not there',
    async run({ main }, assert) {
      await main.files.write('/tmp/new/deep/file', 'x');
      assert.equal(await main.files.read('/tmp/new/deep/file'), 'x');
      assert.equal((await main.commands.run('stat -c %U /tmp/new/deep')).stdout, 'user\n');
    },
  },
  {
    name: 'many files at once',
    async run({ main }, assert) {
      const made = await main.files.write([
        { path: '/tmp/many/a', data: 'one' }, { path: '/tmp/many/b b', data: 'two' }, { path: 'many/ü', data: 'three' },
      ]);
      assert.deepEqual(made.map((f) => f.path), ['/tmp/many/a', '/tmp/many/b b', '/home/user/many/ü']);
      assert.equal(await main.files.read('/tmp/many/b b'), 'two');
      assert.equal(await main.files.read('many/ü'), 'three');
      assert.deepEqual(await main.files.write([]), []);
    },
  },
  {
    name: 'compressed file',
    since: '2.20.0',
    async run({ main }, assert) {
      const text = 'the same again '.repeat(10000);
      await main.files.write('/tmp/compressed', text, { gzip: true });
      assert.equal(await main.files.read('/tmp/compressed', { gzip: true }), text);
      assert.equal((await main.commands.run('wc -c < /tmp/compressed')).stdout.trim(), `${text.length}`);
    },
  },
  {
    name: 'file of another user',
    async run({ main, rejects }, assert) {
      await main.files.write('/root/secret', 'x', { user: 'root' });
      assert.equal(await main.files.read('/root/secret', { user: 'root' }), 'x');
      assert.equal(await main.files.exists('/root/mine', { user: 'root' }), false);
      await rejects(main.files.write('/sys/x', 'x'), 'SandboxError', 'AuthenticationError', ...NOT_FOUND);
    },
  },
  {
    name: 'file in a place of root',
    async run({ main }, assert) {
      for (const place of ['/app', '/opt', '/root', '/usr/local']) {
        await main.files.write(`${place}/deep/file`, 'x');
        assert.equal(await main.files.read(`${place}/deep/file`), 'x');
        assert.equal((await main.commands.run(`sudo stat -c %U ${place}/deep ${place}/deep/file`)).stdout, 'user\nuser\n');
        await main.files.makeDir(`${place}/made`);
        await main.files.rename(`${place}/deep/file`, `${place}/made/file`);
        assert.deepEqual((await main.files.list(`${place}/made`)).map((e) => e.name), ['file']);
        await main.files.remove(`${place}/made`);
        await main.files.remove(`${place}/deep`);
        assert.equal(await main.files.exists(`${place}/made/file`), false);
      }
    },
  },
  {
    name: 'exists never throws',
    async run({ main }, assert) {
      await main.files.write('/tmp/is-file', 'x');
      await main.commands.run('ln -sfn circle /tmp/circle; sudo mkdir -m 700 -p /srv/closed');
      for (const path of ['/tmp/is-file/below', '/tmp/circle/below', '/srv/closed/none', `/tmp/${'n'.repeat(300)}`, '/root/none']) {
        assert.equal(await main.files.exists(path), false, path);
      }
      assert.equal(await main.files.exists('/srv/closed'), true);
    },
  },
  {
    name: 'file that is not there',
    async run({ main, rejects }) {
      await rejects(main.files.read('/tmp/none'), ...NOT_FOUND);
      await rejects(main.files.getInfo('/tmp/none'), ...NOT_FOUND);
      await rejects(main.files.list('/tmp/none'), ...NOT_FOUND);
      await rejects(main.files.rename('/tmp/none', '/tmp/other'), ...NOT_FOUND);
    },
  },
  {
    name: 'list',
    async run({ main, rejects }, assert) {
      await main.commands.run('mkdir -p /tmp/list/d/e/f; echo 12345 > /tmp/list/a; chmod 640 /tmp/list/a; touch /tmp/list/d/b /tmp/list/d/e/c; ln -s a /tmp/list/l');
      const names = (list) => list.map((e) => e.path.replace('/tmp/list/', '')).sort();
      assert.deepEqual(names(await main.files.list('/tmp/list')), ['a', 'd', 'l']);
      assert.deepEqual(names(await main.files.list('/tmp/list', { depth: 2 })), ['a', 'd', 'd/b', 'd/e', 'l']);
      assert.deepEqual(names(await main.files.list('/tmp/list', { depth: 4 })), ['a', 'd', 'd/b', 'd/e', 'd/e/c', 'd/e/f', 'l']);
      const entries = Object.fromEntries((await main.files.list('/tmp/list')).map((e) => [e.name, e]));
      assert.deepEqual([entries.a.type, entries.a.size, entries.a.mode, entries.a.permissions, entries.a.owner, entries.a.group],
        ['file', 6, 0o640, '-rw-r-----', 'user', 'user']);
      assert.equal(entries.d.type, 'dir');
      assert.equal(entries.l.symlinkTarget, '/tmp/list/a');
      assert(Math.abs(entries.a.modifiedTime - Date.now()) < 60000);
      assert.deepEqual(await main.files.list('/tmp/list/d/e/f'), []);
      await rejects(main.files.list('/tmp/list/a'), 'InvalidArgumentError');
    },
  },
  {
    name: 'info',
    async run({ main }, assert) {
      await main.files.write('/tmp/info', 'abc');
      const info = await main.files.getInfo('/tmp/info');
      assert.deepEqual([info.name, info.path, info.type, info.size], ['info', '/tmp/info', 'file', 3]);
      assert.equal((await main.files.getInfo('/')).type, 'dir');
    },
  },
  {
    name: 'rename, remove, exists',
    async run({ main }, assert) {
      await main.files.write('/tmp/old', 'x');
      const info = await main.files.rename('/tmp/old', '/tmp/renamed');
      assert.deepEqual([info.name, info.path], ['renamed', '/tmp/renamed']);
      assert.equal(await main.files.exists('/tmp/old'), false);
      assert.equal(await main.files.exists('/tmp/renamed'), true);
      await main.files.remove('/tmp/renamed');
      assert.equal(await main.files.exists('/tmp/renamed'), false);
      await main.files.write('/tmp/tree/of/files', 'x');
      await main.files.remove('/tmp/tree');
      assert.equal(await main.files.exists('/tmp/tree'), false);
    },
  },
  {
    name: 'directory',
    async run({ main }, assert) {
      assert.equal(await main.files.makeDir('/tmp/made/here'), true);
      assert.equal(await main.files.makeDir('/tmp/made/here'), false);
      const info = await main.files.getInfo('/tmp/made/here');
      assert.equal(info.type, 'dir');
      if (info.size !== undefined) assert(info.size > 0, 'a directory has a size');
    },
  },
  {
    name: 'watch',
    async run({ main, until }, assert) {
      const seen = [];
      await main.files.makeDir('/tmp/watched/below');
      const handle = await main.files.watchDir('/tmp/watched', (e) => { seen.push(`${e.type} ${e.name}`); });
      await main.files.write('/tmp/watched/file', 'x');
      await until('create and write', () => seen.includes('create file') && seen.includes('write file'));
      await main.files.rename('/tmp/watched/file', '/tmp/watched/other');
      await until('rename', () => seen.includes('rename file'));
      await main.files.remove('/tmp/watched/other');
      await until('remove', () => seen.includes('remove other'));
      await main.files.write('/tmp/watched/below/deep', 'x');
      await main.files.write('/tmp/watched/last', 'x');
      await until('the last', () => seen.includes('create last'));
      assert(!seen.some((s) => s.includes('deep')), seen.join());
      await handle.stop();
    },
  },
  {
    name: 'watch what is below',
    async run({ main, until }) {
      const seen = [];
      await main.files.makeDir('/tmp/watched2/below');
      const handle = await main.files.watchDir('/tmp/watched2', (e) => { seen.push(`${e.type} ${e.name}`); }, { recursive: true });
      await main.files.write('/tmp/watched2/below/deep', 'x');
      await until('what is below', () => seen.includes('create below/deep'));
      await handle.stop();
    },
  },
  {
    name: 'watch what is no directory',
    async run({ main, rejects }) {
      await rejects(main.files.watchDir('/tmp/none', () => {}), ...NOT_FOUND);
      await main.files.write('/tmp/plain', 'x');
      await rejects(main.files.watchDir('/tmp/plain', () => {}), 'InvalidArgumentError');
    },
  },
  {
    name: 'metadata of a file',
    since: '2.45.0',
    async run({ main }, assert) {
      const made = await main.files.write('/tmp/described', 'x', { metadata: { origin: 'here', kind: 'test' } });
      assert.deepEqual({ ...made.metadata }, { origin: 'here', kind: 'test' });
      assert.deepEqual({ ...(await main.files.getInfo('/tmp/described')).metadata }, { origin: 'here', kind: 'test' });
      await main.files.write('/tmp/described', 'y', { metadata: { kind: 'other' } });
      assert.deepEqual({ ...(await main.files.getInfo('/tmp/described')).metadata }, { kind: 'other' });
    },
  },
  {
    name: 'signed links',
    async run({ main }, assert) {
      await main.files.write('/tmp/linked', 'by link');
      const url = await main.downloadUrl('/tmp/linked', { useSignatureExpiration: 60 });
      const response = await fetch(url);
      assert.equal(response.status, 200);
      assert.equal(await response.text(), 'by link');
      assert.equal((await fetch(url.replace('linked', 'other'))).status >= 400, true);
      const form = new FormData();
      form.append('file', new Blob(['sent by link']), 'sent');
      const up = await fetch(await main.uploadUrl('/tmp/sent', { useSignatureExpiration: 60 }), { method: 'POST', body: form });
      assert.equal(up.status, 200, await up.text());
      assert.equal(await main.files.read('/tmp/sent'), 'sent by link');
      const bare = new FormData();
      bare.append('file', 'without a file name');
      const unnamed = await fetch(await main.uploadUrl('/tmp/unnamed', { useSignatureExpiration: 60 }), { method: 'POST', body: bare });
      assert.equal(unnamed.status, 200, await unnamed.text());
      assert.equal(await main.files.read('/tmp/unnamed'), 'without a file name');
    },
  },
];
