// The classes of other systems' clients.
import * as agentbox from '@paddock/sandbox/agentbox';
import * as sandkasten from '@paddock/sandbox/sandkasten';

export default [
  ['sandkasten: sessions', async ({ paddock, until }, assert) => {
    const { url, key } = await paddock.core.where();
    const client = new sandkasten.SandboxClient({ baseUrl: `${url}/`, apiKey: key });
    const session = await client.createSession({ image: 'python', ttlSeconds: 300 });
    try {
      await session.exec('cd /tmp; export X=1');
      const done = await session.exec('pwd; echo $X; echo bad >&2; (exit 3)');
      assert.deepEqual([done.exit_code, done.cwd], [3, '/tmp']);
      assert.match(done.output, /^\/tmp\n1\nbad\n$/);
      const chunks = [];
      for await (const chunk of session.execStream('echo one; echo two', { timeoutMs: 10000 })) chunks.push(chunk);
      assert.equal(chunks.map((one) => one.output).join(''), 'one\ntwo\n');
      assert.deepEqual((({ done: end, exit_code }) => [end, exit_code])(chunks.at(-1)), [true, 0]);
      await session.write('/workspace/a.bin', Uint8Array.of(0, 255));
      assert.deepEqual([...(await session.read('/workspace/a.bin'))], [0, 255]);
      await session.writeText('/workspace/a.txt', 'héllo');
      assert.equal(await session.readText('/workspace/a.txt'), 'héllo');
      assert.equal((await session.read('/workspace/a.txt', { maxBytes: 1 })).length, 1);
      assert.equal((await session.info()).id, session.id);
      assert.equal((await client.getSession(session.id)).status, 'running');
      assert((await client.listSessions()).some((one) => one.id === session.id));
    } finally {
      await session.destroy();
    }
    const e = await client.getSession(session.id).catch((thrown) => thrown);
    assert.deepEqual([e.name, e.status, e.code], ['SandkastenError', 404, 'SESSION_NOT_FOUND']);
  }],
  ['sandkasten: workspaces', async ({ paddock, named }, assert) => {
    const { url, key } = await paddock.core.where(), id = named('skws').toLowerCase();
    const client = new sandkasten.SandboxClient({ baseUrl: url, apiKey: key });
    const session = await client.createSession({ workspaceId: id });
    await session.writeText('/workspace/kept', 'yes');
    await session.destroy();
    assert((await client.listWorkspaces()).some((one) => one.id === id));
    await client.deleteWorkspace(id);
    assert(!(await client.listWorkspaces()).some((one) => one.id === id));
  }],
  ['agentbox: a session', async ({ paddock }, assert) => {
    const { url, key } = await paddock.core.where(), box = new agentbox.Sandbox(url, { apiKey: key });
    await assert.rejects(box.exec('true'), /No active session/);
    const made = await box.create({ allowedHosts: ['example.org'] });
    try {
      assert.deepEqual([box.sessionId, box.allowedHosts, box.networkEnabled], [made.sessionId, ['example.org'], true]);
      const done = await box.exec('pwd; echo bad >&2; exit 3', { timeout: 20 });
      assert.deepEqual(done, { exitCode: 3, stdout: '/workspace\n', stderr: 'bad\n', timedOut: false });
      assert.equal((await box.exec('sleep 60', { timeout: 1 })).timedOut, true);
      const seen = [];
      for await (const one of box.execStream('echo s; exit 2', '/tmp')) seen.push(one);
      assert.deepEqual([seen[0].type, seen[0].data, seen.at(-1).type, seen.at(-1).exitCode], ['stdout', 's\n', 'exit', 2]);
      await box.writeFile('a.txt', 'hé');
      await box.writeFile('a.txt', 'llo', 'a');
      assert.equal(await box.readFile('a.txt'), 'héllo');
      await assert.rejects(box.readFile('none'), /Failed to read file/);
      await assert.rejects(box.writeFile('/etc/x', 'y'), /Failed to write file/);
      assert.equal((await box.runPython('print(6 * 7)')).stdout, '42\n');
      assert.notEqual((await box.pipInstall(['nothing'])).exitCode, 0); // its hosts are not allowed
      const told = [];
      for await (const one of box.pipInstallStream(['nothing'])) told.push(one.type);
      assert(told.length > 0);
      assert.equal((await box.info()).sessionId, made.sessionId);
      assert((await box.list()).some((one) => one.sessionId === made.sessionId));
    } finally {
      assert.equal(await box.destroy(), true);
    }
    assert.deepEqual([await box.destroy(), box.sessionId], [false, null]);
    const wrong = await new agentbox.Sandbox(url, { apiKey: 'pdk_wrong' }).create().catch((e) => e);
    assert.deepEqual([wrong.name, wrong.code], ['AgentboxError', 'unauthenticated']);
  }],
];
