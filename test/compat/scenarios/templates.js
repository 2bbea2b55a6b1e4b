// Templates: built from steps, named, tagged, and boxes of them.
'use strict';
const fs = require('fs');
const os = require('os');
const path = require('path');

let serial = 0;
const unique = (version) => `t-${version.replace(/[^a-z0-9]/g, '-')}-${process.pid}-${++serial}`;

// The clients resolve what is copied against the directory of their caller, or this one.
function context(files) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'compat-'));
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), text);
  }
  return root;
}

// The first generation calls the name an alias.
const build = (sdk, template, name, options) => sdk.Template.build(template, { alias: name, ...options });
const remove = async (sdk, id) => {
  const res = await fetch(`${process.env.E2B_API_URL}/templates/${id}`, {
    method: 'DELETE', headers: { 'X-API-KEY': process.env.E2B_API_KEY },
  });
  return res.status;
};

module.exports = [
  {
    name: 'template of all kinds of steps',
    async run({ sdk, box, version }, assert) {
      const root = context({ 'one.txt': 'one\n', 'tree/a.txt': 'a\n', 'tree/sub/b.txt': 'b\n' });
      const name = unique(version), lines = [];
      const template = sdk.Template({ fileContextPath: root })
        .fromBaseImage()
        .runCmd(`echo ${name}`) // so that no other build of this run has done the same before
        .setEnvs({ FIRST: 'one two' })
        .setEnvs({ SECOND: '$FIRST three' })
        .runCmd('echo "said $SECOND"; echo wrong >&2; id -un > /tmp/who; pwd > /tmp/where')
        .runCmd('id -un > /root/who', { user: 'root' })
        .setWorkdir('/opt/app')
        .copy('one.txt', 'renamed.txt')
        .copy('tree', '/opt/tree/', { mode: 0o755 })
        .setUser('builder')
        .runCmd('pwd; id -un');
      const info = await build(sdk, template, name, { onBuildLogs: (l) => lines.push(l) });
      assert(info.templateId && info.buildId);
      const said = lines.map((l) => l.message);
      for (const want of ['said one two three', 'wrong', '/opt/app', 'builder']) assert(said.includes(want), `${want}: ${said.join('|')}`);
      assert(lines.every((l) => l.timestamp instanceof Date && ['debug', 'info', 'warn', 'error'].includes(l.level)));

      const b = await box(name, { envs: { FIRST: 'of the box' } });
      const r = await b.commands.run('echo "$FIRST/$SECOND"; pwd; id -un; cat /tmp/who /tmp/where renamed.txt /opt/tree/a.txt /opt/tree/sub/b.txt; stat -c %a /opt/tree/a.txt');
      assert.deepEqual(r.stdout.split('\n'), ['of the box/one two three', '/opt/app', 'builder', 'user', '/home/user', 'one', 'a', 'b', '755', '']);
      assert.equal((await b.commands.run('cat /root/who', { user: 'root' })).stdout, 'root\n');
      const shown = await b.getInfo();
      assert.equal(shown.templateId, info.templateId);
      assert.equal(shown.name, name);
      await b.kill();
      assert.equal(await remove(sdk, info.templateId), 204);
      assert.equal(await remove(sdk, info.templateId), 404);
    },
  },
  {
    name: 'template that fails',
    async run({ sdk, rejects, version }, assert) {
      const name = unique(version);
      const info = await sdk.Template.buildInBackground(sdk.Template().fromBaseImage().runCmd('true').runCmd('echo here; exit 3'), { alias: name });
      let status;
      do {
        status = await sdk.Template.getBuildStatus(info, { logsOffset: 0 });
      } while (status.status === 'building' || status.status === 'waiting');
      assert.equal(status.status, 'error');
      assert.match(status.reason.message ?? status.reason, /exit status 3/);
      assert.equal(status.reason.step, '2');
      const rest = await sdk.Template.getBuildStatus(info, { logsOffset: status.logEntries.length });
      assert.deepEqual(rest.logEntries, []);
      await rejects(build(sdk, sdk.Template().fromBaseImage().runCmd('exit 4'), name), 'BuildError');
      await rejects(build(sdk, sdk.Template().fromImage('nobody/has-this:1'), name), 'BuildError');
      await rejects(sdk.Sandbox.create(name), 'NotFoundError', 'SandboxNotFoundError', 'SandboxError');
      assert.equal(await remove(sdk, info.templateId), 204);
    },
  },
  {
    name: 'template with a start command',
    async run({ sdk, box, version }, assert) {
      const name = unique(version);
      const info = await build(sdk, sdk.Template().fromBaseImage().setEnvs({ SAYS: 'hello' })
        .setStartCmd('sleep 0.3; echo "$SAYS" > /tmp/started; exec sleep 1000', 'test -e /tmp/started'), name);
      const b = await box(name);
      const r = await b.commands.run('cat /tmp/started; pgrep -fc "sleep 1000"');
      assert.match(r.stdout, /^hello\n[1-9]/);
      await b.kill();
      assert.equal(await remove(sdk, info.templateId), 204);
    },
  },
  {
    name: 'template whose steps were run before',
    async run({ sdk, box, version }, assert) {
      const name = unique(version);
      const template = () => sdk.Template().fromBaseImage().setEnvs({ OF: name }).runCmd('cat /proc/sys/kernel/random/uuid > /tmp/drawn');
      const drawn = async () => {
        const b = await box(name);
        const { stdout } = await b.commands.run('cat /tmp/drawn');
        await b.kill();
        return stdout;
      };
      const info = await build(sdk, template(), name);
      const first = await drawn(), lines = [];
      await build(sdk, template(), name, { onBuildLogs: (l) => lines.push(l.message) });
      assert.equal(await drawn(), first);
      assert.equal(lines.filter((l) => l.startsWith('CACHED ')).length, 2, lines.join('|'));
      await build(sdk, template(), name, { skipCache: true });
      assert.notEqual(await drawn(), first);
      assert.equal(await remove(sdk, info.templateId), 204);
    },
  },
  {
    name: 'template whose last step failed',
    async run({ sdk, version, rejects }, assert) {
      const name = unique(version), lines = [];
      const begun = () => sdk.Template().fromBaseImage().setEnvs({ OF: name }).runCmd('cat /proc/sys/kernel/random/uuid > /tmp/drawn; cat /tmp/drawn');
      const said = () => lines.filter((l) => /^[0-9a-f-]{36}$/.test(l));
      const options = { onBuildLogs: (l) => lines.push(l.message) };
      await rejects(build(sdk, begun().runCmd('exit 3'), name, options), 'BuildError');
      const first = said();
      assert.equal(first.length, 1, lines.join('|'));
      lines.length = 0;
      const info = await build(sdk, begun().runCmd('cat /tmp/drawn'), name, options);
      assert.equal(lines.filter((l) => l.startsWith('CACHED ')).length, 2, lines.join('|'));
      assert.deepEqual(said(), first, 'what had been run before the failure was not run again');
      assert.equal(await remove(sdk, info.templateId), 204);
    },
  },
  {
    name: 'template of a template',
    async run({ sdk, box, version }, assert) {
      const first = unique(version), second = unique(version);
      const a = await build(sdk, sdk.Template().fromBaseImage().setEnvs({ KEPT: 'yes' }).runCmd('echo 1 > /tmp/n'), first);
      const b = await build(sdk, sdk.Template().fromTemplate(first).runCmd('echo 2$KEPT >> /tmp/n'), second);
      assert.equal(await remove(sdk, a.templateId), 204);
      const one = await box(second);
      assert.equal((await one.commands.run('cat /tmp/n; echo $KEPT')).stdout, '1\n2yes\nyes\n');
      await one.kill();
      assert.equal(await remove(sdk, b.templateId), 204);
    },
  },
  {
    name: 'template by its alias',
    since: '2.10.0',
    async run({ sdk, version }, assert) {
      const name = unique(version), exists = (n) => (sdk.Template.exists ?? sdk.Template.aliasExists).call(sdk.Template, n);
      assert.equal(await exists(name), false);
      const info = await build(sdk, sdk.Template().fromBaseImage(), name);
      assert.equal(await exists(name), true);
      assert.equal(await remove(sdk, info.templateId), 204);
      assert.equal(await exists(name), false);
    },
  },
  {
    name: 'template with tags',
    since: '2.20.0',
    async run({ sdk, box, rejects, version }, assert) {
      const name = unique(version);
      const of = (n) => sdk.Template().fromBaseImage().runCmd(`echo ${n} > /tmp/n`);
      const one = await sdk.Template.build(of(1), `${name}:v1`, { tags: ['stable'] });
      const two = await sdk.Template.build(of(2), name);
      assert.equal(one.templateId, two.templateId);
      const says = async (ref) => {
        const b = await box(ref);
        const { stdout } = await b.commands.run('cat /tmp/n');
        await b.kill();
        return stdout.trim();
      };
      assert.equal(await says(`${name}:v1`), '1');
      assert.equal(await says(name), '2');
      const tagged = await sdk.Template.assignTags(name, ['stable', 'v2']);
      assert.equal(tagged.buildId, two.buildId);
      assert.equal(await says(`${name}:stable`), '2');
      const tags = Object.fromEntries((await sdk.Template.getTags(one.templateId)).map((t) => [t.tag, t.buildId]));
      assert.deepEqual(tags, { v1: one.buildId, default: two.buildId, stable: two.buildId, v2: two.buildId });
      await sdk.Template.removeTags(name, 'v1');
      await rejects(sdk.Sandbox.create(`${name}:v1`), 'NotFoundError', 'SandboxNotFoundError', 'SandboxError');
      assert.equal(await remove(sdk, one.templateId), 204);
    },
  },
];
