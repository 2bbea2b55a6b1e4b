// Thousands of random questions to eth_answers (test/unit/eth), whose answers must be those of ethers.
// usage: node oracle.mjs ETHERS-DIRECTORY PROGRAM SEED
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';

const [dir, program, seedText] = process.argv.slice(2);
const ethers = createRequire(dir + '/')('ethers').ethers;
const questions = [], expected = [];

// xorshift: a failure can be repeated by its seed.
let state = BigInt(seedText) * 0x9e3779b97f4a7c15n & 0xffffffffffffffffn | 1n;
function next() {
  state ^= state << 13n & 0xffffffffffffffffn;
  state ^= state >> 7n;
  state ^= state << 17n & 0xffffffffffffffffn;
  return state;
}
const below = n => Number(next() % BigInt(n));
const pick = list => list[below(list.length)];
const bytes = n => Uint8Array.from({ length: n }, () => below(256));
const hex = b => ethers.hexlify(b).slice(2) || '-';
const bits = n => { let v = 0n; for (let i = 0; i < 4; i++) v = v << 64n | next(); return v & ((1n << BigInt(n)) - 1n); };
const amount = () => bits(pick([0, 1, 8, 53, 64, 96, 128, 255, 256]));
const address = () => ethers.getAddress(ethers.hexlify(bytes(20)));
const key = () => ethers.hexlify(bytes(32));

function ask(question, answer) {
  questions.push(question);
  expected.push(answer);
}
function attempt(fn) {
  try { return fn(); } catch { return 'error'; }
}

function plain() {
  const b = bytes(below(500));
  ask(`keccak ${hex(b)}`, ethers.keccak256(b).slice(2));
  const a = address();
  ask(`address ${a}`, a);
  ask(`address ${a.toLowerCase()}`, a);
  const letter = [...a].findIndex((c, i) => i > 1 && /[a-f]/i.test(c));
  const flipped = a.slice(0, letter) + (a[letter] < 'a' ? a[letter].toLowerCase() : a[letter].toUpperCase()) + a.slice(letter + 1);
  ask(`address ${flipped}`, attempt(() => ethers.getAddress(flipped)));
  const x = amount(), y = amount(), op = pick(['+', '-', '*']);
  const r = op === '+' ? x + y : op === '-' ? x - y : x * y;
  ask(`arithmetic ${op} ${x} ${y}`, r < 0n || r >> 256n ? 'error' : String(r));
  const decimals = pick([0, 6, 8, 18]), units = bits(pick([1, 64, 128, 190]));
  const text = ethers.formatUnits(units, decimals).replace(/\.0$/, '');
  ask(`units ${text} ${decimals}`, `${units} ${text}`);
}

function message() {
  const wallet = new ethers.Wallet(key()), b = below(2) ? bytes(below(300)) : ethers.toUtf8Bytes('grüße\n€ ' + below(1e6));
  ask(`message ${wallet.privateKey.slice(2)} ${hex(b)}`, wallet.signMessageSync(b).slice(2) + ' ' + wallet.address.slice(2).toLowerCase());
}

function transaction() {
  const wallet = new ethers.Wallet(key()), type = below(3), t = new ethers.Transaction();
  t.type = type;
  t.chainId = pick([1n, 31337n, 8453n, bits(50) + 1n]);
  t.nonce = below(2) ? below(300) : Number(bits(50));
  t.gasLimit = bits(pick([8, 24, 60]));
  const price = bits(pick([0, 30, 60, 128])), priority = price ? bits(128) % (price + 1n) : 0n;
  if (type === 2) { t.maxFeePerGas = price; t.maxPriorityFeePerGas = priority; } else t.gasPrice = price;
  t.to = below(8) ? address() : null;
  t.value = amount();
  t.data = ethers.hexlify(bytes(pick([0, 0, 1, 4, 68, 300])));
  const list = type === 0 ? [] : Array.from({ length: below(3) }, () => [address(), Array.from({ length: below(3) }, () => ethers.hexlify(bytes(32)))]);
  if (type) t.accessList = list;
  t.signature = wallet.signingKey.sign(t.unsignedHash);
  const words = [wallet.privateKey.slice(2), type, t.chainId, t.nonce, price, type === 2 ? priority : 0, t.gasLimit,
    t.to ? t.to.slice(2).toLowerCase() : '-', t.value, t.data.slice(2) || '-', ethers.encodeRlp(list).slice(2)];
  ask('tx ' + words.join(' '), t.serialized.slice(2));
  ask('decode ' + t.serialized.slice(2), [type, t.chainId, t.nonce, t.gasLimit, price, t.value, words[7], words[9], t.hash.slice(2), wallet.address.slice(2).toLowerCase()].join(' '));
  // Cut, prolonged, or with a byte changed: both refuse it, or read the same transaction.
  const raw = ethers.getBytes(t.serialized), at = below(raw.length);
  raw[at] ^= 1 << below(8);
  ask('decode ' + hex(raw), null);
  ask('decode ' + t.serialized.slice(2, -2), 'error');
  ask('decode ' + t.serialized.slice(2) + '00', 'error');
}

