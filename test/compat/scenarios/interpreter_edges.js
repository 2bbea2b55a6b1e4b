// The code interpreter: streams, order, limits, ends, and the rarer results.
'use strict';

// Whether the box's Python has a module; the default image is the machine itself.
async function has(box, module) {
  const run = await box.runCode(`import importlib.util\nimportlib.util.find_spec(${JSON.stringify(module)}) is not None`);
  return run.text === 'True';
}

const FIGURES = {
  box_and_whisker: ['plt.boxplot([[1, 2, 3, 4, 10]])', (c, assert) => {
    const [{ min, first_quartile: q1, median, third_quartile: q3, max, outliers }] = c.elements;
    assert.deepStrictEqual([min, q1, median, q3, max, outliers], [1, 2, 3, 4, 4, [10]]);
  }],
  superchart: ["f, (a, b) = plt.subplots(1, 2)\na.plot([1])\nb.bar([1], [2])", (c, assert) =>
    assert.deepStrictEqual(c.elements.map((e) => e.type), ['line', 'bar'])],
};

// What sets a value, what shows it, its text; and code with the text and variables of a call.
const LANGUAGES = {
  js: ['const x = 41', 'x + 1', '42', [['process.env.FOO', 'bar', { FOO: 'bar' }], ['process.cwd()', '/home/user']]],
  ts: ['const y: number = 41', 'y + 1', '42', [['process.env.FOO', 'bar', { FOO: 'bar' }], ['process.cwd()', '/home/user']]],
  r: ['x <- 41', 'x + 1', '[1] 42', [['Sys.getenv("FOO")', '[1] "bar"', { FOO: 'bar' }], ['getwd()', '[1] "/home/user"']]],
  java: ['int x = 41;', 'x + 1', '42', [['System.getProperty("FOO")', 'bar', { FOO: 'bar' }],
    ['System.getProperty("user.dir")', '/home/user'], ['System.getProperty("OF_BOX")', 'yes']]],
};

module.exports = [
  { name: 'logs and callbacks', async run({ main }, assert) {
    const seen = [];
    const run = await main.runCode("import sys\nprint('out ü')\nprint('err', file=sys.stderr)\ndisplay('shown')\n5", {
      onStdout: (m) => seen.push(['out', m.line, m.error]),
      onStderr: (m) => seen.push(['err', m.line, m.error]),
      onResult: (r) => seen.push(['result', r.text, r.isMainResult]),
    });
    assert.strictEqual(run.logs.stdout.join(''), 'out ü\n');
    assert.strictEqual(run.logs.stderr.join(''), 'err\n');
    assert.deepStrictEqual(seen, [['out', 'out ü\n', false], ['err', 'err\n', true], ['result', 'shown', false], ['result', '5', true]]);
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
  { name: 'results in every format', async run({ main }, assert) {
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
  { name: 'a table with times', async run({ main }, assert) {
    if (!await has(main, 'pandas')) return;
    const { results: [result] } = await main.runCode(
      "import pandas as pd\npd.DataFrame({'n': [1, 2], 's': ['a', 'b'], 't': pd.to_datetime(['2024-01-02', '2024-01-03'])})");
    assert.deepStrictEqual(result.data, { n: [1, 2], s: ['a', 'b'], t: ['2024-01-02T00:00:00', '2024-01-03T00:00:00'] });
    assert(result.html.includes('<table') && result.formats().includes('data'));
  } },
  { name: 'charts of boxes, and of several axes', async run({ main }, assert) {
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
  { name: 'contexts that are always there', async run({ main }, assert) {
    const made = await main.createCodeContext({ language: 'javascript' });
    assert.deepStrictEqual([made.language, made.cwd], ['javascript', '/home/user']);
    const listed = await main.listCodeContexts();
    assert.deepStrictEqual(listed.find((c) => c.id === made.id), made);
    for (const language of ['python', 'javascript']) {
      const standing = listed.find((c) => c.language === language && c.id === language);
      await main.runCode(language === 'python' ? 'mine = 1' : 'var mine = 1', { language });
      assert.strictEqual((await main.runCode('mine', { context: standing })).text, '1');
    }
    await main.removeCodeContext(made.id);
  } },
  { name: 'a context that is not there', async run({ main, rejects }) {
    await rejects(main.runCode('1', { context: { id: 'nosuch' } }), 'NotFoundError');
    await rejects(main.removeCodeContext('nosuch'), 'NotFoundError');
    await rejects(main.restartCodeContext('nosuch'), 'NotFoundError');
  } },
  { name: 'a language that is not there', async run({ main, rejects }) {
    await rejects(main.runCode('1', { language: 'cobol' }), 'SandboxError');
  } },
  ...Object.entries(LANGUAGES).map(([language, [set, get, text, more]]) => ({ name: `language ${language}`, latestMs: 60000, async run({ main }, assert) {
    assert.strictEqual((await main.runCode(set, { language })).error, undefined);
    const { results, error } = await main.runCode(get, { language });
    assert.strictEqual(error, undefined);
    assert.strictEqual(results[0].text, text);
    for (const [code, wanted, envs] of more)
      assert.strictEqual((await main.runCode(code, { language, envs })).results[0].text, wanted);
  } })),
  { name: 'plots of R', async run({ main }, assert) {
    const { results: [plot] } = await main.runCode('plot(1:3)', { language: 'r' });
    assert.strictEqual(Buffer.from(plot.png, 'base64').subarray(1, 4).toString(), 'PNG');
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
  { name: 'a box that was killed', since: '2.5.0', async run({ box, rejects }) {
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
