// A program for Sandkasten's client. Only the import differs: it was '@sandkasten/client'.

import { SandboxClient } from '@paddock/sandbox/sandkasten';

const client = new SandboxClient({
  baseUrl: process.env['SANDKASTEN_URL'] ?? 'http://localhost:8080',
  apiKey: process.env['SANDKASTEN_API_KEY'] ?? 'sk-test',
});

const session = await client.createSession({ image: 'python', ttlSeconds: 600 });
try {
  await session.write('/workspace/hello.py', "print('Hello from sandbox!')\n");
  const result = await session.exec('cd /workspace && python3 hello.py');
  process.stdout.write(result.output);

  // The shell is still where it was.
  process.stdout.write((await session.exec('pwd && ls')).output);

  for await (const chunk of session.execStream('for i in 1 2 3; do echo step $i; done')) {
    if (chunk.done) console.log(`exit code ${chunk.exit_code}`);
    else process.stdout.write(chunk.output);
  }
} finally {
  await session.destroy();
}
