// What the types must allow, and (with @ts-expect-error) must not.
import { type api, NotFoundError, Paddock, Sandbox } from '@paddock/sandbox';

async function inBlock(): Promise<[number, string]> {
  await using sb = await Sandbox.create({ limits: { memory_mb: 256 }, metadata: { of: 'types' } });
  const done: api.ExecResult = await sb.run(['sh', '-c', 'exit 6'], { timeout_ms: 5000, env: { A: 'b' } });
  for await (const event of sb.stream('echo x', { signal: AbortSignal.timeout(10_000) })) {
    if (event.type === 'stdout') event.data.toUpperCase();
    else if (event.type === 'exit') event.exit_code.toFixed();
    // @ts-expect-error an event of this kind does not exist
    else if (event.type === 'other') continue;
  }
  // @ts-expect-error the API has no such field
  if (done.no_such_field) return [0, ''];
  return [done.exit_code, sb.id];
}

// Never called: only its types count.
export async function wrong(sb: Sandbox): Promise<void> {
  // @ts-expect-error a number
  await sb.run(6);
  // @ts-expect-error not a field of a create
  await Sandbox.create({ memory: 5 });
  // @ts-expect-error not a language
  await sb.execute('1', { language: 'cobol' });
}

const [code, id] = await inBlock();
const gone = await new Paddock().sandboxes.get(id).then(() => 'there', (e: unknown) => (e instanceof NotFoundError ? 'gone' : String(e)));
console.log(code, gone);
