// The code interpreter.
'use strict';

module.exports = [
  {
    name: 'code with a result',
    async run({ main }, assert) {
      const r = await main.runCode('x = 6\nx * 7');
      assert.equal(r.text, '42');
      assert.equal(r.error, undefined);
      assert(r.results[0].isMainResult);
      assert(r.executionCount >= 1);
    },
  },
  {
    name: 'code as people write it',
    async run({ main }, assert) {
      const indented = await main.runCode(`
        total = 0
        for i in range(3):
            total += i
        total
      `);
      assert.deepEqual([indented.error, indented.text], [undefined, '3']);
      assert.equal((await main.runCode("'a string'")).text, 'a string');
      assert.equal((await main.runCode("'a string'", { language: 'javascript' })).text, 'a string');
      assert.deepEqual((await main.runCode("{'a': [1, None]}")).results[0].json, { a: [1, null] });
      assert.equal((await main.runCode('await Promise.resolve(6 * 7)', { language: 'javascript' })).text, '42');
      assert.equal((await main.runCode('import getpass; getpass.getuser()')).text, 'root');
      const context = await main.createCodeContext({ cwd: '/root' });
      assert.equal((await main.runCode('import os; os.getcwd()', { context })).text, '/root');
      await main.removeCodeContext(context.id);
    },
  },
  {
    name: 'code remembers',
    async run({ main }, assert) {
      await main.runCode('kept = "yes"');
      assert.equal((await main.runCode('kept')).text, 'yes');
    },
  },
  {
    name: 'code that prints',
    async run({ main }, assert) {
      const out = [], err = [];
      const r = await main.runCode('import sys\nprint("one")\nprint("two", file=sys.stderr)\nprint("three")', {
        onStdout: (m) => out.push(m.line), onStderr: (m) => err.push(m.line),
      });
      assert.equal(r.logs.stdout.join(''), 'one\nthree\n');
      assert.equal(r.logs.stderr.join(''), 'two\n');
      assert.equal(out.join(''), 'one\nthree\n');
      assert.equal(err.join(''), 'two\n');
    },
  },
  {
    name: 'code that fails',
    async run({ main }, assert) {
      let told;
      const r = await main.runCode('def f():\n    return 1 / 0\nf()', { onError: (e) => { told = e; } });
      assert.equal(r.error.name, 'ZeroDivisionError');
      assert.equal(r.error.value, 'division by zero');
      assert.match(r.error.traceback, /ZeroDivisionError/);
      assert.equal(told.name, 'ZeroDivisionError');
      assert.equal(r.text, undefined);
    },
  },
  {
    name: 'code with environment',
    async run({ main }, assert) {
      assert.equal((await main.runCode('import os; os.environ.get("OF_CALL")', { envs: { OF_CALL: 'v' } })).text, 'v');
      assert.equal((await main.runCode('import os; os.environ.get("OF_CALL")')).text, undefined, 'it is the call\'s own');
      assert.equal((await main.runCode('os.environ["OF_BOX"]')).text, 'yes');
    },
  },
  {
    name: 'contexts',
    async run({ main, rejects }, assert) {
      const one = await main.createCodeContext({ cwd: '/tmp' });
      const two = await main.createCodeContext();
      assert.equal(one.cwd, '/tmp');
      assert.equal((await main.runCode('import os; v = 1; os.getcwd()', { context: one })).text, '/tmp');
      await main.runCode('v = 2', { context: two });
      assert.equal((await main.runCode('v', { context: one })).text, '1');
      const ids = (await main.listCodeContexts()).map((c) => c.id);
      assert(ids.includes(one.id) && ids.includes(two.id));
      await main.restartCodeContext(one);
      assert.equal((await main.runCode('v', { context: one })).error.name, 'NameError');
      await main.removeCodeContext(two);
      assert(!(await main.listCodeContexts()).some((c) => c.id === two.id));
      await rejects(main.runCode('1', { context: two }), 'SandboxError', 'NotFoundError');
    },
  },
  {
    name: 'other languages',
    async run({ main }, assert) {
      const js = await main.runCode('const a = 6; console.log("hi"); a * 7', { language: 'js' });
      assert.equal(js.text, '42');
      assert.equal(js.logs.stdout.join(''), 'hi\n');
      const bash = await main.runCode('echo $((6*7))', { language: 'bash' });
      assert.equal(bash.logs.stdout.join(''), '42\n');
    },
  },
  {
    name: 'results of many kinds',
    async run({ main }, assert) {
      const r = await main.runCode('class C:\n    def _repr_html_(self): return "<b>x</b>"\n    def _repr_markdown_(self): return "**x**"\n    def __repr__(self): return "C"\nC()');
      const [result] = r.results;
      assert.deepEqual([result.html, result.markdown, result.text], ['<b>x</b>', '**x**', 'C']);
      assert(result.formats().includes('html'));
    },
  },
  {
    name: 'table',
    async run({ main }, assert) {
      const r = await main.runCode('import pandas as pd\npd.DataFrame({"a": [1, 2], "b": ["x", "y"]})');
      assert.equal(r.error, undefined, JSON.stringify(r.error));
      assert.deepEqual(r.results[0].data, { a: [1, 2], b: ['x', 'y'] });
    },
  },
  {
    name: 'charts',
    async run({ main }, assert) {
      const r = await main.runCode(`
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [4, 5, 6], label="rise")
plt.title("Title"); plt.xlabel("X"); plt.ylabel("Y")
plt.show()
plt.bar(["p", "q"], [3, 4])
plt.show()
plt.pie([1, 3], labels=["a", "b"])
plt.show()`);
      assert.equal(r.error, undefined, JSON.stringify(r.error));
      assert.equal(r.results.length, 3);
      const [line, bar, pie] = r.results;
      for (const x of r.results) assert.equal(Buffer.from(x.png, 'base64').subarray(1, 4).toString(), 'PNG');
      assert.deepEqual([line.chart.type, line.chart.title, line.chart.x_label, line.chart.y_label], ['line', 'Title', 'X', 'Y']);
      assert.deepEqual(line.chart.elements[0].points, [[1, 4], [2, 5], [3, 6]]);
      assert.equal(line.chart.elements[0].label, 'rise');
      assert.equal(bar.chart.type, 'bar');
      assert.deepEqual(bar.chart.elements.map((e) => [e.label, e.value]), [['p', 3], ['q', 4]]);
      assert.equal(pie.chart.type, 'pie');
      assert.deepEqual(pie.chart.elements.map((e) => [e.label, e.angle]), [['a', 90], ['b', 270]]);
    },
  },
  {
    name: 'code that takes too long',
    async run({ main, rejects }, assert) {
      const c = await main.createCodeContext();
      await rejects(main.runCode('import time\ntime.sleep(60)', { context: c, timeoutMs: 500 }), 'TimeoutError');
      await main.removeCodeContext(c);
      assert.equal((await main.runCode('1 + 1')).text, '2');
    },
  },
];
