// Life and commands of sandboxes.
export default [
  ['a sandbox is created, found and listed', async ({ sdk, paddock, main, named, label }, assert) => {
    assert.equal(main.status, 'running');
    assert.equal(main.name, named('main'));
    assert.equal((await paddock.sandboxes.get(named('main'))).id, main.id);
    const same = await sdk.Sandbox.connect(main.id);
    assert.equal(same.info.workdir, main.info.workdir);
    const found = [];
    for await (const one of paddock.sandboxes.list({ metadata: { run: label }, status: 'running' })) found.push(one.id);
    assert.deepEqual(found, [main.id]);
  }],
  ['a list goes on over pages', async ({ paddock, named, box }, assert) => {
    const tag = named('pages'), made = [await box({ metadata: { tag } }), ...(await (await box({ metadata: { tag: 'none' } })).fork(2, { metadata: { tag } }))];
    const call = paddock.core.call.bind(paddock.core), pages = [];
    paddock.core.call = (name, how) => (name === 'listSandboxes' ? (pages.push(1), call(name, { ...how, query: { ...how.query, limit: 2 } })) : call(name, how));
    const found = [];
    for await (const one of paddock.sandboxes.list({ metadata: { tag } })) found.push(one.id);
    delete paddock.core.call;
    assert.deepEqual(found.sort(), made.map((one) => one.id).sort());
    assert.equal(pages.length, 2);
    await Promise.all(made.slice(1).map((one) => one.delete()));
  }],
  ['run returns exit code and both outputs', async ({ main }, assert) => {
    const done = await main.run('echo out; echo err >&2; exit 3');
    assert.deepEqual([done.exit_code, done.stdout, done.stderr, done.timed_out], [3, 'out\n', 'err\n', false]);
    assert.equal((await main.run(['printf', '%s|', 'a b', '$c'])).stdout, 'a b|$c|');
    assert.equal((await main.run('cat; pwd; echo $X; id -un', { stdin: 'in ', cwd: '/tmp', env: { X: 'y' }, user: 'root' })).stdout, 'in /tmp\ny\nroot\n');
    assert.equal((await main.run('sleep 60', { timeout_ms: 200 })).timed_out, true);
  }],
  ['run with check throws what the command said', async ({ main, sdk, rejects }, assert) => {
    assert.equal((await main.run('true', { check: true })).exit_code, 0);
    const e = await rejects(main.run('echo bad >&2; exit 7', { check: true }), sdk.CommandFailedError);
    assert.equal(e.result.exit_code, 7);
    assert.match(e.message, /exit code 7: bad/);
  }],
  ['run can be aborted', async ({ main, until }, assert) => {
    const abort = new AbortController(), reason = new Error('enough');
    const running = main.run('echo $$ > /tmp/aborted; exec sleep 1000', { signal: abort.signal });
    await until('the command runs', async () => (await main.run('test -s /tmp/aborted')).exit_code === 0);
    abort.abort(reason);
    assert.equal(await running.catch((e) => e), reason);
    await until('the command has ended', async () => (await main.run('kill -0 $(cat /tmp/aborted)')).exit_code !== 0);
    assert.equal(await main.run('true', { signal: abort.signal }).catch((e) => e), reason);
  }],
  ['a stream yields output as it comes', async ({ main }, assert) => {
    const events = [];
    for await (const event of main.stream('echo one; echo two >&2; read line < /tmp/never; exit 0', { timeout_ms: 20000 })) {
      events.push(event);
      if (event.type === 'stderr' || event.type === 'stdout') if (events.filter((e) => e.type !== 'start').length === 2) break;
    }
    assert.equal(events[0].type, 'start');
    const out = [];
    for await (const event of main.stream(['sh', '-c', 'printf a; printf "\\303\\244"; exit 5'])) out.push(event);
    assert.equal(out.filter((e) => e.type === 'stdout').map((e) => e.data).join(''), 'aä');
    assert.deepEqual([out.at(-1).type, out.at(-1).exit_code], ['exit', 5]);
  }],
  ['a stream carries bytes that are not text', async ({ main, sdk }, assert) => {
    const bytes = [];
    for await (const event of main.stream('printf "\\377\\000\\376"')) if (event.type === 'stdout') bytes.push(...sdk.bytesOf(event));
    assert.deepEqual(bytes, [255, 0, 254]);
  }],
  ['a shell keeps its state', async ({ main, named, sdk, rejects }, assert) => {
    assert.equal((await main.shell('cd /tmp; x=5')).cwd, '/tmp');
    assert.equal((await main.shell('pwd; echo $x')).stdout, '/tmp\n5\n');
    const shell = named('sh');
    assert.equal((await main.shells.create({ name: shell, cwd: '/usr', env: { A: 'b' } })).cwd, '/usr');
    assert.equal((await main.shells.run('pwd; echo $A', { shell })).stdout, '/usr\nb\n');
    let text = '', last;
    for await (const event of main.shells.stream('cd lib; pwd', { shell })) {
      if (event.type === 'stdout') text += event.data;
      last = event;
    }
    assert.deepEqual([text, last.cwd], ['/usr/lib\n', '/usr/lib']);
    assert.equal((await main.shells.get(shell)).cwd, '/usr/lib');
    assert((await main.shells.list()).some((one) => one.name === shell));
    await main.shells.remove(shell);
    await rejects(main.shells.get(shell), sdk.NotFoundError);
    await rejects(main.shell('exit 3', { check: true }), sdk.CommandFailedError);
  }],
  ['code keeps its state', async ({ main }, assert) => {
    await main.execute('x = 6');
    const done = await main.execute('print("hi"); x * 7');
    assert.deepEqual([done.stdout, done.results[0].text, done.error], ['hi\n', '42', null]);
    assert.equal((await main.contexts.execute('1/0')).error.name, 'ZeroDivisionError');
    assert.equal((await main.execute('[1,2].length', { language: 'javascript' })).results[0].text, '2');
    const events = [];
    for await (const event of main.contexts.stream('print(x); x')) events.push(event);
    assert.deepEqual(events.map((e) => e.type), ['start', 'stdout', 'result', 'end']);
  }],
  ['contexts are created, interrupted, restarted and ended', async ({ main, sdk, rejects, until }, assert) => {
    const context = await main.contexts.create({ language: 'python', cwd: '/tmp', env: { A: 'b' } });
    assert.equal((await context.execute('import os; y = 1; os.getcwd() + os.environ["A"]')).results[0].text, "'/tmpb'");
    assert.equal((await context.info()).language, 'python');
    assert((await main.contexts.list()).some((one) => one.id === context.id));
    const busy = context.execute('import time\nopen("/tmp/busy", "w").close()\ntime.sleep(1000)');
    await until('the code runs', () => main.files.exists('/tmp/busy'));
    await context.interrupt();
    assert.equal((await busy).error.name, 'KeyboardInterrupt');
    assert.equal((await context.execute('y')).results[0].text, '1');
    await context.restart();
    assert.equal((await context.execute('y')).error.name, 'NameError');
    let seen = '';
    for await (const event of context.stream('print("s")')) if (event.type === 'stdout') seen += event.data;
    assert.equal(seen, 's\n');
    await context.remove();
    await rejects(context.info(), sdk.NotFoundError);
  }],
  ['a sandbox is changed, extended, paused, resumed, stopped and started', async ({ box, named, until }, assert) => {
    const sb = await box({ ttl_seconds: 300, limits: { memory_mb: 256 } });
    await sb.files.write('/workspace/kept', 'yes');
    await sb.update({ name: named('changed'), metadata: { a: 'b' }, limits: { memory_mb: 300 } });
    assert.deepEqual([sb.name, sb.info.metadata.a, sb.info.limits.memory_mb], [named('changed'), 'b', 300]);
    const before = Date.parse(sb.info.expires_at);
    assert(Date.parse((await sb.extend(3000)).info.expires_at) > before);
    assert.equal((await sb.pause()).status, 'paused');
    assert.equal((await sb.resume()).status, 'running');
    assert.equal((await sb.stop()).status, 'stopped');
    assert.equal((await sb.start()).status, 'running');
    assert.equal(await sb.files.read('/workspace/kept'), 'yes');
    assert.equal((await sb.refresh()).status, 'running');
    assert((await sb.stats()).memory_limit_bytes > 0);
    assert(Array.isArray((await sb.stats({ history: true })).history));
    assert((await sb.posture()).parts.length > 3);
  }],
  ['forks and snapshots have the files', async ({ box, named, paddock, sdk, rejects }, assert) => {
    const sb = await box();
    await sb.files.write('/workspace/a', 'of the first');
    const forks = await sb.fork(3, { name_prefix: named('fork'), metadata: { f: '1' } });
    assert.deepEqual(forks.map((one) => one.name), [1, 2, 3].map((n) => named(`fork-${n}`)));
    assert.equal(await forks[2].files.read('/workspace/a'), 'of the first');
    await Promise.all(forks.map((one) => one.delete()));
    const snapshot = await sb.snapshot(named('snap'));
    assert.equal((await paddock.snapshots.get(named('snap'))).id, snapshot.id);
    assert((await paddock.snapshots.list()).some((one) => one.id === snapshot.id));
    await paddock.snapshots.remove((await sb.snapshot()).id);
    const image = await paddock.images.create({ name: named('img').toLowerCase(), snapshot: snapshot.id });
    assert((await paddock.images.list()).some((one) => one.digest === image.digest));
    const again = await box({ snapshot: snapshot.id }), from = await box({ image: image.name });
    assert.equal(await again.files.read('/workspace/a'), 'of the first');
    assert.equal(await from.files.read('/workspace/a'), 'of the first');
    await Promise.all([again.delete(), from.delete()]);
    await paddock.images.remove(image.name);
    await paddock.snapshots.remove(snapshot.id);
    await rejects(paddock.snapshots.get(snapshot.id), sdk.NotFoundError);
  }],
  ['a sandbox ends with its block, and with its connection', async ({ sdk, paddock, rejects, until, onAnswer }, assert) => {
    const sb = await paddock.sandboxes.create();
    await sb[Symbol.asyncDispose]();
    await rejects(sb.refresh(), sdk.NotFoundError);
    await sb[Symbol.asyncDispose](); // once more is no error
    const abort = new AbortController();
    const tied = await sdk.Sandbox.create({ delete_on_disconnect: true, signal: abort.signal }, { onAnswer });
    assert.equal((await tied.run('echo here')).stdout, 'here\n');
    abort.abort();
    await until('it is gone', () => tied.refresh().then(() => false, (e) => e instanceof sdk.NotFoundError));
    const other = await paddock.sandboxes.create({ delete_on_disconnect: true });
    await other.delete();
    await rejects(other.refresh(), sdk.NotFoundError);
  }],
];
