// agentbox's quick start: the same calls in the same order. Only the import differs: it was '@agentbox/client'.

import { Sandbox } from '@paddock/sandbox/agentbox';

const sandbox = new Sandbox(process.env['AGENTBOX_URL'] ?? 'http://localhost:50051');

await sandbox.create();

const version = await sandbox.exec('python3 --version');
process.stdout.write(version.stdout);

await sandbox.writeFile('note.py', "print('written')\n");
process.stdout.write(await sandbox.readFile('note.py'));

const sum = await sandbox.runPython('print(sum(range(10)))');
process.stdout.write(sum.stdout);

const installed = await sandbox.pipInstall(['pip']);
console.log(installed.exitCode, sandbox.networkEnabled);

console.log(await sandbox.destroy());
