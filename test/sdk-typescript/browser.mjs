// The SDK in Chromium. The page and the API come from one origin, as behind a reverse proxy: this server has the page and
// the package, and passes everything else on to the daemon. Prints the page's result as a line of JSON.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as ask } from 'node:http';
import { connect } from 'node:net';

const daemon = new URL(process.env.PADDOCK_URL), PACKAGE = './node_modules/@paddock/sandbox/dist/';

const PAGE = `<!doctype html><title>SDK</title><script type="module">
const told = {};
const note = (name, value) => { told[name] = value; };
try {
  const { Paddock, NotFoundError, bytesOf } = await import('/package/index.js');
  const { openaiTools } = await import('/package/tools/index.js');
  const paddock = new Paddock({ apiKey: location.hash.slice(1) });
  note('health', (await paddock.health()).status);
  const sb = await paddock.sandboxes.create({ ttl_seconds: 300 });
  note('run', (await sb.run('echo "in a browser"')).stdout);
  let text = '';
  for await (const event of sb.stream('echo one; sleep 0.1; printf "\\\\303\\\\244"')) if (event.type === 'stdout') text += new TextDecoder().decode(bytesOf(event));
  note('stream', text);
  await sb.files.write('/workspace/f', new Blob(['by ', 'stream']).stream());
  note('file', await sb.files.read('/workspace/f'));
  await sb.files.upload('/workspace/up', { 'a/b': 'c' });
  note('upload', (await sb.files.list('/workspace/up/a')).map((one) => one.name).join());
  note('error', await sb.files.read('/nothing').catch((e) => e instanceof NotFoundError && e.code));
  const terminal = await sb.terminal({ term: 'dumb' });
  terminal.write('echo "typed $((6*7))"; exit 3\\n');
  let seen = '';
  for await (const piece of terminal.text()) seen += piece;
  note('terminal', [/typed 42/.test(seen), (await terminal.exit()).exit_code]);
  note('execute', (await sb.execute('6 * 7')).results[0].text);
  const abort = new AbortController(), running = sb.run('sleep 60', { signal: abort.signal });
  setTimeout(() => abort.abort(), 50);
  note('abort', await running.catch((e) => e.name));
  note('tools', openaiTools(sb).tools.length);
  note('tunnel', await sb.ports.tunnel(1).catch((e) => e.name));
  await sb.delete();
  note('ok', true);
} catch (e) {
  note('failed', String(e?.stack ?? e));
}
await fetch('/result', { method: 'POST', body: JSON.stringify(told) });
</script>`;

let finish;
const result = new Promise((resolve) => { finish = resolve; });

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://page');
  if (pathname === '/') response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
  else if (pathname.startsWith('/package/')) response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(PACKAGE + pathname.slice(9)));
  else if (pathname === '/favicon.ico') response.writeHead(404).end();
  else if (pathname === '/result') {
    let body = '';
    request.on('data', (piece) => { body += piece; }).on('end', () => (response.end(), finish(body)));
  } else {
    const passed = ask({ host: daemon.hostname, port: daemon.port, method: request.method, path: request.url, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  }
});
server.on('upgrade', (request, client, head) => {
  const passed = connect(daemon.port, daemon.hostname, () => {
    const lines = [`${request.method} ${request.url} HTTP/1.1`];
    for (let i = 0; i < request.rawHeaders.length; i += 2) lines.push(`${request.rawHeaders[i]}: ${request.rawHeaders[i + 1]}`);
    passed.write(`${lines.join('\r\n')}\r\n\r\n`);
    passed.write(head);
    passed.pipe(client).pipe(passed);
  });
  for (const [one, other] of [[client, passed], [passed, client]]) one.on('error', () => {}).on('close', () => other.destroy());
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));

const profile = mkdtempSync('/var/tmp/pdk-chromium-');
const browser = spawn('chromium', [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions', '--disable-background-networking',
  `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/#${process.env.PADDOCK_API_KEY}`,
], { stdio: ['ignore', 'ignore', 'pipe'] });
let said = '';
browser.stderr.on('data', (piece) => { said = (said + piece).slice(-3000); });
browser.on('exit', () => finish(JSON.stringify({ failed: `chromium ended: ${said}` })));
const late = setTimeout(() => finish(JSON.stringify({ failed: `no result: ${said}` })), 90_000);
console.log(await result);
clearTimeout(late);
browser.removeAllListeners('exit');
const ended = new Promise((resolve) => browser.on('exit', resolve));
browser.kill();
await ended;
rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
process.exit(0);