function nested(depth) {
  if (depth === 0 || below(3) === 0) return ethers.hexlify(bytes(pick([0, 1, 1, 2, 55, 56, 60, 300])));
  return Array.from({ length: below(4) }, () => nested(depth - 1));
}
function rlp() {
  const raw = ethers.getBytes(ethers.encodeRlp(nested(4)));
  ask('rlp ' + hex(raw), 'ok');
  ask('rlp ' + hex(raw) + '00', 'error');
  const changed = Uint8Array.from(raw);
  changed[below(raw.length)] ^= 1 << below(8);
  // ethers reads some forms that are not canonical: only what it writes again as it was is right.
  ask('rlp ' + hex(changed), attempt(() => ethers.encodeRlp(ethers.decodeRlp(changed)) === ethers.hexlify(changed) ? 'ok' : 'error'));
}

// ---- values of a type, for EIP-712 and the ABI ----

const ints = [8, 16, 48, 128, 160, 256];
function atom(forTyped) {
  const kind = pick(['bool', 'address', 'string', 'bytes', 'uint', 'int', 'fixed']);
  if (kind === 'bool') return ['bool', () => below(2) === 1];
  if (kind === 'address') return ['address', () => below(2) ? address() : address().toLowerCase()];
  if (kind === 'string') return ['string', () => pick(['', 'x', 'ünï', '"\\\n', 'a'.repeat(100)])];
  if (kind === 'bytes') return ['bytes', () => ethers.hexlify(bytes(pick([0, 1, 31, 32, 33, 100])))];
  if (kind === 'fixed') { const n = 1 + below(32); return [`bytes${n}`, () => ethers.hexlify(bytes(n))]; }
  const n = pick(ints);
  if (kind === 'uint') return [`uint${n}`, () => { const v = bits(n); return forTyped && v < 2n ** 53n && below(2) ? Number(v) : forTyped && below(2) ? '0x' + v.toString(16) : String(v); }];
  return [`int${n}`, () => { const v = BigInt.asIntN(n, bits(n)); return forTyped && v > -(2n ** 53n) && v < 2n ** 53n && below(2) ? Number(v) : String(v); }];
}
function arrayed([type, make]) {
  for (let i = 0; i < 2 && below(4) === 0; i++) { // eight levels are read, and no encoder is asked for more
    const n = below(2) ? 1 + below(3) : 0, inner = make;
    type += n ? `[${n}]` : '[]';
    make = () => Array.from({ length: n || below(4) }, () => inner());
  }
  return [type, make];
}

