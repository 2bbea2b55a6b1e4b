// @paddock/sandbox: isolated Linux sandboxes for AI agents.

export * from './errors.js';
export { Paddock, type EventOptions, type ListSandboxesOptions, type TransactionFilter } from './client.js';
export { Sandbox, type Connection, type CreateOptions } from './sandbox.js';
export type { ClientOptions } from './config.js';
export type { CallOptions } from './core.js';
export type { Command, CommandEvent, ExitEvent, OutputEvent, RunOptions, ShellRunOptions, StreamOptions } from './commands.js';
export { Shells } from './commands.js';
export { Context, Contexts, type ContextExecuteOptions, type ExecuteOptions } from './contexts.js';
export { Files, type FileHead, type ListOptions, type ReadOptions, type SignedUrl, Watcher, WorkspaceFiles, type WriteOptions } from './files.js';
export { Egress, type EgressOptions, type EgressState, Ports, Preview, SandboxModels, SandboxSecrets } from './network.js';
export { type OutputOptions, Process, Processes, type ProcessOptions } from './processes.js';
export { Terminal, type TerminalExit, type TerminalOptions, Tunnel } from './terminal.js';
export { verifyWebhook } from './webhook.js';
export { bytesOf } from './stream.js';
export type { BodySource } from './transport.js';
export type * as api from './schema.js';
