// The tools that an agent gets: what a model reads of each, and what each does in a sandbox. The other files of this
// folder put them into the forms of the frameworks.

import { NotFoundError, PaddockError } from '../errors.js';
import type { Sandbox } from '../sandbox.js';

/** A schema in the form that models are given. */
export interface Parameters {
  type: 'object';
  properties: Record<string, { type: string; description: string; enum?: string[]; items?: { type: string } }>;
  required: string[];
  additionalProperties: false;
  [further: string]: unknown;
}

export interface Tool {
  name: string;
  description: string;
  parameters: Parameters;
  /** Does it and returns what the model reads. What goes wrong in the sandbox is text for the model, not an error. */
  execute(args: Record<string, unknown>, options?: { signal?: AbortSignal | undefined }): Promise<string>;
}

export interface ToolOptions {
  /** Only the tools of these names. */
  only?: ToolName[];
  /** Longer text is cut in the middle; 20,000 characters by default. */
  maxOutput?: number;
  /** The time limit of a command or of code; 120,000 ms by default. */
  timeoutMs?: number;
}

export type ToolName = 'run_command' | 'run_code' | 'write_file' | 'read_file' | 'edit_file' | 'list_files' | 'search_files';

interface Context {
  sb: Sandbox;
  cut: (text: string) => string;
  timeout_ms: number;
  signal: AbortSignal | undefined;
}

/** The arguments of all tools; `complaint` has checked that those of a tool are there. */
interface Arguments {
  command: string;
  code: string;
  language?: 'python' | 'javascript' | 'bash';
  path: string;
  content: string;
  old: string;
  new: string;
  pattern: string;
}

interface Definition {
  description: string;
  properties: Parameters['properties'];
  required: string[];
  run(context: Context, args: Arguments): Promise<string>;
}

const path = { type: 'string', description: 'An absolute path, or one relative to the working directory' };

/** Keeps the beginning and the end, where commands say what they do and how they ended. */
function cutter(most: number): (text: string) => string {
  return (text) => {
    if (text.length <= most) return text;
    const half = Math.floor(most / 2);
    return `${text.slice(0, half)}\n[… ${text.length - 2 * half} characters left out …]\n${text.slice(-half)}`;
  };
}

/** Without its last line break: the next part begins a line of its own. */
const line = (text: string) => text.replace(/\n$/, '');

