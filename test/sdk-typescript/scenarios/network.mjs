// Ports, egress, secrets, models and links.
const SERVER = `
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        body = self.rfile.read(int(self.headers.get('content-length') or 0)).decode()
        text = json.dumps({'method': self.command, 'path': self.path, 'body': body, 'auth': self.headers.get('authorization')}).encode()
        self.send_response(200); self.send_header('content-length', str(len(text))); self.end_headers()
        if self.command != 'HEAD': self.wfile.write(text)
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8123), H).serve_forever()
`;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

async function serve(sb, until) {
  await sb.files.write('/workspace/server.py', SERVER);
  await sb.processes.start('python3 /workspace/server.py');
  await until('the server listens', async () => (await sb.ports.list()).ports.some((one) => one.port === 8123));
}

const bodyFor = (method) => (method === 'GET' ? {} : { body: 'sent' });

export default [
  ['ports are listed and reached by every method', async (world, assert) => {
    const sb = (world.server = await world.box());
    await serve(sb, world.until);
    for (const method of METHODS) {
      const told = await (await sb.ports.fetch(8123, '/a/b?c=d', { method, ...bodyFor(method) })).json();
      assert.deepEqual(told, { method, path: '/a/b?c=d', body: bodyFor(method).body ?? '', auth: null });
    }
    assert.equal((await sb.ports.fetch(8123, '/', { method: 'HEAD' })).status, 200);
    assert.match(await sb.ports.url(8123), /^http.*8123/);
    assert.equal((await sb.ports.fetch(8124)).status, 502);
    await assert.rejects(sb.ports.fetch(8123, '/', { method: 'TRACE' }), /TRACE is not passed on/);
  }],
  ['a preview opens one port without a key', async ({ server }, assert) => {
    const preview = await server.ports.preview(8123, { expires_seconds: 60 });
    assert(Date.parse(preview.expires_at) > Date.now());
    for (const method of METHODS) {
      const told = await (await preview.fetch('/x', { method, ...bodyFor(method) })).json();
      assert.deepEqual([told.method, told.path], [method, '/x']);
    }
    assert.equal((await preview.fetch('/', { method: 'HEAD' })).status, 200);
  }],
  ['a tunnel is a TCP connection', async ({ server }, assert) => {
    const tunnel = await server.ports.tunnel(8123);
    tunnel.write('GET /tunnel HTTP/1.0\r\n\r\n');
    tunnel.end();
    let seen = '';
    for await (const piece of tunnel) seen += new TextDecoder().decode(piece);
    tunnel.close();
    assert.match(seen, /200 OK[^]*"\/tunnel"/);
  }],
  ['a link connects two sandboxes', async ({ server, main, paddock }, assert) => {
    const link = await paddock.links.create({ from: main.id, to: server.id, port: 8123, listen: 8999 });
    assert.equal(link.up, true);
    assert((await paddock.links.list()).some((one) => one.id === link.id));
    const seen = await main.run('python3 -c "import urllib.request as u; print(u.urlopen(\'http://127.0.0.1:8999/linked\').read().decode())"');
    assert.match(seen.stdout, /linked/);
    await paddock.links.remove(link.id);
    assert(!(await paddock.links.list()).some((one) => one.id === link.id));
  }],
  ['the egress policy is set, changed and reset', async ({ box, paddock, until }, assert) => {
    const sb = await box();
    assert.equal((await sb.egress.get()).source, 'none');
    assert.equal((await sb.egress.allow('example.org:443')).policy.rules[0].host, 'example.org');
    assert.equal((await sb.egress.deny(['bad.example.org'], { open: 'close' })).policy.rules[0].action, 'deny');
    assert.equal((await sb.egress.set({ default: 'deny', allow: ['example.com'] })).policy.rules.length, 1);
    await sb.secrets.set('TOKEN', 'a-long-token');
    const injected = await sb.egress.allow('api.example.com', { inject: [{ secret: 'TOKEN', header: 'authorization', prefix: 'Bearer ' }] });
    assert.equal(injected.policy.rules[0].inject[0].secret, 'TOKEN');
    const { token, proxy } = await sb.egress.token({ allowed_hosts: ['example.com'], ttl_seconds: 60 });
    assert(token && proxy);
    assert('sets' in (await sb.egress.sets()) && 'sets' in (await paddock.egressSets()));
    await sb.run('python3 -c "import urllib.request as u; u.urlopen(\'http://192.0.2.9:81/\', timeout=5)"');
    await until('the log has the connection', async () => {
      for await (const one of sb.egress.log({ verdict: 'deny' })) if (one.port === 81) return true;
      return false;
    });
    assert.equal((await sb.egress.reset()).source, 'none');
  }],
  ['secrets go in and do not come out', async ({ main, named, paddock, box }, assert) => {
    const name = named('S').replaceAll('-', '_');
    assert.equal((await paddock.secrets.set(name, 'of the tenant')).version, 1);
    assert((await paddock.secrets.list()).some((one) => one.name === name));
    assert.equal((await main.secrets.set('OWN', Uint8Array.of(115, 51, 99, 114))).name, 'OWN');
    assert.deepEqual((await main.secrets.list()).map((one) => one.name), ['OWN']);
    assert.equal((await main.run('echo $A $B', { secrets: [{ name, env: 'A' }, { name: 'OWN', env: 'B' }] })).stdout, 'of the tenant s3cr\n');
    await main.secrets.remove('OWN');
    await paddock.secrets.remove(name);
    assert.deepEqual(await main.secrets.list(), []);
  }],
  ['models are limited, called and accounted for', async ({ box, paddock }, assert) => {
    const sb = await box({ ai: { day: 5, log_bodies: true } });
    const about = await sb.ai.get();
    assert.equal(about.limits.day, 5);
    assert.equal((await sb.ai.set({ day: 4, log_bodies: true })).limits.day, 4);
    assert.equal((await sb.ai.change({ parallel: 2 })).limits.parallel, 2);
    assert.notEqual((await sb.ai.rotateToken({ ttl_seconds: 600 })).token, about.token);
    const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }], max_tokens: 50 });
    const answer = await sb.ai.fetch('openai', 'v1/chat/completions', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
    assert.equal(answer.status, 200, await answer.clone().text());
    assert.equal((await answer.json()).choices[0].message.role, 'assistant');
    assert((await sb.ai.fetch('openai', 'v1/models')).status < 500);
    const calls = [];
    for await (const one of sb.ai.calls()) calls.push(one);
    const chat = calls.find((one) => one.model === 'gpt-4o-mini');
    assert.equal(chat.finish, 'complete');
    assert.match((await sb.ai.call(chat.id)).request.text, /hello/);
    const { usage, total } = await paddock.usage({ by: 'box,model', box: sb.id });
    assert.equal(usage.find((one) => one.model === 'gpt-4o-mini').requests, 1);
    assert(total.cost_usd > 0);
  }],
];
