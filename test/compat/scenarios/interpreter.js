// The code interpreter, with the package's own methods.
'use strict';

// Whether the box's Python has a module; the default image is the machine itself.
async function has(box, module) {
  const run = await box.runCode(`import importlib.util\nimportlib.util.find_spec(${JSON.stringify(module)}) is not None`);
  return run.text === 'True';
}

const FIGURES = {
  line: ["plt.plot([1, 2], [3, 4], label='up')\nplt.xlabel('Time (s)')\nplt.title('T')", (c, assert) => {
    assert.deepStrictEqual([c.title, c.x_label, c.x_unit, c.y_unit], ['T', 'Time (s)', 's', null]);
    assert.deepStrictEqual(c.elements, [{ label: 'up', points: [[1, 3], [2, 4]] }]);
    assert.strictEqual(c.x_scale, 'linear');
    assert(Array.isArray(c.y_ticks) && c.y_ticks.length === c.y_tick_labels.length);
  }],
  box_and_whisker: ['plt.boxplot([[1, 2, 3, 4, 10]])', (c, assert) => {
    const [{ min, first_quartile: q1, median, third_quartile: q3, max, outliers }] = c.elements;
    assert.deepStrictEqual([min, q1, median, q3, max, outliers], [1, 2, 3, 4, 4, [10]]);
  }],
  superchart: ["f, (a, b) = plt.subplots(1, 2)\na.plot([1])\nb.bar([1], [2])", (c, assert) =>
    assert.deepStrictEqual(c.elements.map((e) => e.type), ['line', 'bar'])],
};

