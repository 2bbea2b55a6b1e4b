// The JavaScript and TypeScript of a code context: one global scope that lives as long as its
// process. paddock-api sends this text and then requests over descriptor 250: a
// line "ID BYTES ENV_BYTES", a JSON object of variables, then the code. Events go to descriptor 251, a JSON object on
// each line: {id, type: "begin" | "result" | "error" | "end", …}; from "begin" on
// SIGINT interrupts the code. Descriptors 1 and 2 are the code's own.
//
// Code is evaluated by V8's own REPL mode, through the inspector's protocol
// within this process (no port is opened): const and let live on and may be
// declared again, await works at the top. `boot` is given by the line that runs
// this: { load } is that line's import(), { language } says which of the two.
//
// TypeScript is compiled by what the image has, without checking types. Whether there is something is
// told before the first request: {id: 0, type: "ready" | "unsupported"}.
'use strict';
process.title = 'node';  // `ps` shows this instead of the line that started us
const fs = require('fs');
const inspector = require('inspector');
const net = require('net');
const path = require('path');
const stream = require('stream');
const util = require('util');
const vm = require('vm');
const { createRequire } = require('module');

const REQUESTS = 250, EVENTS = 251;
const TEXT_MAX = 1 << 20;     // of a result's text
const FORMAT_MAX = 6 << 20;   // of each of its other formats
const EVENT_MAX = 12 << 20;   // of all of them
const TRACEBACK_MAX = 1 << 16;
const DEPTH_MAX = 40;
const FORMATS = {
  'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown', 'text/latex': 'latex',
  'image/svg+xml': 'svg', 'image/png': 'png', 'image/jpeg': 'jpeg', 'application/pdf': 'pdf',
  'application/json': 'json', 'application/javascript': 'javascript',
};

let current = 0;  // the request that events belong to
let count = 0;

// ---- events ---------------------------------------------------------------

// What every JSON reader takes: no lone surrogates, no NUL.
function text(value) {
  return String(value).replace(/[\uD800-\uDBFF][\uDC00-\uDFFF]|[\uD800-\uDFFF\0]/g,
    (c) => (c.length === 2 ? c : '\uFFFD'));
}

function clean(value, depth = 0) {
  if (value === null || value === undefined || typeof value === 'boolean') return value ?? null;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value === 'object' && typeof value.toJSON === 'function') return clean(value.toJSON(), depth + 1);
  if (typeof value !== 'object') return text(value);
  if (depth >= DEPTH_MAX) return '…';
  if (Array.isArray(value)) return value.map((v) => clean(v, depth + 1));
  const copy = Object.create(null);
  for (const [k, v] of Object.entries(value)) copy[text(k)] = clean(v, depth + 1);
  return copy;
}

const nothing = new Int32Array(new SharedArrayBuffer(4));

function writeAll(fd, bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(fd, bytes, at);
    } catch (e) {
      if (e.code !== 'EAGAIN' && e.code !== 'EINTR') throw e;
      Atomics.wait(nothing, 0, 0, 2);  // somebody who shares the descriptor made it non-blocking
    }
  }
}

let within = false;  // an interrupt may end us in the middle of a line, which then ends where the next begins

function emit(type, fields) {
  const line = Buffer.from(`${within ? '\n' : ''}${JSON.stringify({ id: current, type, ...fields })}\n`);
  within = true;
  writeAll(EVENTS, line);
  within = false;
}

