// Files of sandboxes and workspaces.
const text = (bytes) => new TextDecoder().decode(bytes);

async function collected(pieces) {
  const all = [];
  for await (const piece of pieces) all.push(...piece);
  return Uint8Array.from(all);
}

export default [
  ['files are written and read', async ({ main }, assert) => {
    const { files } = main;
    assert.equal((await files.write('/workspace/deep/a.txt', 'héllo', { mode: '0600' })).mode, '0600');
    assert.equal(await files.read('deep/a.txt'), 'héllo');
    assert.equal(await files.read('/workspace/deep/a.txt', { start: 3, end: 5 }), 'll');
    assert.equal((await files.append('deep/a.txt', ' you')).size, 10);
    assert.deepEqual(await files.readBytes('deep/a.txt', { start: 6 }), new TextEncoder().encode(' you'));
    const all = Uint8Array.from({ length: 256 }, (_, i) => i);
    await files.write('/workspace/bytes', all);
    assert.deepEqual(await files.readBytes('/workspace/bytes'), all);
    await files.write('/workspace/sp ä+%?#', new Blob(['b']));
    assert.equal(await files.read('/workspace/sp ä+%?#'), 'b');
    await files.write('/workspace/buffer', all.buffer);
    assert.equal((await files.head('/workspace/buffer')).size, 256);
    const { size, mode, type, modified } = await files.head('deep/a.txt');
    assert.deepEqual([size, mode, type], [10, '0600', 'file']);
    assert(Date.parse(modified) > 0);
    assert.deepEqual([await files.exists('deep/a.txt'), await files.exists('deep/b.txt')], [true, false]);
  }],
  ['large files are streamed both ways', async ({ main }, assert) => {
    const piece = new Uint8Array(100_000).fill(7);
    async function* source() {
      for (let i = 0; i < 50; i++) yield piece;
    }
    assert.equal((await main.files.write('/workspace/large', source())).size, 5_000_000);
    let n = 0;
    for await (const part of main.files.readStream('/workspace/large')) n += part.length;
    assert.equal(n, 5_000_000);
    const stream = new Blob([piece, piece]).stream();
    assert.equal((await main.files.write('/workspace/large', stream)).size, 200_000);
    for await (const _ of main.files.readStream('/workspace/large')) break; // leaving early is fine
    await main.files.remove('/workspace/large');
  }],
  ['directories are listed, made, copied, moved and removed', async ({ main, sdk, rejects }, assert) => {
    const { files } = main;
    await files.mkdir('/workspace/d/e', { mode: '0755' });
    await files.write('/workspace/d/e/one.py', 'import os  # TODO\n');
    await files.write('/workspace/d/two.txt', 'TODO later\n');
    assert.deepEqual((await files.list('/workspace/d')).map((one) => one.name).sort(), ['e', 'two.txt']);
    assert.deepEqual((await files.list('/workspace/d', { depth: 2 })).map((one) => one.path).sort(), ['e', 'e/one.py', 'two.txt']);
    const page = await files.listPage('/workspace/d', { limit: 1 });
    assert.deepEqual([page.entries.length, typeof page.next], [1, 'string']);
    assert.equal((await files.listPage('/workspace/d', { limit: 1, cursor: page.next })).next, null);
    assert.equal((await files.copy('/workspace/d', '/workspace/copy', { recursive: true })).files, 2);
    assert.equal((await files.move('/workspace/copy', '/workspace/moved')).copied, false);
    await rejects(files.move('/workspace/moved', '/workspace/d'), sdk.ConflictError);
    assert.equal(await files.chmod('/workspace/moved', { mode: '0700', recursive: true }), 4);
    assert.equal((await files.stat('/workspace/moved/two.txt')).mode, '0700');
    assert.deepEqual((await files.find('/workspace/d', '*.py')).entries.map((one) => one.path), ['e/one.py']);
    const { matches } = await files.grep('/workspace/d', 'todo', { ignore_case: true, include: '*.txt' });
    assert.deepEqual(matches.map(({ path, line, column }) => [path, line, column]), [['two.txt', 1, 1]]);
    assert.equal((await files.replace('/workspace/d/two.txt', 'later', 'now')).replaced, 1);
    assert.equal(await files.read('/workspace/d/two.txt'), 'TODO now\n');
    await rejects(files.replace('/workspace/d/two.txt', 'absent', 'now'), sdk.ConflictError);
    await rejects(files.remove('/workspace/d'), sdk.ConflictError);
    await files.remove('/workspace/d', { recursive: true });
    await files.remove('/workspace/moved', { recursive: true });
    assert.equal(await files.exists('/workspace/d'), false);
  }],
  ['several files are uploaded, and trees as archives', async ({ main }, assert) => {
    const { files } = main;
    const made = await files.upload('/workspace/up', { 'a.txt': 'A', 'src/b.bin': Uint8Array.of(0, 255), 'c d.txt': new Blob(['C']) });
    assert.deepEqual(made.map((one) => one.size), [1, 2, 1]);
    assert.deepEqual([...(await files.readBytes('/workspace/up/src/b.bin'))], [0, 255]);
    const tar = await collected(files.readArchive('/workspace/up'));
    assert.equal((await files.writeArchive('/workspace/unpacked', tar)).files, 3);
    assert.equal(await files.read('/workspace/unpacked/c d.txt'), 'C');
  }],
  ['signed URLs need no key', async ({ main }, assert) => {
    await main.files.write('/workspace/signed', 'for all');
    const get = await main.files.sign('/workspace/signed', { expires_seconds: 60 });
    assert.equal(await (await fetch(get.url)).text(), 'for all');
    const put = await main.files.sign('/workspace/put', { method: 'PUT' });
    assert.equal((await fetch(put.url, { method: 'PUT', body: 'put', headers: { 'content-type': 'application/octet-stream' } })).status, 201);
    assert.equal(await main.files.read('/workspace/put'), 'put');
  }],
  ['changes are watched', async ({ main }, assert) => {
    await main.files.mkdir('/workspace/watched/sub');
    let ready;
    const begun = new Promise((resolve) => { ready = resolve; }), seen = [];
    const watching = (async () => {
      for await (const event of main.files.watch('/workspace/watched', { recursive: true, onReady: ready })) {
        seen.push(event);
        if (event.type === 'remove') return;
      }
    })();
    await begun;
    await main.files.write('/workspace/watched/sub/x', '1');
    await main.run('rm /workspace/watched/sub/x');
    await watching;
    assert(seen.some((one) => one.path.endsWith('sub/x')), JSON.stringify(seen));
    assert(seen.every((one) => typeof one.directory === 'boolean'));
  }],
  ['a watcher is polled', async ({ main, until, sdk, rejects }, assert) => {
    await main.files.mkdir('/workspace/polled');
    const watcher = await main.files.watcher('/workspace/polled', { recursive: true });
    await main.files.write('/workspace/polled/y', '1');
    const events = [];
    await until('the change is told', async () => {
      events.push(...(await watcher.poll()).events);
      return events.some((one) => one.path === 'y');
    });
    await watcher.remove();
    await rejects(watcher.poll(), sdk.NotFoundError);
  }],
  ['a workspace outlives its sandbox', async ({ paddock, named, box, sdk, rejects }, assert) => {
    const name = named('ws');
    assert.equal((await paddock.workspaces.create({ name })).name, name);
    const files = paddock.workspaces.files(name);
    await files.write('in/a.txt', 'kept');
    const sb = await box({ workspace: name });
    assert.equal(await sb.files.read('/workspace/in/a.txt'), 'kept');
    await sb.files.write('/workspace/b.txt', 'from inside');
    await sb.delete();
    assert.equal(await files.read('b.txt'), 'from inside');
    assert.deepEqual((await files.list('/')).map((one) => one.name).sort(), ['b.txt', 'in']);
    assert.equal((await files.head('b.txt')).size, 11);
    assert.equal(await files.exists('nothing'), false);
    await files.append('b.txt', '!');
    assert.equal(text(await files.readBytes('b.txt', { start: 10 })), 'e!');
    await files.remove('in', { recursive: true });
    assert.equal((await paddock.workspaces.get(name)).disk.used_bytes >= 0, true);
    assert((await paddock.workspaces.list()).some((one) => one.name === name));
    const copy = await paddock.workspaces.create({ name: named('ws-copy'), clone_of: name, readonly: true });
    assert.equal(copy.readonly, true);
    await paddock.workspaces.remove(copy.name);
    await paddock.workspaces.remove(name);
    await rejects(paddock.workspaces.get(name), sdk.NotFoundError);
  }],
];
