// Commands: what runs in a box, and how it is talked to.
'use strict';

module.exports = [
  {
    name: 'command in the foreground',
    async run({ main }, assert) {
      const r = await main.commands.run('echo out; echo err >&2');
      assert.deepEqual([r.exitCode, r.stdout, r.stderr], [0, 'out\n', 'err\n']);
    },
  },
  {
    name: 'command that fails',
    async run({ main, rejects }, assert) {
      const e = await rejects(main.commands.run('echo out; echo err >&2; exit 3'), 'CommandExitError');
      assert.deepEqual([e.exitCode, e.stdout, e.stderr], [3, 'out\n', 'err\n']);
    },
  },
  {
    name: 'command with environment',
    async run({ main }, assert) {
      const r = await main.commands.run('echo "$OF_BOX $OF_CALL $E2B_SANDBOX $HOME $USER $LOGNAME"', { envs: { OF_CALL: 'too' } });
      assert.equal(r.stdout, 'yes too true /home/user user user\n');
      const again = await main.commands.run('echo "[$OF_CALL]$OF_BOX"', { envs: { OF_BOX: 'no' } });
      assert.equal(again.stdout, '[]no\n', 'a call\'s own come first, and stay its own');
      assert.equal((await main.commands.run('echo $E2B_SANDBOX_ID')).stdout.trim(), main.sandboxId);
    },
  },
  {
    name: 'command in a directory',
    async run({ main, rejects }, assert) {
      assert.equal((await main.commands.run('pwd')).stdout, '/home/user\n');
      assert.equal((await main.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
      const e = await rejects(main.commands.run('pwd', { cwd: '/no/such/place' }), 'InvalidArgumentError', 'SandboxError');
      assert.match(e.message, /does not exist/);
    },
  },
  {
    name: 'command as a user',
    async run({ main }, assert) {
      assert.equal((await main.commands.run('id -un')).stdout, 'user\n');
      assert.equal((await main.commands.run('id -un; echo $HOME', { user: 'root' })).stdout, 'root\n/root\n');
    },
  },
  {
    name: 'command of a login shell',
    async run({ main }, assert) {
      const r = await main.commands.run('shopt -q login_shell && echo login; [[ x == x ]] && echo $0');
      assert.match(r.stdout, /^login\n.*bash\n$/);
    },
  },
  {
    name: 'command in the background',
    async run({ main }, assert) {
      const h = await main.commands.run('sleep 0.2; echo done', { background: true });
      assert(h.pid > 0);
      const listed = (await main.commands.list()).find((p) => p.pid === h.pid);
      assert(listed, 'it is in the list');
      assert.deepEqual([listed.cmd, listed.args], ['/bin/bash', ['-l', '-c', 'sleep 0.2; echo done']]);
      const r = await h.wait();
      assert.deepEqual([r.exitCode, r.stdout], [0, 'done\n']);
      assert(!(await main.commands.list()).some((p) => p.pid === h.pid), 'it is in the list no more');
    },
  },
  {
    name: 'command that streams',
    async run({ main }, assert) {
      const seen = [];
      let first;
      const arrived = new Promise((resolve) => { first = resolve; });
      // It goes on only when we say that its first line has come.
      const h = await main.commands.run('echo one; echo oops >&2; read line; echo two $line', {
        background: true, stdin: true,
        onStdout: (data) => { seen.push(data); first(); },
        onStderr: (data) => { seen.push(data); },
      });
      await arrived;
      await main.commands.sendStdin(h.pid, 'three\n');
      const r = await h.wait();
      assert.equal(r.stdout, 'one\ntwo three\n');
      assert.equal(seen.filter((s) => s !== 'oops\n').join(''), 'one\ntwo three\n');
      assert(seen.includes('oops\n'));
    },
  },
  {
    name: 'end of stdin',
    since: '2.20.0',
    async run({ main }, assert) {
      const h = await main.commands.run('cat; echo end', { background: true, stdin: true });
      await main.commands.sendStdin(h.pid, 'text\n');
      await main.commands.closeStdin(h.pid);
      assert.equal((await h.wait()).stdout, 'text\nend\n');
    },
  },
  {
    name: 'no stdin unless asked for',
    async run({ main }, assert) {
      assert.equal((await main.commands.run('cat; echo end')).stdout, 'end\n');
    },
  },
  {
    name: 'kill a command',
    async run({ main, rejects }, assert) {
      const h = await main.commands.run('sleep 60', { background: true });
      assert.equal(await h.kill(), true);
      const e = await rejects(h.wait(), 'CommandExitError');
      assert.notEqual(e.exitCode, 0);
      const other = await main.commands.run('sleep 60', { background: true });
      assert.equal(await main.commands.kill(other.pid), true);
      await rejects(other.wait(), 'CommandExitError');
      assert.equal(await main.commands.kill(other.pid), false, 'it is not there any more');
    },
  },
  {
    name: 'connect to a command',
    async run({ main }, assert) {
      const h = await main.commands.run('read a; echo got $a', { background: true, stdin: true });
      await h.disconnect();
      const again = await main.commands.connect(h.pid);
      assert.equal(again.pid, h.pid);
      await main.commands.sendStdin(h.pid, 'it\n');
      const r = await again.wait();
      assert.deepEqual([r.exitCode, r.stdout], [0, 'got it\n']);
    },
  },
  {
    name: 'connect to no command',
    async run({ main, rejects }) {
      await rejects(main.commands.connect(999999), 'NotFoundError', 'FileNotFoundError', 'SandboxNotFoundError');
    },
  },
  {
    name: 'command that takes too long',
    async run({ main, rejects, until }, assert) {
      await rejects(main.commands.run('exec sleep 4242', { timeoutMs: 400 }), 'TimeoutError');
      await until('it is killed', async () => !(await main.commands.list()).some((p) => p.args.join(' ').includes('4242')));
      assert.equal((await main.commands.run('pgrep -f "^sleep 4242" || echo none')).stdout, 'none\n');
    },
  },
  {
    name: 'much output',
    async run({ main }, assert) {
      const r = await main.commands.run('seq 1 200000');
      assert.equal(r.stdout.length, 1288895);
      assert(r.stdout.endsWith('\n199999\n200000\n'));
    },
  },
  {
    name: 'characters of any kind',
    async run({ main }, assert) {
      const r = await main.commands.run("printf 'grün €uro 🐎\\n'; printf '\\342\\202' >&2");
      assert.equal(r.stdout, 'grün €uro 🐎\n');
      assert.equal((await main.commands.run('echo "$1 $W"', { envs: { W: 'a "b" $c `d`\nü' } })).stdout, ' a "b" $c `d`\nü\n');
    },
  },
  {
    name: 'many commands at once',
    async run({ main }, assert) {
      const all = await Promise.all(Array.from({ length: 20 }, (_, i) => main.commands.run(`echo ${i}`)));
      assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 20 }, (_, i) => `${i}\n`));
    },
  },
  {
    name: 'is it running',
    async run({ main, box }, assert) {
      assert.equal(await main.isRunning(), true);
      const b = await box();
      await b.kill();
      assert.equal(await b.isRunning(), false);
    },
  },
  {
    name: 'pause keeps memory and processes',
    async run({ sdk, box }, assert) {
      const b = await box();
      const h = await b.commands.run('x=in-memory; read go; echo $x $go', { background: true, stdin: true });
      await b.files.write('/tmp/kept', 'on disk');
      await h.disconnect();
      await (b.pause || b.betaPause).call(b);
      const again = await sdk.Sandbox.connect(b.sandboxId);
      const handle = await again.commands.connect(h.pid);
      await again.commands.sendStdin(h.pid, 'went\n');
      assert.equal((await handle.wait()).stdout, 'in-memory went\n');
      assert.equal(await again.files.read('/tmp/kept'), 'on disk');
      await again.kill();
    },
  },
  {
    name: 'a command resumes a box that wants it',
    since: '2.45.0',
    async run({ box }, assert) {
      const b = await box(undefined, { lifecycle: { onTimeout: 'pause', autoResume: true }, timeoutMs: 60000 });
      assert.deepEqual((await b.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: true });
      await b.pause();
      assert.equal((await b.getInfo()).state, 'paused');
      assert.equal((await b.commands.run('echo back')).stdout, 'back\n');
      // The command's answer may be quicker than the keeper's about the resume, by which the state is told.
      const end = Date.now() + 10000;
      let info = await b.getInfo();
      while (info.state !== 'running' && Date.now() < end) info = await b.getInfo();
      assert.equal(info.state, 'running');
      await b.kill();
    },
  },
  {
    name: 'pause without memory keeps the files alone',
    since: '2.45.0',
    async run({ sdk, box }, assert) {
      const b = await box();
      await b.files.write('/home/user/kept', 'x');
      const boot = async (of) => (await of.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout;
      const first = await boot(b);
      const h = await b.commands.run('sleep 1000', { background: true });
      h.wait().catch(() => {});
      assert.equal(await b.pause({ keepMemory: false }), true);
      assert.equal((await b.getInfo()).state, 'paused');
      const again = await sdk.Sandbox.connect(b.sandboxId);
      assert.equal(await again.files.read('/home/user/kept'), 'x');
      assert.deepEqual((await again.commands.list()).filter((p) => p.args.includes('sleep 1000')), []);
      assert.match(first, /^[0-9a-f-]{36}\n$/);
      assert.notEqual(await boot(again), first, 'it was booted again');
      await again.kill();
    },
  },
  {
    name: 'a box of another client needs its token',
    async run({ main, rejects, sdk }) {
      const stranger = new sdk.Sandbox({
        sandboxId: main.sandboxId, envdVersion: '0.6.13', envdAccessToken: main.sandboxId + '0'.repeat(64),
        apiKey: process.env.E2B_API_KEY, sandboxUrl: process.env.E2B_SANDBOX_URL, domain: process.env.E2B_DOMAIN,
      });
      await rejects(stranger.commands.run('true'), 'AuthenticationError', 'SandboxError');
      await rejects(stranger.files.read('/etc/passwd'), 'AuthenticationError', 'SandboxError');
    },
  },
  {
    name: 'command whose sandbox is killed',
    since: '2.30.0',
    async run({ box, rejects }, assert) {
      const b = await box(undefined, { timeoutMs: 60000 });
      const h = await b.commands.run('echo begun; sleep 60', { background: true });
      const ended = rejects(h.wait(), 'TimeoutError');
      await b.kill();
      assert.match((await ended).message, /killed or reached its end of life/);
      await rejects(b.commands.run('true'), 'TimeoutError', 'SandboxNotFoundError');
      await rejects(b.files.read('/etc/hostname'), 'TimeoutError', 'SandboxNotFoundError');
      assert.equal(await b.isRunning(), false);
    },
  },
  {
    name: 'command whose sandbox expires',
    since: '2.30.0',
    async run({ box, rejects }, assert) {
      const b = await box(undefined, { timeoutMs: 60000 });
      const ended = rejects(b.commands.run('sleep 60'), 'TimeoutError');
      await b.setTimeout(1000);
      assert.match((await ended).message, /killed or reached its end of life/);
      assert.equal(await b.isRunning(), false);
    },
  },
];
