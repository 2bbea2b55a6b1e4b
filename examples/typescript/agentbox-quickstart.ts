// A program for agentbox's client. Only the import differs: it was '@agentbox/client'.

import { Sandbox } from '@paddock/sandbox/agentbox';

const sandbox = new Sandbox(process.env['AGENTBOX_URL'] ?? 'http://localhost:50051');

await sandbox.create({ allowedHosts: ['example.org', 'files.example.org'] });
try {
  const version = await sandbox.exec('python3 --version');
  process.stdout.write(version.stdout);

  await sandbox.writeFile('test.py', "print('Hello from the sandbox!')\n");
  process.stdout.write(await sandbox.readFile('test.py'));
  process.stdout.write((await sandbox.exec('python3 test.py')).stdout);

  for await (const chunk of sandbox.execStream('echo streamed; exit 3')) {
    if (chunk.type === 'exit') console.log(`exit code ${chunk.exitCode}`);
    else process.stdout.write(chunk.data);
  }

  const result = await sandbox.runPython('print(sum(range(10)))');
  console.log(result.stdout.trim(), sandbox.networkEnabled);
} finally {
  await sandbox.destroy();
}