const DEFINITIONS: { readonly [K in ToolName]: Definition } = {
  run_command: {
    description: 'Runs a command with bash in the sandbox and returns its output and exit code. The working directory, variables and functions last from one command to the next.',
    properties: { command: { type: 'string', description: 'The command line' } },
    required: ['command'],
    async run({ sb, cut, timeout_ms, signal }, { command }) {
      const done = await sb.shell(command, { timeout_ms, signal });
      const ending = done.timed_out ? `[ended after ${timeout_ms} ms]` : `[exit code ${done.exit_code}]`;
      return [line(cut(done.stdout)), done.stderr && `[stderr]\n${line(cut(done.stderr))}`, done.oom_killed ? '[out of memory]' : '', ending].filter(Boolean).join('\n');
    },
  },
  run_code: {
    description: 'Runs code in an interpreter that keeps its state, and returns its output, the value of the last expression and errors.',
    properties: {
      code: { type: 'string', description: 'The code' },
      language: { type: 'string', enum: ['python', 'javascript', 'bash'], description: 'python if it is absent' },
    },
    required: ['code'],
    async run({ sb, cut, timeout_ms, signal }, { code, language }) {
      const done = await sb.execute(code, { ...(language ? { language } : {}), timeout_ms, signal });
      const shown = done.results.map((one) => one.text ?? one.markdown ?? one.html ?? `[${Object.keys(one).filter((k) => k !== 'main' && k !== 'truncated').join(', ')}]`);
      return [line(cut(done.stdout)), done.stderr && `[stderr]\n${line(cut(done.stderr))}`, cut(shown.join('\n')), done.error && cut(done.error.traceback || `${done.error.name}: ${done.error.value}`)]
        .filter(Boolean).join('\n') || '[no output]';
    },
  },
  write_file: {
    description: 'Writes a text file in the sandbox. Missing directories are created; an existing file is replaced.',
    properties: { path, content: { type: 'string', description: 'The whole content' } },
    required: ['path', 'content'],
    async run({ sb, signal }, args) {
      const made = await sb.files.write(args.path, args.content, { signal });
      return `wrote ${made.size} bytes to ${args.path}`;
    },
  },
  read_file: {
    description: 'Reads a text file in the sandbox.',
    properties: { path },
    required: ['path'],
    run: async ({ sb, cut, signal }, args) => cut(await sb.files.read(args.path, { signal })),
  },
  edit_file: {
    description: 'Replaces text in a file in the sandbox. The old text must be in the file exactly as given.',
    properties: { path, old: { type: 'string', description: 'The text to replace' }, new: { type: 'string', description: 'The text that takes its place' } },
    required: ['path', 'old', 'new'],
    async run({ sb, signal }, args) {
      const { replaced } = await sb.files.replace(args.path, args.old, args.new, { signal });
      return `replaced ${replaced} ${replaced === 1 ? 'occurrence' : 'occurrences'}`;
    },
  },
  list_files: {
    description: 'Lists a directory in the sandbox: type, size and name of each entry.',
    properties: { path },
    required: ['path'],
    async run({ sb, cut, signal }, args) {
      const entries = await sb.files.list(args.path, { signal });
      const lines = entries.map((one) => `${one.type === 'directory' ? 'd' : one.type === 'file' ? '-' : 'o'} ${one.size}\t${one.name}`).sort();
      return cut(lines.join('\n')) || '[empty]';
    },
  },
  search_files: {
    description: 'Searches text in the files below a directory of the sandbox and returns the matching lines.',
    properties: { path, pattern: { type: 'string', description: 'An extended regular expression' } },
    required: ['path', 'pattern'],
    async run({ sb, cut, signal }, args) {
      const found = await sb.files.grep(args.path, args.pattern, { regex: true, limit: 200, signal });
      return cut(found.matches.map((one) => `${one.path}:${one.line}:${one.text}`).join('\n')) || '[no match]';
    },
  },
};

/** What is wrong with the arguments, or nothing. Models make mistakes; they mend them when they are told. */
function complaint(parameters: Parameters, args: unknown): string | undefined {
  if (typeof args !== 'object' || args === null || Array.isArray(args)) return 'the arguments must be an object';
  for (const name of parameters.required) if (!(name in args)) return `the argument ${name} is missing`;
  for (const [name, value] of Object.entries(args)) {
    const known = parameters.properties[name];
    if (!known) return `there is no argument ${name}`;
    if (value !== null && typeof value !== known.type) return `the argument ${name} must be a ${known.type}`;
    if (value !== null && known.enum && !known.enum.includes(String(value))) return `the argument ${name} must be one of ${known.enum.join(', ')}`;
  }
  return undefined;
}

/** The tools for a sandbox, in no framework's form. */
export function sandboxTools(sb: Sandbox, options: ToolOptions = {}): Tool[] {
  const cut = cutter(options.maxOutput ?? 20_000), timeout_ms = options.timeoutMs ?? 120_000;
  const names = options.only ?? (Object.keys(DEFINITIONS) as ToolName[]);
  return names.map((name) => {
    const { description, properties, required, run } = DEFINITIONS[name];
    const parameters: Parameters = { type: 'object', properties, required, additionalProperties: false };
    return {
      name, description, parameters,
      async execute(args, { signal } = {}) {
        const wrong = complaint(parameters, args);
        if (wrong) return `error: ${wrong}`;
        try {
          return await run({ sb, cut, timeout_ms, signal }, args as unknown as Arguments);
        } catch (e) {
          if (!(e instanceof PaddockError) || e.status === 0 || e.status === 401) throw e;
          // A sandbox that is gone is not the model's affair.
          if (e instanceof NotFoundError && /sandbox/.test(e.message)) throw e;
          return `error: ${e.message}`;
        }
      },
    };
  });
}
