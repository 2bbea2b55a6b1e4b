// Terminals.
'use strict';

module.exports = [
  {
    name: 'terminal',
    async run({ main, until, rejects }, assert) {
      let text = '';
      const decoder = new TextDecoder(), encode = (s) => new TextEncoder().encode(s);
      const h = await main.pty.create({
        cols: 80, rows: 24, envs: { OF_TERMINAL: 'yes' }, cwd: '/tmp', timeoutMs: 20000,
        onData: (data) => { text += decoder.decode(data, { stream: true }); },
      });
      assert(h.pid > 0);
      await main.pty.sendInput(h.pid, encode('echo "$((6*7)) $OF_TERMINAL $TERM $(tty | cut -c1-8) $PWD"\n'));
      await until('its answer', () => text.includes('42 yes xterm-256color /dev/pts /tmp'));
      await main.pty.sendInput(h.pid, encode('stty size\n'));
      await until('its size', () => text.includes('24 80'));
      await until('its prompt', () => text.endsWith('$ ')); // before it bash sets the size that it has read
      await main.pty.resize(h.pid, { cols: 123, rows: 45 });
      await main.pty.sendInput(h.pid, encode('stty size\n'));
      await until('its new size', () => text.includes('45 123'));
      await main.pty.sendInput(h.pid, encode('exit 5\n'));
      const e = await rejects(h.wait(), 'CommandExitError');
      assert.equal(e.exitCode, 5);
    },
  },
  {
    name: 'terminal that is killed',
    async run({ main, rejects }, assert) {
      const h = await main.pty.create({ cols: 80, rows: 24, onData: () => {} });
      assert.equal(await main.pty.kill(h.pid), true);
      await rejects(h.wait(), 'CommandExitError');
    },
  },
];