// process.stdout and stderr. Node's own have a state, in which an interrupt at the wrong moment leaves
// them waiting for the end of a write for ever; these have none.
class Output extends stream.Writable {
  constructor(fd) {
    super({ decodeStrings: false });
    this.fd = fd;
  }
  write(chunk, encoding, done) {
    if (typeof encoding === 'function') [encoding, done] = [undefined, encoding];
    if (typeof chunk !== 'string' && !ArrayBuffer.isView(chunk))
      throw new TypeError('The "chunk" argument must be of type string or an instance of Buffer or TypedArray');
    let error = null;
    try {
      writeAll(this.fd, typeof chunk === 'string' ? Buffer.from(chunk, encoding)
        : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    } catch (e) {
      error = e;  // the code has closed it
    }
    if (done) process.nextTick(done, error);
    return true;
  }
  end(chunk, encoding, done) {  // as in a script, it stays open
    const last = [chunk, encoding, done].find((a) => typeof a === 'function');
    if (chunk !== undefined && chunk !== null && chunk !== last)
      this.write(chunk, typeof encoding === 'string' ? encoding : undefined);
    if (last) process.nextTick(last);
    return this;
  }
  _destroy(error, done) {
    done(error);
  }
}

// ---- results --------------------------------------------------------------

function inspect(value) {
  return util.inspect(value, { depth: 4, maxArrayLength: 1000, maxStringLength: TEXT_MAX, breakLength: 100 });
}

// {short name: value} of everything that a value can be shown as; a promise where its own method is one.
function bundle(value) {
  const own = value !== null && value !== undefined && value[Symbol.for('Jupyter.display')];
  const made = typeof own === 'function' ? own.call(value) : {};
  return typeof made?.then === 'function' ? made.then((m) => sort(value, m)) : sort(value, made);
}

function sort(value, mime) {
  const formats = {}, extra = {};
  for (const [type, item] of Object.entries(mime ?? {}))
    (type in FORMATS ? formats : extra)[FORMATS[type] ?? text(type)] = item;
  if (!('text' in formats)) formats.text = inspect(value);
  if (Object.keys(extra).length) formats.extra = extra;
  return formats;
}

function encode(name, item) {
  if (ArrayBuffer.isView(item)) return Buffer.from(item.buffer, item.byteOffset, item.byteLength).toString('base64');
  return name === 'json' || name === 'extra' ? clean(item) : text(item);
}

function send(formats, main) {
  const result = {};
  let left = EVENT_MAX, truncated = false;
  for (let [name, item] of Object.entries(formats)) {
    item = encode(name, item);
    if (name === 'text' && item.length > TEXT_MAX) {
      item = text(item.slice(0, TEXT_MAX));
      truncated = true;
    }
    const size = typeof item === 'string' ? item.length : JSON.stringify(item).length;
    if (size > Math.min(FORMAT_MAX, left)) {
      truncated = true;
      continue;
    }
    left -= size;
    result[name] = item;
  }
  emit('result', { main, truncated, ...result });
}

// display(value), and display.html('<b>…'), display.png(buffer), display.json(value), …
function display(...values) {
  let last;
  for (const value of values) {
    const formats = bundle(value);
    if (typeof formats.then === 'function') last = formats.then((f) => send(f, false));
    else send(formats, false);
  }
  return last;  // to be awaited where a value's own method is asynchronous
}
for (const name of Object.values(FORMATS)) display[name] = (item) => send({ [name]: item }, false);

// ---- imports --------------------------------------------------------------

// The text with strings, templates and comments blanked, so that only code is looked at.
function mask(code) {
  return code.replace(/\/\/[^\n]*|\/\*[^]*?\*\/|'(?:\\[^]|[^'\\\n])*'|"(?:\\[^]|[^"\\\n])*"|`(?:\\[^]|[^`\\])*`/g,
    (m) => (m[0] === '/' ? m.replace(/[^\n]/g, ' ') : m[0] + m.slice(1, -1).replace(/[^\n]/g, '_') + m[0]));
}

function bindings(clause) {
  const parts = [];
  const named = clause.match(/\{([^}]*)\}/);
  const all = clause.match(/\*\s*as\s+([\w$]+)/);
  const first = clause.replace(/\{[^}]*\}|\*\s*as\s+[\w$]+/, '').replace(/,/g, '').trim();
  if (first) parts.push(`default: ${first}`);
  for (const one of (named?.[1] ?? '').split(',').map((s) => s.trim()).filter(Boolean))
    parts.push(one.replace(/^([\w$]+|'_+'|"_+")\s+as\s+/, '$1: '));
  return { all: all?.[1], rest: parts.length ? `{ ${parts.join(', ')} }` : '' };
}