function typed() {
  const types = {}, makers = {};
  const structs = ['Beta', 'alpha', 'Gamma', 'Z_9'].slice(0, 1 + below(4));
  structs.forEach((name, at) => {
    const fields = Array.from({ length: 1 + below(5) }, (_, i) => {
      const base = at && below(3) === 0 ? (s => [s, () => makers[s]()])(structs[below(at)]) : atom(true);
      const [type, make] = arrayed(base);
      return { name: `f${i}`, type, make };
    });
    types[name] = fields.map(({ name: n, type }) => ({ name: n, type }));
    makers[name] = () => Object.fromEntries(fields.map(f => [f.name, f.make()]));
  });
  const primaryType = structs.at(-1), message = makers[primaryType](), domain = {};
  const used = new Set([primaryType]);
  for (const s of used) for (const f of types[s]) { const b = f.type.replace(/\[.*/, ''); if (types[b]) used.add(b); }
  for (const s of structs) if (!used.has(s)) delete types[s]; // ethers wants one type that nobody refers to
  if (below(2)) domain.name = 'Näme';
  if (below(2)) domain.version = '1';
  if (below(2)) domain.chainId = pick([1, 31337, '0x7a69', '10']);
  if (below(2)) domain.verifyingContract = address();
  if (below(4) === 0) domain.salt = ethers.hexlify(bytes(32));
  const json = JSON.stringify({ types, primaryType, domain, message });
  const E = ethers.TypedDataEncoder;
  const answer = attempt(() => [E.hashDomain(domain), E.from(types).hash(message), E.hash(domain, types, message)].map(h => h.slice(2)).join(' '));
  if (answer === 'error') throw new Error('ethers refuses ' + json);
  ask('typed ' + Buffer.from(json).toString('hex'), answer);
}

function tuple(depth) {
  const parts = Array.from({ length: 1 + below(3) }, () => arrayed(depth && below(4) === 0 ? tuple(depth - 1) : atom(false)));
  return ['(' + parts.map(p => p[0]).join(',') + ')', () => parts.map(p => p[1]())];
}
const shown = (v, type) => {
  if (Array.isArray(v)) {
    const array = /^(.*)\[\d*\]$/.exec(type);
    const inner = array ? v.map(() => array[1]) : split(type.slice(1, -1));
    return '[' + v.map((x, i) => shown(x, inner[i])).join(',') + ']';
  }
  if (type === 'string') return hex(ethers.toUtf8Bytes(v));
  if (type === 'bytes') return hex(v);
  return ethers.AbiCoder.defaultAbiCoder().encode([type], [v]).slice(2);
};
function split(list) {
  const out = [''];
  let open = 0;
  for (const c of list) {
    open += (c === '(') - (c === ')');
    if (c === ',' && !open) out.push(''); else out[out.length - 1] += c;
  }
  return out;
}
function abi() {
  const [type, make] = tuple(1), types = type.slice(1, -1), value = make();
  const coder = ethers.AbiCoder.defaultAbiCoder(), data = coder.encode(split(types), value).slice(2);
  ask(`abi ${types} ${data}`, shown(value, type));
  ask(`abi ${types} ${data}${'00'.repeat(32)}`, 'error');
  ask(`abi ${types} ${data.slice(0, -64) || '-'}`, 'error');
  // With a bit changed: refused, unless ethers' encoder would write these very bytes.
  const changed = ethers.getBytes('0x' + data);
  changed[below(changed.length)] ^= 1 << below(8);
  const answer = attempt(() => {
    const decoded = coder.decode(split(types), changed).toArray(true);
    const again = coder.encode(split(types), decoded);
    return again === ethers.hexlify(changed) ? shown(decoded, type) : 'error';
  });
  // ethers cannot read a string that is not UTF-8, which is no matter to us.
  if (answer !== 'error' || !types.includes('string')) ask(`abi ${types} ${hex(changed)}`, answer);
}

const erc20 = new ethers.Interface(['function transfer(address,uint256)', 'function approve(address,uint256)', 'function multicall(bytes[])',
  'function execute(address,uint256,bytes)', 'function aggregate3((address,bool,bytes)[])', 'function executeBatch((address,uint256,bytes)[])']);
const low = a => a.slice(2).toLowerCase();
const native = (n, to) => n ? ` ${'ee'.repeat(20)}:${n}:${low(to)}` : '';
// What wrappers spend. Calls are [to, value, data, what the data says]; instead of what it says, a list: the calls that `to` makes.
// Whoever is sent value is listed with it; who is only called, once, at the end, unless it is the wrapper itself.
function wrapped(outer, value, calls) {
  const seen = new Set();
  let spent = '', bare = '', sent = 0n;
  const walk = (self, list) => list.forEach(([to, v, , says]) => {
    spent += native(v, to);
    if (!v && to !== self && !seen.has(to)) bare += ` ${'ee'.repeat(20)}:0:${low(to)}`;
    if (v || to !== self) seen.add(to);
    sent += v;
    if (typeof says === 'string') spent += says; else walk(to, says);
  });
  walk(outer, calls);
  return 'wrapped' + spent + native(value > sent ? value - sent : 0n, outer) + bare;
}
function call() {
  const us = address(), token = address(), who = address(), outer = address(), v = bits(200) + 1n, value = below(2) ? bits(60) : 0n;
  const transfer = erc20.encodeFunctionData('transfer', [who, v]), approve = erc20.encodeFunctionData('approve', [who, v]);
  const gives = to => [transfer, ` ${low(to)}:${v}:${low(who)}`], allows = to => [approve, ` ${low(to)}~${v}:${low(who)}`];
  const question = (to, data) => `call ${low(us)} ${low(to)} ${value} ${data.slice(2)}`;
  ask(question(token, transfer), 'erc20_transfer' + gives(token)[1] + native(value, token));
  ask(question(token, approve), 'approval' + allows(token)[1] + native(value, token));
  const both = [[token, 0n, ...gives(token)], [token, 0n, ...allows(token)]];
  ask(question(token, erc20.encodeFunctionData('multicall', [[transfer, approve]])), wrapped(token, value, both));
  ask(question(outer, erc20.encodeFunctionData('aggregate3', [both.map(([to, , data], i) => [to, i === 0, data])])), wrapped(outer, value, both));
  // Batches, of which some are within another wrapper's call.
  const inner = address(), self = pick([outer, inner]), others = [token, who, outer, inner];
  const calls = Array.from({ length: below(5) }, () => {
    const to = pick(others);
    return [to, pick([0n, bits(8), bits(60)]), ...pick([gives, allows, () => ['0x', '']])(to)];
  });
  const batch = erc20.encodeFunctionData('executeBatch', [calls.map(c => c.slice(0, 3))]);
  if (self === outer) {
    ask(question(outer, batch), wrapped(outer, value, calls));
  } else {
    const paid = pick([0n, bits(60)]);
    ask(question(outer, erc20.encodeFunctionData('execute', [inner, paid, batch])), wrapped(outer, value, [[inner, paid, batch, calls]]));
  }
}

// Words of BIP-39: what is written, the key of an account, and changed sentences, which both refuse or both read.
function words() {
  const entropy = bytes(pick([16, 20, 24, 28, 32])), phrase = ethers.Mnemonic.entropyToPhrase(entropy);
  const text = s => Buffer.from(s).toString('hex') || '-';
  ask(`words ${hex(entropy)}`, text(phrase));
  const pass = pick(['', '', 'TREZOR', 'correct horse']), account = pick([0, 0, 1, below(2 ** 31)]);
  const derive = p => ethers.HDNodeWallet.fromPhrase(p, pass, `m/44'/60'/0'/0/${account}`).privateKey.slice(2);
  ask(`mnemonic ${text(phrase)} ${text(pass)} ${account}`, derive(phrase));
  const list = phrase.split(' '), at = below(list.length);
  list[at] = pick([ethers.wordlists.en.getWord(below(2048)), list[at] + 'x', list[at].slice(0, -1)]);
  const changed = list.join(' ');
  ask(`mnemonic ${text(changed)} - 0`, attempt(() => ethers.HDNodeWallet.fromPhrase(changed, '', "m/44'/60'/0'/0/0").privateKey.slice(2)));
}

async function keystores() {
  for (let i = 0; i < 3; i++) {
    const wallet = new ethers.Wallet(key()), password = 'pässword ' + i;
    const json = ethers.encryptKeystoreJsonSync({ address: wallet.address, privateKey: wallet.privateKey }, password, { scrypt: { N: 1 << (8 + i), r: 8, p: 1 } });
    ask(`open ${hex(ethers.toUtf8Bytes(password))} ${Buffer.from(json).toString('hex')}`, wallet.privateKey.slice(2));
    const made = execFileSync(program, { input: `make ${wallet.privateKey.slice(2)} ${hex(ethers.toUtf8Bytes(password))}\n` }).toString().trim();
    const opened = ethers.decryptKeystoreJsonSync(Buffer.from(made, 'hex').toString(), password);
    if (opened.privateKey !== wallet.privateKey || opened.address !== wallet.address) throw new Error('ethers reads another key from our keystore');
  }
}

for (let i = 0; i < 400; i++) { plain(); transaction(); rlp(); typed(); abi(); call(); }
for (let i = 0; i < 150; i++) message();
for (let i = 0; i < 25; i++) words();
await keystores();

const lines = execFileSync(program, { input: questions.join('\n') + '\n', maxBuffer: 1 << 28, stdio: ['pipe', 'pipe', 'ignore'] }).toString().split('\n');
let wrong = 0;
questions.forEach((q, i) => {
  let right = expected[i];
  if (right === null) { // a changed transaction: what we accept, ethers reads as the same hash
    const [, , nonce] = lines[i].split(' '); // ethers' numbers end at 2^53
    right = lines[i] === 'error' || BigInt(nonce) >= 2n ** 53n ? lines[i] : attempt(() => {
      const t = ethers.Transaction.from('0x' + q.slice(7));
      return lines[i].includes(t.hash.slice(2)) && t.serialized === '0x' + q.slice(7) ? lines[i] : 'another transaction';
    });
  }
  if (lines[i] !== right && wrong++ < 10) console.log(`${q.slice(0, 600)}\n  is    ${lines[i]?.slice(0, 600)}\n  ought ${right.slice(0, 600)}`);
});
console.log(`${questions.length} questions, ${wrong} wrong, seed ${seedText}`);
process.exit(wrong ? 1 : 0);
