// Sandkasten's quick start: the same calls in the same order. Only the import differs: it was '@sandkasten/client'.

import { SandboxClient } from '@paddock/sandbox/sandkasten';

const client = new SandboxClient({
  baseUrl: process.env['SANDKASTEN_URL'] ?? 'http://localhost:8080',
  apiKey: process.env['SANDKASTEN_API_KEY'] ?? 'sk-test',
});

const session = await client.createSession();
const result = await session.exec('uname -s && pwd');
process.stdout.write(result.output);
await session.destroy(); // theirs leaves it to its time limit
