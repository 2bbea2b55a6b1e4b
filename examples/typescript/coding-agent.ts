// A coding agent: a model with a sandbox and a task. It writes files, runs them, reads the errors and tries again.
//
//   OPENAI_API_KEY=… bun coding-agent.ts "Write a prime sieve in Python, test it, and print the primes below 30"

import OpenAI from 'openai';

import { Sandbox } from '@paddock/sandbox';
import { openaiTools } from '@paddock/sandbox/tools';

const TURNS = 30;
const task = process.argv[2] ?? 'Write a prime sieve in Python, test it, and print the primes below 30.';
const model = process.env['MODEL'] ?? 'gpt-5-mini';

const openai = new OpenAI();
const sb = await Sandbox.create({ ttl_seconds: 1800, metadata: { example: 'coding-agent' } });
try {
  const { tools, run } = openaiTools(sb);
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: 'You are a careful programmer. Work in /workspace with the tools you have, and run what you write. Answer briefly when the task is done.' },
    { role: 'user', content: task },
  ];
  for (let turn = 0; turn < TURNS; turn++) {
    const completion = await openai.chat.completions.create({ model, messages, tools });
    const message = completion.choices[0]!.message;
    messages.push(message);
    if (!message.tool_calls?.length) {
      console.log(message.content);
      break;
    }
    for (const call of message.tool_calls) if (call.type === 'function') console.log(`> ${call.function.name} ${call.function.arguments}`);
    const results = await run(message);
    for (const { content } of results) console.log(content.replace(/^/gm, '  '));
    messages.push(...results);
  }
} finally {
  await sb.delete();
}
