// One bug, three ideas: the sandbox with the failing test is forked, and each fork tries one of the model's fixes at the
// same time. The first that passes wins.
//
//   ANTHROPIC_API_KEY=… bun three-fixes.ts

import Anthropic from '@anthropic-ai/sdk';

import { Sandbox } from '@paddock/sandbox';

const PROGRAM = `def median(numbers):
    numbers.sort()
    return numbers[len(numbers) / 2]
`;
const TEST = `from median import median
given = [3, 1, 2]
assert median(given) == 2, 'odd'
assert median([4, 1, 3, 2]) == 2.5, 'even'
assert given == [3, 1, 2], 'its argument is changed'
print('passed')
`;
const model = process.env['MODEL'] ?? 'claude-sonnet-4-5';

/** Asks for three versions of the program. The tool only gives the answer its form. */
async function ideas(failure: string): Promise<string[]> {
  const answer = await new Anthropic().messages.create({
    model, max_tokens: 4000,
    tools: [{
      name: 'propose', description: 'Proposes three different fixes: the whole file median.py each time.',
      input_schema: { type: 'object', properties: { fixes: { type: 'array', items: { type: 'string' }, minItems: 3, maxItems: 3 } }, required: ['fixes'] },
    }],
    tool_choice: { type: 'tool', name: 'propose' },
    messages: [{ role: 'user', content: `Fix this file.\n\nmedian.py:\n${PROGRAM}\n\ntest.py:\n${TEST}\n\nThe test says:\n${failure}` }],
  });
  const asked = answer.content.find((block) => block.type === 'tool_use');
  return ((asked?.input as { fixes?: string[] }).fixes ?? []).slice(0, 3);
}

const sb = await Sandbox.create({ ttl_seconds: 600 });
try {
  await sb.files.upload('/workspace', { 'median.py': PROGRAM, 'test.py': TEST });
  const before = await sb.run('python3 test.py');
  console.log(`before: exit code ${before.exit_code}`);
  const fixes = await ideas(before.stderr);
  const forks = await sb.fork(fixes.length);
  const results = await Promise.all(forks.map(async (fork, i) => {
    await fork.files.write('/workspace/median.py', fixes[i]!);
    const { exit_code, stdout, stderr } = await fork.run('python3 test.py', { timeout_ms: 30_000 });
    const said = (stdout + stderr).trim().split('\n').at(-1);
    await fork.delete();
    return { exit_code, said };
  }));
  results.forEach(({ exit_code, said }, i) => console.log(`fix ${i + 1}: exit code ${exit_code}: ${said}`));
  const best = results.findIndex(({ exit_code }) => exit_code === 0);
  console.log(best < 0 ? 'none of them works' : `fix ${best + 1} works:\n${fixes[best]}`);
} finally {
  await sb.delete();
}
