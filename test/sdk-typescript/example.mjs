// Runs a program beside a scripted model: example.mjs SCRIPT.json COMMAND… prints the program's output, then a line of
// JSON with what the model saw of its tools.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { scriptedModel } from './model.mjs';

const [, , script, command, ...words] = process.argv;
const model = await scriptedModel(JSON.parse(readFileSync(script, 'utf8')));
const env = {
  ...process.env, OPENAI_API_KEY: 'scripted', OPENAI_BASE_URL: `${model.url}/v1`, ANTHROPIC_API_KEY: 'scripted', ANTHROPIC_BASE_URL: model.url, MODEL: 'scripted',
};
const child = spawn(command, words, { env, stdio: 'inherit' });
child.on('exit', (code) => {
  process.stdout.write(`${JSON.stringify({ code, seen: model.seen, asked: model.asked.length })}\n`, () => process.exit(0));
});
