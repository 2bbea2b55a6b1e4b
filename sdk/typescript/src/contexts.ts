// Code in interpreters that keep their state.

import type { CallOptions, Core } from './core.js';
import { ConnectionError } from './errors.js';
import type { Context as ContextInfo, ContextCreate, Execute, ExecuteInContext, Execution, ExecutionEvent } from './schema.js';
import { NDJSON, objectsOf, throwIfError } from './stream.js';
import type { Answer } from './transport.js';

export interface ExecuteOptions extends Omit<Execute, 'code'>, CallOptions {}
export interface ContextExecuteOptions extends Omit<ExecuteInContext, 'code'>, CallOptions {}

async function* eventsOf(begin: () => Promise<Answer>): AsyncGenerator<ExecutionEvent, void> {
  const answer = await begin();
  try {
    for await (const event of objectsOf<ExecutionEvent>(answer)) {
      throwIfError(event as { type: string });
      yield event;
      if (event.type === 'end') return;
    }
  } finally {
    answer.discard();
  }
  throw new ConnectionError('the stream ended before the code did');
}

/** An interpreter with its own namespace. */
export class Context {
  constructor(private readonly core: Core, private readonly box: string, readonly id: string) {}

  private get path() {
    return { id: this.box, context: this.id };
  }
  info(options: CallOptions = {}): Promise<ContextInfo> {
    return this.core.call('getContext', { path: this.path, ...options });
  }
  execute(code: string, options: ContextExecuteOptions = {}): Promise<Execution> {
    const { signal, ...rest } = options;
    return this.core.call('executeInContext', { path: this.path, json: { code, ...rest }, signal });
  }
  /** The output and the results as they come. */
  stream(code: string, options: ContextExecuteOptions = {}): AsyncGenerator<ExecutionEvent, void> {
    const { signal, ...rest } = options;
    return eventsOf(() => this.core.body('executeInContext', { path: this.path, json: { code, ...rest }, accept: NDJSON, signal }));
  }
  /** Interrupts the code that runs. The context keeps its state. */
  interrupt(options: CallOptions = {}): Promise<ContextInfo> {
    return this.core.call('interruptContext', { path: this.path, ...options });
  }
  /** Starts it again with an empty namespace. */
  restart(options: CallOptions = {}): Promise<ContextInfo> {
    return this.core.call('restartContext', { path: this.path, ...options });
  }
  remove(options: CallOptions = {}): Promise<void> {
    return this.core.call('removeContext', { path: this.path, ...options });
  }
}

export class Contexts {
  constructor(private readonly core: Core, private readonly id: string) {}

  async create(params: ContextCreate & CallOptions): Promise<Context> {
    const { signal, ...json } = params;
    return this.get((await this.core.call('createContext', { path: { id: this.id }, json, signal })).id);
  }
  /** A context by its id, or by the name of a language: the one that `execute` uses. */
  get(context: string): Context {
    return new Context(this.core, this.id, context);
  }
  async list(options: CallOptions = {}): Promise<ContextInfo[]> {
    return (await this.core.call('listContexts', { path: { id: this.id }, ...options })).contexts;
  }
  /** Executes code in the default context of its language, Python unless `language` says otherwise. */
  execute(code: string, options: ExecuteOptions = {}): Promise<Execution> {
    const { signal, ...rest } = options;
    return this.core.call('execute', { path: { id: this.id }, json: { code, ...rest }, signal });
  }
  stream(code: string, options: ExecuteOptions = {}): AsyncGenerator<ExecutionEvent, void> {
    const { signal, ...rest } = options;
    return eventsOf(() => this.core.body('execute', { path: { id: this.id }, json: { code, ...rest }, accept: NDJSON, signal }));
  }
}