// Statements "import … from 'x'" become await import('x'), and import() becomes the boot line's,
// since V8 has no loader for code that comes by the inspector. Line numbers stay.
function translate(code) {
  if (!/\bimport\b/.test(code)) return code;
  const STATEMENT = /^([ \t]*)import\s+(?:([\w$*{}\s,]+?)\s+from\s+)?(['"])(_*)\3[ \t]*(?:with\s*\{[^}]*\})?;?/gm;
  const CALL = /(^|[^.\w$])import(?=\s*\()/g;
  const hidden = mask(code);
  const edits = [];
  for (const m of hidden.matchAll(STATEMENT)) {
    const end = m.index + m[0].length;
    const name = code.slice(m.index, end).match(/(['"])((?:(?!\1)[^\n])*)\1[ \t]*(?:with\s*\{[^}]*\})?;?$/)?.[2] ?? '';
    const from = `await __import(${JSON.stringify(name)})`;
    const { all, rest } = m[2] ? bindings(m[2]) : {};
    const lines = '\n'.repeat(m[0].split('\n').length - 1);
    const made = all ? `const ${all} = ${from};${rest ? ` const ${rest} = ${all};` : ''}`
      : rest ? `const ${rest} = ${from};` : `${from};`;
    edits.push([m.index, end, `${m[1]}${made}${lines}`]);
  }
  for (const m of hidden.matchAll(CALL))
    edits.push([m.index + m[1].length, m.index + m[0].length, '__import']);
  edits.sort((a, b) => b[0] - a[0]);
  for (const [start, end, by] of edits) code = code.slice(0, start) + by + code.slice(end);
  return code;
}

// { a: 1 } alone is an object and not a block, wherever it can be one.
function asExpression(code) {
  if (!/^\s*\{/.test(code) || /;\s*$/.test(code)) return code;
  try {
    new vm.Script(`(${code}\n)`);
    return `(${code}\n)`;
  } catch {
    return code;
  }
}

// Cells share everything: what they export is there anyway.
function withoutExports(code) {
  if (!/^\s*export\b/m.test(code)) return code;
  const hidden = mask(code);
  const EXPORT = /^([ \t]*)export\s+(?:(?:default\s+)?(?=(?:async|class|const|enum|function|let|var|abstract|declare|interface|type|namespace)\b)|\{[^}]*\}[ \t]*;?)/gm;
  for (const m of [...hidden.matchAll(EXPORT)].reverse())
    code = `${code.slice(0, m.index)}${m[1]}${m[0].replace(/[^\n]/g, '')}${code.slice(m.index + m[0].length)}`;
  return code;
}

// ---- TypeScript -----------------------------------------------------------

const NEEDS = 'typescript needs a compiler beside node: install Debian\'s node-typescript or esbuild, or one of the npm packages ' +
  'typescript (before 7) and esbuild, or Node 22.13 or later';

// A function from TypeScript to JavaScript, or null.
function compiler() {
  const places = [process.cwd(), ...(process.env.NODE_PATH ?? '').split(':').filter(Boolean),
    path.join(process.execPath, '../../lib/node_modules'), '/usr/local/lib/node_modules', '/usr/lib/node_modules',
    '/usr/share/nodejs', '/usr/lib/nodejs'];
  const find = (name) => {
    for (const place of places)
      for (const id of [path.join(place, name), path.join(place, 'node_modules', name)])
        try {
          return require(id);
        } catch {
          // the next place
        }
    return null;
  };
  const ts = find('typescript');
  if (typeof ts?.transpileModule === 'function') return (code) => byTypescript(ts, code);
  const { stripTypeScriptTypes } = require('module');
  if (typeof stripTypeScriptTypes === 'function') return (code) => byNode(stripTypeScriptTypes, code);
  const esbuild = find('esbuild');
  const options = { loader: 'ts', target: 'esnext', tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true, preserveValueImports: true } } };
  if (typeof esbuild?.transformSync === 'function') return (code) => byEsbuild(esbuild, options, code);
  const { spawnSync } = require('child_process');
  if (spawnSync('esbuild', ['--version']).status !== 0) return null;
  return (code) => {
    const done = spawnSync('esbuild', ['--loader=ts', '--target=esnext', '--log-level=error', '--color=false',
      `--tsconfig-raw=${JSON.stringify(options.tsconfigRaw)}`], { input: code, encoding: 'utf8', maxBuffer: 1 << 28 });
    if (done.status !== 0) throw new SyntaxError(done.stderr.trim());
    return done.stdout;
  };
}

function byTypescript(ts, code) {
  const modern = parseInt(ts.version, 10) >= 5;  // the older options are errors there
  const { outputText, diagnostics } = ts.transpileModule(code, {
    reportDiagnostics: true,
    compilerOptions: {
      target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, isolatedModules: true, useDefineForClassFields: true,
      // What a later cell uses is used.
      ...(modern ? { verbatimModuleSyntax: true } : { preserveValueImports: true, importsNotUsedAsValues: 1 }),
    },
  });
  const [first] = (diagnostics ?? []).filter((d) => d.category === ts.DiagnosticCategory.Error && d.code < 2000);
  if (first) {
    const error = new SyntaxError(ts.flattenDiagnosticMessageText(first.messageText, '\n'));
    const { line, character } = first.file ? first.file.getLineAndCharacterOfPosition(first.start) : { line: 0, character: 0 };
    error.place = { lineNumber: line, columnNumber: character };
    throw error;
  }
  return outputText.replace(/^export \{\};?$/gm, '');
}

function byEsbuild(esbuild, options, code) {
  try {
    return esbuild.transformSync(code, { ...options, logLevel: 'silent' }).code;
  } catch (e) {
    const [first] = e.errors ?? [];
    const error = new SyntaxError(first?.text ?? e.message);
    error.place = { lineNumber: (first?.location?.line ?? 1) - 1, columnNumber: first?.location?.column ?? 0 };
    throw error;
  }
}

function byNode(strip, code) {
  const warn = process.emitWarning;
  process.emitWarning = () => {};  // that it is experimental
  try {
    return strip(code, { mode: 'transform', sourceMap: false });
  } catch (e) {
    throw new SyntaxError(e.message);
  } finally {
    process.emitWarning = warn;
  }
}

let compile = (code) => code;

// From a cell to what is evaluated.
function prepared(code) {
  const wrapped = /^\s*\{/.test(code) && !/;\s*$/.test(code);
  if (boot.language !== 'typescript') return translate(withoutExports(asExpression(code)));
  if (wrapped)
    try {
      const made = compile(`(${code}\n)`);
      new vm.Script(made);
      return translate(made);
    } catch {
      // a block
    }
  return translate(compile(withoutExports(code)));
}

// ---- running --------------------------------------------------------------

const session = new inspector.Session();
session.connect();

function post(method, params) {
  return new Promise((resolve, reject) => {
    session.post(method, params, (e, r) => (e ? reject(new Error(e.message)) : resolve(r)));
  });
}

// The value itself of what the inspector describes.
async function valueOf(remote) {
  if ('value' in remote && remote.type !== 'object') return remote.value;
  if (remote.type === 'undefined') return undefined;
  if (remote.subtype === 'null') return null;
  const key = Symbol.for('paddock.value');
  const argument = remote.objectId ? { objectId: remote.objectId } : { unserializableValue: remote.unserializableValue };
  await post('Runtime.callFunctionOn', {
    functionDeclaration: 'function (v) { globalThis[Symbol.for("paddock.value")] = { v }; }',
    executionContextId: 1,
    arguments: [argument],
  });
  const { v } = globalThis[key];
  delete globalThis[key];
  return v;
}

class Interrupted extends Error {
  constructor() {
    super('the code was interrupted');
    this.name = 'Interrupted';
  }
}
class ProcessExit extends Error {
  constructor(code) {
    super(`process.exit(${code ?? ''})`);
    this.name = 'ProcessExit';
  }
}

let interrupt = null;  // ends the wait for code that awaits

// A loop without end never comes back to the event loop: only V8's watchdog, armed by vm, can stop it.
// Outside of vm a SIGINT would be lost, or deadly, while listeners of process are put aside and back;
// so the watchdog is on all the time, as Node's own REPL has it, and what it caught is asked for.
const sigint = {
  binding: null,
  start() {
    try {
      const { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint } = process.binding('contextify');
      if (startSigintWatchdog() && !watchdogHasPendingSigint())
        this.binding = { startSigintWatchdog, stopSigintWatchdog, watchdogHasPendingSigint };
    } catch {
      // another Node: its listeners have to do
    }
    if (!this.binding) process.on('SIGINT', () => interrupt?.());
  },
  take() {
    const caught = this.binding?.watchdogHasPendingSigint() ?? false;
    if (caught) {
      this.binding.stopSigintWatchdog();
      this.binding.startSigintWatchdog();
    }
    return caught;
  },
  // While code awaits.
  watch() {
    if (!this.binding) return () => {};
    const timer = setInterval(() => this.take() && interrupt?.(), 20);
    return () => clearInterval(timer);
  },
};

function evaluate(expression) {
  return new Promise((resolve, reject) => {
    interrupt = () => reject(new Interrupted());
    sigint.take();  // of no execution
    globalThis.__paddock_go = () => {
      emit('begin', {});  // only now: here the watchdog is at work
      session.post('Runtime.evaluate', {
        expression, replMode: true, awaitPromise: true, userGesture: false, objectGroup: 'cell',
      }, (e, r) => (e ? reject(new Error(e.message)) : resolve(r)));
    };
    try {
      vm.runInThisContext('__paddock_go()', { breakOnSigint: true, filename: 'paddock' });
    } catch (e) {
      reject(e.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? new Interrupted() : e);
    } finally {
      delete globalThis.__paddock_go;
    }
  });
}

// The frames of the code, not those of this file and what it stands on.
function stackOf(error, name) {
  if (error.place) return `${error.name}: ${error.message}`;  // ours: the compiler's
  const lines = String(error.stack ?? `${error.name}: ${error.message}`).split('\n');
  const end = lines.findIndex((l) => /^\s+at (?:Session\.post|.*\(?(?:paddock|node:inspector):)/.test(l));
  const cause = error.cause === undefined ? '' : `\n[cause]: ${inspect(error.cause)}`;
  return (end < 0 ? lines : lines.slice(0, end)).join('\n').replaceAll('<anonymous>', name) + cause;
}

// What is no syntax has no frames: the place is in what the inspector says.
function placeOf(error, details, name, code) {
  if (error.name !== 'SyntaxError' || !details || (!error.place && /\n\s+at /.test(stackOf(error, name)))) return '';
  const line = (code.split('\n')[details.lineNumber] ?? '').slice(0, 500);
  return `\n    at ${name}:${details.lineNumber + 1}:${details.columnNumber + 1}\n\n${line}\n` +
    `${' '.repeat(Math.min(details.columnNumber, line.length))}^`;
}

function report(error, name, details, code) {
  const is = util.types.isNativeError(error) || error instanceof Error;
  const traceback = is ? stackOf(error, name) + placeOf(error, details, name, code) : `Uncaught ${inspect(error)}`;
  emit('error', {
    name: text(is ? error.name : 'Error').slice(0, 1000),
    value: text(is ? error.message : inspect(error)).slice(0, TRACEBACK_MAX),
    traceback: text(traceback.slice(0, TRACEBACK_MAX)),
  });
}

// undefined: it is not set. What was there before is returned.
function setVariables(variables) {
  const before = {};
  for (const [name, value] of Object.entries(variables)) {
    before[name] = process.env[name];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  return before;
}

async function execute(code, variables) {
  const name = `cell ${++count}`;
  const before = setVariables(variables);
  let unwatch;
  try {
    const translated = prepared(code);
    const running = evaluate(`${translated}\n//# sourceURL=${name}`);
    unwatch = sigint.watch();
    const { result, exceptionDetails } = await running;
    if (exceptionDetails) {
      report(await valueOf(exceptionDetails.exception ?? { type: 'undefined' }), name, exceptionDetails, translated);
    } else {
      const value = await valueOf(result);
      if (value !== undefined) {
        globalThis._ = value;
        send(await bundle(value), true);
      }
    }
  } catch (e) {
    report(e, name, e.place, code);
  }
  unwatch?.();
  interrupt = null;
  setVariables(before);
  session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
  emit('end', { count });
}

function prepare() {
  const require_ = createRequire(path.join(process.cwd(), 'cell.js'));
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  define('require', require_);
  define('display', display);
  // What is not a package or a built-in is looked for in the working directory.
  define('__import', async (specifier, options) => {
    const s = String(specifier);
    if (/^[a-z]+:/i.test(s)) return boot.load(s, options);
    return boot.load(/^\.{0,2}\//.test(s) ? require('url').pathToFileURL(path.resolve(s)).href
      : require('module').isBuiltin(s) ? s : locate(s, require_), options);
  });
  for (const [name, fd] of [['stdout', 1], ['stderr', 2]])
    Object.defineProperty(process, name, { value: new Output(fd), configurable: true, enumerable: true });
  process.argv.length = 1;
  process.exit = (code) => { throw new ProcessExit(code); };
  sigint.start();
  process.on('uncaughtException', (e) => console.error(e));
  process.on('unhandledRejection', (e) => console.error('Unhandled rejection:', e));
}

// A package by the rules of import; where only require finds one, that.
function locate(name, require_) {
  try {
    return require('url').pathToFileURL(require_.resolve(name)).href;
  } catch {
    return name;
  }
}

function serve() {
  let pending = Buffer.alloc(0), wanted = null, chunks = [], have = 0, busy = false;
  const socket = new net.Socket({ fd: REQUESTS, readable: true, writable: false });
  const step = async () => {
    if (busy) return;
    busy = true;
    for (;;) {
      if (chunks.length && (wanted === null || have >= wanted.bytes)) {
        pending = Buffer.concat([pending, ...chunks]);
        chunks = [];
      }
      if (wanted === null) {
        const end = pending.indexOf(10);
        if (end < 0) break;
        const [id, bytes, env] = pending.toString('latin1', 0, end).split(' ').map(Number);
        wanted = { id, env, bytes: env + bytes };
        pending = pending.subarray(end + 1);
        have = pending.length;
      }
      if (have < wanted.bytes) break;
      const variables = wanted.env ? JSON.parse(pending.toString('utf8', 0, wanted.env)) : {};
      const code = pending.toString('utf8', wanted.env, wanted.bytes);
      pending = pending.subarray(wanted.bytes);
      have = pending.length;
      current = wanted.id;
      wanted = null;
      await execute(code, variables);
    }
    busy = false;
  };
  socket.on('data', (chunk) => {
    chunks.push(chunk);
    have += chunk.length;
    step().catch(() => process.reallyExit(1));  // the code has taken our descriptors
  });
  socket.on('error', () => process.reallyExit(1));
  socket.on('end', () => process.reallyExit(0));
}

prepare();
if (boot.language === 'typescript') {
  compile = compiler();
  emit(compile ? 'ready' : 'unsupported', { value: compile ? '' : NEEDS });
  if (!compile) process.reallyExit(1);
}
serve();
