// Each framework's own agent, with the tools of the SDK, a real sandbox and a scripted model. One JSON line a framework:
// {scenario, ok, error}.
import assert from 'node:assert/strict';

import { Sandbox } from '@paddock/sandbox';
import { agentsTools, anthropicTools, langchainTools, openaiTools, sandboxTools, vercelTools } from '@paddock/sandbox/tools';

import { scriptedModel } from './model.mjs';

const SCRIPT = [
  { tool: 'write_file', args: { path: '/workspace/app.py', content: 'def add(a, b):\n    return a - b\n' } },
  { tool: 'run_command', args: { command: 'cd /workspace && export WHO=agent && python3 -c "import app; print(app.add(2, 3))"; exit_code_of() { return 3; }; exit_code_of' } },
  { tool: 'edit_file', args: { path: '/workspace/app.py', old: 'a - b', new: 'a + b  # fixed' } },
  { tool: 'run_code', args: { code: 'import sys; sys.path.insert(0, "/workspace"); import app\napp.add(2, 3)' } },
  { tool: 'search_files', args: { path: '/workspace', pattern: 'return a .' } },
  { tool: 'list_files', args: { path: '/workspace' } },
  { tool: 'read_file', args: { path: '/no/such/file' } },
  { tool: 'run_command', args: { command: 'pwd; echo $WHO' } },
  { text: 'The bug is fixed.' },
];

function check({ seen, asked }) {
  assert.equal(seen.length, 8);
  assert.match(seen[0], /^wrote 32 bytes/);
  assert.equal(seen[1], '-1\n[exit code 3]');
  assert.equal(seen[2], 'replaced 1 occurrence');
  assert.equal(seen[3], '5');
  assert.match(seen[4], /^app\.py:2:\s+return a \+ b  # fixed$/m);
  assert.match(seen[5], /^- \d+\tapp\.py$/m);
  assert.match(seen[6], /^error: .*No such file/);
  assert.equal(seen[7], '/workspace\nagent\n[exit code 0]');
  const names = (asked[0].tools ?? []).map((one) => one.function?.name ?? one.name).sort();
  assert.deepEqual(names, ['edit_file', 'list_files', 'read_file', 'run_code', 'run_command', 'search_files', 'write_file']);
}

const apiKey = 'scripted', prompt = 'Fix app.py.';

const FRAMEWORKS = {
  'OpenAI: chat completions': async (sb, model) => {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ apiKey, baseURL: `${model.url}/v1`, maxRetries: 0 }), { tools, run } = openaiTools(sb);
    const messages = [{ role: 'user', content: prompt }];
    for (;;) {
      const { message } = (await client.chat.completions.create({ model: 'm', messages, tools })).choices[0];
      messages.push(message);
      if (!message.tool_calls) return message.content;
      messages.push(...(await run(message)));
    }
  },
  'OpenAI: responses': async (sb, model) => {
    const { default: OpenAI } = await import('openai');
    const client = new OpenAI({ apiKey, baseURL: `${model.url}/v1`, maxRetries: 0 }), { responseTools, runResponse } = openaiTools(sb);
    const input = [{ role: 'user', content: prompt }];
    for (;;) {
      const { output, output_text } = await client.responses.create({ model: 'm', input, tools: responseTools });
      const done = await runResponse(output);
      if (!done.length) return output_text;
      input.push(...output, ...done);
    }
  },
  Anthropic: async (sb, model) => {
    const { default: Anthropic } = await import('@anthropic-ai/sdk');
    const client = new Anthropic({ apiKey, baseURL: model.url, maxRetries: 0 }), { tools, run } = anthropicTools(sb);
    const messages = [{ role: 'user', content: prompt }];
    for (;;) {
      const { content } = await client.messages.create({ model: 'm', max_tokens: 1000, messages, tools });
      messages.push({ role: 'assistant', content });
      const results = await run(content);
      if (!results.length) return content[0].text;
      messages.push({ role: 'user', content: results });
    }
  },
  'OpenAI Agents SDK': async (sb, model) => {
    const { Agent, OpenAIProvider, Runner, setTracingDisabled } = await import('@openai/agents');
    setTracingDisabled(true);
    const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey, baseURL: `${model.url}/v1`, useResponses: true }) });
    const agent = new Agent({ name: 'coder', model: 'm', tools: await agentsTools(sb) });
    return (await runner.run(agent, prompt, { maxTurns: 20 })).finalOutput;
  },
  LangChain: async (sb, model) => {
    const { ChatOpenAI } = await import('@langchain/openai');
    const { createReactAgent } = await import('@langchain/langgraph/prebuilt');
    const llm = new ChatOpenAI({ model: 'm', apiKey, configuration: { baseURL: `${model.url}/v1` }, maxRetries: 0 });
    const agent = createReactAgent({ llm, tools: await langchainTools(sb) });
    const { messages } = await agent.invoke({ messages: [{ role: 'user', content: prompt }] }, { recursionLimit: 50 });
    return messages.at(-1).content;
  },
  'Vercel AI SDK': async (sb, model) => {
    const { generateText, stepCountIs } = await import('ai');
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const provider = createOpenAICompatible({ name: 'scripted', apiKey, baseURL: `${model.url}/v1` });
    const done = await generateText({ model: provider('m'), tools: await vercelTools(sb), prompt, stopWhen: stepCountIs(20), maxRetries: 0 });
    return done.text;
  },
};