module.exports = [
  { name: 'runCode remembers', async run({ main }, assert) {
    await main.runCode('x = 41');
    const run = await main.runCode('x + 1');
    assert.strictEqual(run.text, '42');
    assert.strictEqual(run.results.length, 1);
    assert.strictEqual(run.results[0].isMainResult, true);
    assert.strictEqual(run.error, undefined);
    assert(run.executionCount >= 2);
  } },
  { name: 'logs and callbacks', async run({ main }, assert) {
    const seen = [];
    const run = await main.runCode("import sys\nprint('out ü')\nprint('err', file=sys.stderr)\ndisplay('shown')\n5", {
      onStdout: (m) => seen.push(['out', m.line, m.error]),
      onStderr: (m) => seen.push(['err', m.line, m.error]),
      onResult: (r) => seen.push(['result', r.text, r.isMainResult]),
    });
    assert.strictEqual(run.logs.stdout.join(''), 'out ü\n');
    assert.strictEqual(run.logs.stderr.join(''), 'err\n');
    assert.deepStrictEqual(seen, [['out', 'out ü\n', false], ['err', 'err\n', true], ['result', "'shown'", false], ['result', '5', true]]);
  } },
  { name: 'output comes while the code runs', async run({ main }, assert) {
    const waits = "import os, time\nprint('first')\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\nprint('second')";
    let second;
    const run = await main.runCode(waits, {
      onStdout: (m) => { if (m.line.includes('first')) second = main.runCode('touch /tmp/go', { language: 'bash' }); },
    });
    await second;
    assert.strictEqual(run.logs.stdout.join(''), 'first\nsecond\n');
  } },
  { name: 'errors', async run({ main }, assert) {
    let told;
    const run = await main.runCode('def f():\n    raise ValueError("bad")\nf()', { onError: (e) => { told = e; } });
    assert.strictEqual(run.error.name, 'ValueError');
    assert.strictEqual(run.error.value, 'bad');
    assert(run.error.traceback.includes('raise ValueError("bad")'));
    assert.strictEqual(told.name, 'ValueError');
    assert.strictEqual((await main.runCode('1')).text, '1');
  } },
  { name: 'rich results', async run({ main }, assert) {
    const { results: [result] } = await main.runCode(`
class Rich:
    def __repr__(self): return 'plain'
    def _repr_html_(self): return '<b>x</b>'
    def _repr_markdown_(self): return '*x*'
    def _repr_svg_(self): return '<svg/>'
    def _repr_latex_(self): return '$x$'
    def _repr_png_(self): return b'png'
    def _repr_json_(self): return {'a': [1, None]}
Rich()`);
    assert.deepStrictEqual(result.formats().sort(), ['html', 'json', 'latex', 'markdown', 'png', 'svg']);
    assert.strictEqual(result.text, 'plain');
    assert.strictEqual(result.html, '<b>x</b>');
    assert.strictEqual(Buffer.from(result.png, 'base64').toString(), 'png');
    assert.deepStrictEqual(result.json, { a: [1, null] });
    assert.deepStrictEqual(result.extra, {});
  } },
  { name: 'data frames', async run({ main }, assert) {
    if (!await has(main, 'pandas')) return;
    const { results: [result] } = await main.runCode(
      "import pandas as pd\npd.DataFrame({'n': [1, 2], 's': ['a', 'b'], 't': pd.to_datetime(['2024-01-02', '2024-01-03'])})");
    assert.deepStrictEqual(result.data, { n: [1, 2], s: ['a', 'b'], t: ['2024-01-02T00:00:00', '2024-01-03T00:00:00'] });
    assert(result.html.includes('<table') && result.formats().includes('data'));
  } },
  { name: 'charts', async run({ main }, assert) {
    if (!await has(main, 'matplotlib')) return;
    await main.runCode('import matplotlib.pyplot as plt');
    for (const [type, [code, check]] of Object.entries(FIGURES)) {
      const { results, error } = await main.runCode(`${code}\nplt.show()`);
      assert.strictEqual(error, undefined);
      assert.strictEqual(results.length, 1);
      assert.strictEqual(Buffer.from(results[0].png, 'base64').subarray(1, 4).toString(), 'PNG');
      assert.strictEqual(results[0].chart.type, type);
      check(results[0].chart, assert);
    }
  } },
  { name: 'contexts', async run({ main }, assert) {
    const a = await main.createCodeContext({ cwd: '/tmp' });
    const b = await main.createCodeContext({ language: 'javascript' });
    assert.deepStrictEqual([a.language, a.cwd, b.language, b.cwd], ['python', '/tmp', 'javascript', '/home/user']);
    await main.runCode('only_here = 1', { context: a });
    assert.strictEqual((await main.runCode('import os; (only_here, os.getcwd())', { context: a })).text, "(1, '/tmp')");
    assert.strictEqual((await main.runCode('only_here')).error.name, 'NameError');
    assert.strictEqual((await main.runCode('[1, 2].map((x) => x * 2)', { context: b })).text, '[ 2, 4 ]');
    const listed = await main.listCodeContexts();
    for (const one of [a, b]) assert.deepStrictEqual(listed.find((c) => c.id === one.id), one);
    for (const language of ['python', 'javascript']) assert(listed.some((c) => c.language === language && ![a.id, b.id].includes(c.id)));
    await main.restartCodeContext(a);
    assert.strictEqual((await main.runCode('only_here', { context: a })).error.name, 'NameError');
    await main.removeCodeContext(a.id);
    await main.removeCodeContext(b);
    assert(!(await main.listCodeContexts()).some((c) => [a.id, b.id].includes(c.id)));
  } },
  { name: 'a context that is not there', async run({ main, rejects }) {
    await rejects(main.runCode('1', { context: { id: 'nosuch' } }), 'NotFoundError');
    await rejects(main.removeCodeContext('nosuch'), 'NotFoundError');
    await rejects(main.restartCodeContext('nosuch'), 'NotFoundError');
  } },
  { name: 'languages', async run({ main, rejects }, assert) {
    const js = await main.runCode("console.log('js'); await Promise.resolve(6 * 7)", { language: 'javascript' });
    assert.deepStrictEqual([js.text, js.logs.stdout.join('')], ['42', 'js\n']);
    const bash = await main.runCode('x=5; echo $x; echo e >&2', { language: 'bash' });
    assert.deepStrictEqual([bash.logs.stdout.join(''), bash.logs.stderr.join('')], ['5\n', 'e\n']);
    assert.strictEqual((await main.runCode('echo $x', { language: 'bash' })).logs.stdout.join(''), '5\n');
    await rejects(main.runCode('1', { language: 'cobol' }), 'SandboxError');
  } },
  { name: 'variables', async run({ main }, assert) {
    const code = "import os; (os.environ.get('OF_BOX'), os.environ.get('OF_CODE'), os.environ['E2B_SANDBOX'])";
    assert.strictEqual((await main.runCode(code, { envs: { OF_CODE: "it's" } })).text, "('yes', \"it's\", 'true')");
    assert.strictEqual((await main.runCode(code)).text, "('yes', None, 'true')");
    const bash = await main.runCode('echo "$OF_CODE"', { language: 'bash', envs: { OF_CODE: "it's $x" } });
    assert.strictEqual(bash.logs.stdout.join(''), "it's $x\n");
  } },
  { name: 'a timeout interrupts the code and leaves the context', async run({ main, rejects }, assert) {
    await main.runCode('kept = 7');
    await rejects(main.runCode('while True: pass', { timeoutMs: 300 }), 'TimeoutError');
    assert.strictEqual((await main.runCode('kept')).text, '7');
  } },
  { name: 'much output', async run({ main }, assert) {
    const run = await main.runCode("for i in range(50): print('x' * 99999)");
    assert.strictEqual(run.logs.stdout.join('').length, 50 * 100000);
  } },
  { name: 'executions at once wait for each other', async run({ main }, assert) {
    await main.runCode('order = []');
    await Promise.all([0, 1, 2, 3].map((i) => main.runCode(`order.append(${i})`)));
    assert.strictEqual((await main.runCode('sorted(order)')).text, '[0, 1, 2, 3]');
  } },
  { name: 'a box whose ports are private', async run({ box, sdk }, assert) {
    const b = await box('code-interpreter-v1', { network: { allowPublicTraffic: false } });
    assert(b.trafficAccessToken);
    assert.strictEqual((await b.runCode('6 * 7')).text, '42');
    assert((await b.listCodeContexts()).length >= 2);
    await b.kill();
    assert(sdk.Sandbox.defaultTemplate === 'code-interpreter-v1');
  } },
  { name: 'a box that was killed', async run({ box, rejects }) {
    const b = await box();
    let begun;
    const begins = new Promise((resolve) => { begun = resolve; });
    const fails = rejects(b.runCode("print('go')\nimport time; time.sleep(60)", { onStdout: begun }), 'TimeoutError');
    await begins;
    await b.kill();
    await fails;
    await rejects(b.runCode('1'), 'TimeoutError');
  } },
];
