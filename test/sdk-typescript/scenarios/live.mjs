// Processes and terminals.
export default [
  ['a process outlives its client and is followed', async ({ main, named, sdk, rejects }, assert) => {
    const tag = named('cat'), process = await main.processes.start('echo begun; cat; echo bad >&2', { tag, stdin: true });
    assert.deepEqual([(await process.info()).tag, (await process.info()).running], [tag, true]);
    const same = main.processes.get(tag);
    await same.write('line\n');
    await same.write(new TextEncoder().encode('last\n'), { close: true });
    let out = '', err = '', last;
    for await (const event of process.follow()) {
      if (event.type === 'stdout') out += event.data;
      if (event.type === 'stderr') err += event.data;
      last = event;
    }
    assert.deepEqual([out, err, last.exit_code], ['begun\nline\nlast\n', 'bad\n', 0]);
    assert.equal((await process.output({ stdout: 6 })).stdout.data, 'line\nlast\n');
    let rest = '';
    for await (const event of process.follow({ stdout: 11, stderr: 4 })) if (event.type === 'stdout') rest += event.data;
    assert.equal(rest, 'last\n');
    assert.deepEqual((({ running, exit_code }) => [running, exit_code])(await process.wait()), [false, 0]);
    assert((await main.processes.list()).some((one) => one.pid === process.pid));
    await rejects(main.processes.get('999999').info(), sdk.NotFoundError);
  }],
  ['a process is signalled and killed', async ({ main }, assert) => {
    const one = await main.processes.start(['sleep', '1000']);
    assert.equal((await one.wait({ timeout_ms: 1 })).running, true);
    await one.signal('TERM');
    assert.equal((await one.wait()).signal, 'SIGTERM');
    const two = await main.processes.start('sleep 1000');
    await two.kill();
    assert.equal((await two.wait()).signal, 'SIGKILL');
  }],
  ['a process in a terminal is resized', async ({ main, until }, assert) => {
    const process = await main.processes.start('read a; stty size; read b', { pty: { cols: 80, rows: 24 } });
    await process.resize({ cols: 111, rows: 33 });
    await process.write('\n');
    await until('it says its size', async () => (await process.output()).stdout.data.includes('33 111'));
    await process.kill();
  }],
  ['a terminal runs a login shell', async ({ main }, assert) => {
    const terminal = await main.terminal({ cols: 100, rows: 30, term: 'dumb' });
    assert(terminal.pid > 0);
    terminal.write('stty size; echo "ä"$((6*7)); exit 4\n');
    let seen = '';
    for await (const piece of terminal.text()) seen += piece;
    assert.match(seen, /30 100/);
    assert.match(seen, /ä42/);
    assert.deepEqual(await terminal.exit(), { exit_code: 4, signal: null });
    assert.throws(() => terminal.write('more'));
  }],
  ['a terminal is resized, left and found again', async ({ main, sdk, rejects, until }, assert) => {
    const first = await main.terminal({ term: 'dumb' });
    let seen = '', asked = false;
    for await (const piece of first.text()) {
      seen += piece;
      if (!asked && seen.endsWith('$ ')) { // before its prompt bash sets the size that it has read: one from between is lost
        asked = true;
        first.resize(90, 20);
        first.write('stty size; echo mark\'\'er\n');
      }
      if (/20 90[^]*\nmarker/.test(seen)) break;
    }
    const { pid, offset } = first;
    first.detach();
    await rejects(first.exit(), sdk.PaddockError);
    const second = await main.terminal({ process: pid, offset });
    assert.equal(second.pid, pid);
    second.write('echo se\'\'cond; exit\n');
    let later = '';
    for await (const piece of second.text()) later += piece;
    assert.match(later, /second/);
    assert(!/mark/.test(later), later);
    const third = await main.terminal();
    await third.kill();
    assert.equal((await third.exit()).signal, 'SIGKILL');
  }],
  ['a terminal ends when it is aborted', async ({ main, sdk, rejects }, assert) => {
    const abort = new AbortController(), reason = new Error('enough');
    const terminal = await main.terminal({ signal: abort.signal, kill_on_disconnect: true });
    abort.abort(reason);
    assert.equal(await terminal.exit().catch((e) => e), reason);
    const e = await rejects(main.terminal({ process: 'nothing' }), sdk.NotFoundError);
    assert.equal(e.code, 'not_found');
  }],
  ['a terminal carries much output', async ({ main }, assert) => {
    const terminal = await main.terminal({ term: 'dumb' });
    terminal.write('stty -echo; exec seq 1 300000\n');
    let n = 0, tail = '';
    for await (const piece of terminal) {
      n += piece.length;
      tail = (tail + new TextDecoder().decode(piece)).slice(-40);
    }
    assert(n > 1_900_000, String(n));
    assert.match(tail, /300000\s*$/);
  }],
];