async function tools(sb) {
  const all = Object.fromEntries(sandboxTools(sb, { maxOutput: 100 }).map((one) => [one.name, one.execute]));
  const [short] = sandboxTools(sb, { timeoutMs: 1500, only: ['run_command'] });
  assert.match(await all.run_command({ command: 'seq 1 1000' }), /^1\n2\n[^]*characters left out[^]*1000\n\[exit code 0\]$/);
  assert.match(await short.execute({ command: 'echo bad >&2; sleep 60' }), /^\[stderr\]\nbad\n[^]*\n\[ended after 1500 ms\]$/);
  assert.match(await all.run_code({ code: '1/0' }), /ZeroDivisionError/);
  assert.equal(await all.run_code({ code: 'x = 1' }), '[no output]');
  assert.equal(await all.run_code({ code: '[1].length', language: 'javascript' }), '1');
  assert.equal(await all.run_command({}), 'error: the argument command is missing');
  assert.equal(await all.run_command({ command: 6 }), 'error: the argument command must be a string');
  assert.equal(await all.run_command({ command: 'x', more: 1 }), 'error: there is no argument more');
  assert.match(await all.run_code({ code: 'x', language: 'cobol' }), /^error: the argument language must be one of/);
  assert.equal(await all.search_files({ path: '/workspace', pattern: 'nothing like this' }), '[no match]');
  assert.equal(sandboxTools(sb, { only: ['read_file'] }).length, 1);
  const { run } = openaiTools(sb);
  const [told] = await run({ tool_calls: [{ id: '1', type: 'function', function: { name: 'nothing', arguments: '{' } }] });
  assert.match(told.content, /^error: there is no tool nothing; there are run_command/);
  const [wrong] = await run({ tool_calls: [{ id: '1', type: 'function', function: { name: 'run_command', arguments: '{' } }] });
  assert.equal(wrong.content, 'error: the arguments must be an object');
  const abort = new AbortController();
  abort.abort(new Error('enough'));
  await assert.rejects(all.run_command({ command: 'true' }, { signal: abort.signal }), /enough/);
}

async function gone(sb) {
  await sb.delete();
  await assert.rejects(sandboxTools(sb)[0].execute({ command: 'true' }), { code: 'not_found' });
}

const SCENARIOS = [
  ['tools', tools],
  ...Object.entries(FRAMEWORKS).map(([name, run]) => [name, async (sb) => {
    const model = await scriptedModel(SCRIPT);
    try {
      assert.equal(await run(sb, model), 'The bug is fixed.');
      check(model);
    } finally {
      model.close();
    }
  }]),
  ['a sandbox that is gone', gone],
];

if (process.argv[2] === '--list') {
  for (const [name] of SCENARIOS) console.log(name);
  process.exit(0);
}
for (const [scenario, run] of SCENARIOS) {
  const sb = await Sandbox.create({ ttl_seconds: 300 });
  let error;
  try {
    await run(sb);
  } catch (e) {
    error = `${e?.stack ?? e}`.slice(0, 3000);
  }
  await sb[Symbol.asyncDispose]();
  console.log(JSON.stringify({ scenario, ok: !error, error }));
}
process.stdout.write('', () => process.exit(0));
