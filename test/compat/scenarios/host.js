// A server in a box, reached from outside.
'use strict';
const http = require('http');

// A browser would find the host by DNS; here it is only its name that counts.
function ask(host, path = '/', options = {}) {
  const base = new URL(process.env.E2B_SANDBOX_URL);
  return new Promise((resolve, reject) => {
    const request = http.request({ host: base.hostname, port: base.port, path, ...options, headers: { Host: host, ...options.headers } }, (response) => {
      let body = '';
      response.on('data', (d) => { body += d; });
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(options.body);
  });
}

const SERVER = `
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        n = int(self.headers.get("content-length") or 0)
        named = " ".join(name for name in self.headers if name.lower() == "x-mixed-case")
        data = f"{self.command} {self.path} {self.headers['host']} {self.rfile.read(n).decode()}{named}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8123), H).serve_forever()
`;

async function serve(b, until, headers = {}) {
  await b.files.write('/tmp/server.py', SERVER);
  await b.commands.run('exec python3 /tmp/server.py', { background: true, timeoutMs: 0 });
  await until('the server answers', async () => (await ask(b.getHost(8123), '/', { headers })).status === 200);
}

module.exports = [
  {
    name: 'host of a server in the box',
    async run({ main, until }, assert) {
      const host = main.getHost(8123);
      // with the port by which the client reached us, so that the name can be used as it is
      assert.equal(host, `8123-${main.sandboxId}.${process.env.E2B_DOMAIN}:${new URL(process.env.E2B_API_URL).port}`);
      await serve(main, until);
      const got = await ask(host, '/a%20path?q=1', { method: 'POST', body: 'sent', headers: { 'content-length': 4 } });
      assert.deepEqual([got.status, got.body], [200, `POST /a%20path?q=1 ${host} sent`]);
      const named = await ask(host, '/', { headers: { 'x-MiXeD-CaSe': '1' } });
      assert.equal(named.body, `GET / ${host} x-MiXeD-CaSe`, 'names of headers are as the client wrote them');
      const closed = await ask(main.getHost(8124));
      assert.equal(closed.status, 502);
      assert.equal(JSON.parse(closed.body).port, 8124);
      const none = await ask(`8123-${'z'.repeat(20)}.${process.env.E2B_DOMAIN}`);
      assert.deepEqual([none.status, JSON.parse(none.body).code], [502, 502]);
    },
  },
  {
    name: 'host that is not public',
    since: '2.20.0',
    async run({ box, until }, assert) {
      const b = await box(undefined, { network: { allowPublicTraffic: false } });
      assert(b.trafficAccessToken);
      const headers = { 'e2b-traffic-access-token': b.trafficAccessToken };
      await serve(b, until, headers);
      assert.equal((await ask(b.getHost(8123), '/', { headers })).status, 200);
      // To whoever shows nothing, it is not there.
      const without = await ask(b.getHost(8123));
      assert.equal(without.status, 502);
      assert.equal(JSON.parse(without.body).message, 'The sandbox was not found');
      const wrong = await ask(b.getHost(8123), '/', { headers: { 'e2b-traffic-access-token': '0'.repeat(64) } });
      assert.equal(wrong.status, without.status);
      await b.kill();
    },
  },
];
