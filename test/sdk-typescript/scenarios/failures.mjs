// What happens when things go wrong: errors, repetitions, connections that break.
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { connect, createServer } from 'node:net';

/** A way to the daemon that can be cut: every connection through it breaks at once. */
async function cuttable(url) {
  const { hostname, port } = new URL(url), open = new Set();
  let made = 0, refusing = false;
  const server = createServer((client) => {
    made++;
    if (refusing) {
      client.destroy();
      return;
    }
    const daemon = connect(Number(port), hostname);
    for (const [one, other] of [[client, daemon], [daemon, client]]) {
      open.add(one);
      one.on('error', () => {}).on('close', () => (open.delete(one), other.destroy()));
    }
    client.pipe(daemon);
    daemon.pipe(client);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut: () => open.forEach((one) => one.destroy()),
    refuse: (yes) => { refusing = yes; },
    get made() { return made; },
    close() {
      server.close();
      open.forEach((one) => one.destroy());
    },
  };
}

/** A server that answers what it is told, and counts. */
async function scripted(answers) {
  const seen = [];
  const server = createHttp((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    const [status, body, headers] = answers[Math.min(seen.length, answers.length) - 1];
    request.resume().on('end', () => {
      if (status === 0) request.socket.destroy();
      else response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { seen, url: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections?.(), server.close()) };
}

const failure = (code, message = 'no') => ({ error: { code, message, request_id: 'r-1' } });

export default [
  ['errors have classes, codes and advice', async ({ sdk, paddock, main, rejects, named }, assert) => {
    const e = await rejects(paddock.sandboxes.get('nothing-like-this'), sdk.NotFoundError);
    assert(e instanceof sdk.PaddockError && e instanceof Error);
    assert.deepEqual([e.name, e.code, e.status], ['NotFoundError', 'not_found', 404]);
    assert.match(e.requestId, /./);
    assert.match(e.advice, /paddock ls/);
    await rejects(main.run(['no-such-program']), sdk.CommandNotFoundError);
    await main.files.write('/tmp/of-root', 'x', { user: 'root', mode: '0600' });
    await rejects(main.files.read('/tmp/of-root'), sdk.PermissionDeniedError);
    await rejects(main.files.head('/etc/nothing'), sdk.NotFoundError);
    await rejects(main.update({ limits: { memory_mb: -1 } }), sdk.InvalidRequestError);
    await rejects(paddock.sandboxes.create({ name: named('main') }), sdk.ConflictError);
    await rejects(main.files.read('/workspace', { start: 1 }), sdk.PaddockError);
    const { url } = await paddock.core.where();
    const wrong = await rejects(new sdk.Paddock({ url, apiKey: 'pdk_wrong' }).keys.list(), sdk.AuthenticationError);
    assert.match(wrong.advice, /PADDOCK_API_KEY/);
    await main.pause();
    await rejects(main.run('true'), sdk.WrongStateError);
    await main.resume();
  }],
  ['no answer is a ConnectionError', async ({ sdk, rejects }, assert) => {
    const server = await scripted([]); // a port that nothing listens on any more
    server.close();
    const away = new sdk.Paddock({ url: server.url, apiKey: 'k', maxRetries: 0 });
    const e = await rejects(away.health(), sdk.ConnectionError);
    assert.deepEqual([e.code, e.status], ['connection', 0]);
    assert.match(e.advice, /PADDOCK_URL/);
    assert.equal(e.unsent, true);
  }],
  ['only what is safe is repeated', async ({ sdk, rejects }, assert) => {
    const script = async (answers, call) => {
      const server = await scripted(answers), client = new sdk.Paddock({ url: server.url, apiKey: 'k' });
      try {
        return [await call(client).then(() => 'ok', (e) => e.code), server.seen.length];
      } finally {
        server.close();
      }
    };
    const busy = [503, failure('unavailable')], lost = [0], fine = [200, { keys: [] }];
    const box = (client) => new sdk.Sandbox(client.core, { id: 'x', workdir: '/workspace' });
    assert.deepEqual(await script([busy, lost, fine], (c) => c.keys.list()), ['ok', 3]);
    assert.deepEqual(await script([busy], (c) => c.keys.list()), ['unavailable', 3]);
    assert.deepEqual(await script([busy, fine], (c) => c.keys.create()), ['unavailable', 1]);
    assert.deepEqual(await script([lost, fine], (c) => box(c).run('x')), ['connection', 1]);
    assert.deepEqual(await script([[429, failure('rate_limited'), { 'retry-after': '1' }], [201, {}]], (c) => c.sandboxes.create()), ['ok', 2]);
    assert.deepEqual(await script([[429, failure('quota_exceeded'), { 'retry-after': '1' }], [201, {}]], (c) => c.sandboxes.create()), ['quota_exceeded', 1]);
    assert.deepEqual(await script([lost, [201, {}]], (c) => box(c).files.write('a', 'b')), ['ok', 2]);
    assert.deepEqual(await script([lost, [200, {}]], (c) => box(c).files.append('a', 'b')), ['connection', 1]);
    assert.deepEqual(await script([lost, [204, undefined]], (c) => box(c).delete()), ['connection', 1]);
    assert.deepEqual(await script([[500, 'what?']], (c) => c.keys.list()), ['internal', 1]);
    const page = createHttp((_, response) => response.end('<html>'));
    await new Promise((resolve) => page.listen(0, '127.0.0.1', resolve));
    const e = await rejects(new sdk.Paddock({ url: `http://127.0.0.1:${page.address().port}`, apiKey: 'k' }).health(), sdk.PaddockError);
    assert.match(e.message, /no Paddock: <html>/);
    page.close();
  }],
  ['a stream goes on where a broken connection left it', async ({ sdk, paddock, main, until }, assert) => {
    const { url, key } = await paddock.core.where(), way = await cuttable(url);
    try {
      const sb = await sdk.Sandbox.connect(main.id, { url: way.url, apiKey: key });
      const go = (n) => main.files.write(`/tmp/go${n}`, '');
      await main.run('rm -f /tmp/go*');
      const command = 'for n in 1 2 3; do echo "ä$n"; echo "e$n" >&2; until [ -e /tmp/go$n ]; do sleep 0.02; done; done; exit 6';
      const events = [];
      for await (const event of sb.stream(command)) {
        events.push(event);
        if (event.type === 'stderr') {
          way.cut();
          await go(event.data.trim().slice(1));
        }
      }
      const joined = (type) => events.filter((one) => one.type === type).map((one) => one.data).join('');
      assert.deepEqual([joined('stdout'), joined('stderr')], ['ä1\nä2\nä3\n', 'e1\ne2\ne3\n']);
      assert.equal(events.filter((one) => one.type === 'start').length, 1);
      assert.equal(events.at(-1).exit_code, 6);
      assert(way.made >= 3, `${way.made} connections`);
    } finally {
      way.close();
    }
  }],
  ['a stream that cannot be resumed says so', async ({ sdk, paddock, main, rejects }) => {
    const { url, key } = await paddock.core.where(), way = await cuttable(url);
    try {
      const sb = await sdk.Sandbox.connect(main.id, { url: way.url, apiKey: key });
      const cutAtOutput = async (events) => {
        for await (const event of events) if (event.type === 'stdout') way.cut();
      };
      await rejects(cutAtOutput(sb.stream('echo x; sleep 60', { kill_on_disconnect: true })), sdk.ConnectionError);
      await rejects(cutAtOutput(sb.shells.stream('echo x; sleep 60', { shell: 'cut' })), sdk.ConnectionError);
      const context = await sb.contexts.create({ language: 'python' });
      await rejects(cutAtOutput(context.stream('print(1, flush=True); import time; time.sleep(60)')), sdk.ConnectionError);
      await main.shells.remove('cut');
      await main.contexts.get(context.id).remove();
    } finally {
      way.close();
    }
  }],
  ['a terminal attaches again without losing a byte', async ({ sdk, paddock, main }, assert) => {
    const { url, key } = await paddock.core.where(), way = await cuttable(url);
    try {
      const sb = await sdk.Sandbox.connect(main.id, { url: way.url, apiKey: key });
      const terminal = await sb.terminal({ term: 'dumb' });
      await main.run('rm -f /tmp/part*');
      terminal.write('stty -echo; PS1=; for b in 1 2 3; do for i in $(seq 1 500); do echo "<$b.$i>"; done; until [ -e /tmp/part$b ]; do sleep 0.02; done; done; echo "<end>"; read x; echo "got $x"; exit\n');
      let seen = '', part = 1;
      for await (const piece of terminal.text()) {
        seen += piece;
        if (part === 4 && seen.includes('<end>')) {
          part++;
          terminal.write('input\n');
        }
        if (part > 3 || !seen.includes(`<${part}.500>`)) continue;
        way.cut();
        await main.files.write(`/tmp/part${part++}`, '');
      }
      assert.deepEqual(seen.match(/<\d+\.\d+>/g), [1, 2, 3].flatMap((p) => Array.from({ length: 500 }, (_, i) => `<${p}.${i + 1}>`)));
      assert.match(seen, /got input/);
      assert.equal((await terminal.exit()).exit_code, 0);
      assert(way.made >= 4, `${way.made} connections`);
    } finally {
      way.close();
    }
  }],
  ['events go on after a broken connection', async ({ sdk, paddock, main, onAnswer }, assert) => {
    const { url, key } = await paddock.core.where(), way = await cuttable(url);
    try {
      const client = new sdk.Paddock({ url: way.url, apiKey: key, onAnswer }), seen = [];
      let ready;
      const begun = new Promise((resolve) => { ready = resolve; });
      const watching = (async () => {
        for await (const event of client.events.stream({ sandbox: main.id, types: ['paused', 'resumed'], onReady: ready })) {
          seen.push(event.type);
          way.cut();
          if (seen.length === 4) return;
        }
      })();
      await begun;
      way.cut(); // before the first event
      for (let i = 0; i < 2; i++) {
        await main.pause();
        await main.resume();
      }
      await watching;
      assert.deepEqual(seen, ['paused', 'resumed', 'paused', 'resumed']);
    } finally {
      way.close();
    }
  }],
  ['a broken stream gives up after its time', async ({ sdk, paddock, main, rejects }) => {
    const { url, key } = await paddock.core.where(), way = await cuttable(url);
    try {
      const sb = await sdk.Sandbox.connect(main.id, { url: way.url, apiKey: key, reconnectMs: 300 });
      await rejects((async () => {
        for await (const event of sb.stream('echo x; sleep 60')) {
          if (event.type !== 'stdout') continue;
          way.refuse(true);
          way.cut();
        }
      })(), sdk.ConnectionError);
    } finally {
      way.close();
    }
  }],
  ['address and key come from the environment and from key files', async ({ sdk, paddock, rejects, named }, assert) => {
    const { PADDOCK_URL, PADDOCK_API_KEY } = process.env, file = `/tmp/${named('key')}-${process.pid}`;
    const { findPlace } = await import(new URL('./config.js', import.meta.resolve('@paddock/sandbox')).href);
    try {
      assert.deepEqual(await paddock.core.where(), { url: PADDOCK_URL, key: PADDOCK_API_KEY, ca: undefined });
      delete process.env.PADDOCK_API_KEY;
      writeFileSync(file, `${PADDOCK_API_KEY}\n`, { mode: 0o600 });
      process.env.PADDOCK_KEY_FILE = file;
      assert.equal((await new sdk.Paddock().capabilities()).api, 'v1');
      process.env.PADDOCK_KEY_FILE = '/nowhere';
      await rejects(new sdk.Paddock().capabilities(), sdk.AuthenticationError);
      delete process.env.PADDOCK_KEY_FILE;
      // The key of this machine's daemon goes to this machine only.
      await rejects(new sdk.Paddock({ url: 'http://192.0.2.1:7080' }).capabilities(), sdk.AuthenticationError);
      assert.equal((await findPlace({ url: 'http://h/', apiKey: ' k\n' })).url, 'http://h');
      assert.equal((await findPlace({ url: 'http://h/', apiKey: ' k\n' })).key, 'k');
    } finally {
      Object.assign(process.env, { PADDOCK_URL, PADDOCK_API_KEY });
      readFileSync(file);
    }
  }],
  ['another fetch can carry the requests', async ({ sdk, paddock }, assert) => {
    const { url, key } = await paddock.core.where(), seen = [];
    const client = new sdk.Paddock({ url, apiKey: key, headers: { 'x-request-id': 'mine' }, fetch: (input, init) => (seen.push([input, init.headers['x-request-id']]), fetch(input, init)) });
    assert.equal((await client.health()).status, 'ok');
    const sb = await client.sandboxes.create();
    let text = '';
    for await (const event of sb.stream('echo by fetch')) if (event.type === 'stdout') text += event.data;
    assert.equal(text, 'by fetch\n');
    await sb.files.write('/workspace/f', new Blob(['x']).stream());
    assert.equal(await sb.files.read('/workspace/f'), 'x');
    await sb.delete();
    assert(seen.length >= 6 && seen.every(([, id]) => id === 'mine'));
  }],
];
