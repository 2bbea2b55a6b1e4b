// @paddock/sandbox/tools: a sandbox as tools for agents. The frameworks are imported only when they are asked for.

import type { Sandbox } from '../sandbox.js';
import { type Parameters, sandboxTools, type Tool, type ToolOptions } from './definitions.js';

export { sandboxTools } from './definitions.js';
export type { Parameters, Tool, ToolName, ToolOptions } from './definitions.js';

async function call(tools: Tool[], name: string, args: unknown, signal?: AbortSignal): Promise<string> {
  const tool = tools.find((one) => one.name === name);
  if (!tool) return `error: there is no tool ${name}; there are ${tools.map((one) => one.name).join(', ')}`;
  return await tool.execute(args as Record<string, unknown>, { signal });
}

/** The arguments as a model wrote them: text that should be JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return undefined; // which `execute` tells the model
  }
}

// ---- OpenAI -------------------------------------------------------------------------------------------------------

export interface ChatTool {
  type: 'function';
  function: { name: string; description: string; parameters: Parameters };
}
export interface ChatToolCall {
  id: string;
  type: string;
  function?: { name: string; arguments: string };
}
export interface ChatToolMessage {
  role: 'tool';
  tool_call_id: string;
  content: string;
}
export interface ResponseTool {
  type: 'function';
  name: string;
  description: string;
  parameters: Parameters;
  strict: false;
}
export interface ResponseItem {
  type: string;
  call_id?: string;
  name?: string;
  arguments?: string;
}
export interface ResponseOutput {
  type: 'function_call_output';
  call_id: string;
  output: string;
}

/** For the SDK of OpenAI. `tools` and `run` are for chat completions, `responseTools` and `runResponse` for responses. */
export interface OpenAITools {
  tools: ChatTool[];
  responseTools: ResponseTool[];
  /** Does what a message asks for; the result goes behind that message. */
  run(message: { tool_calls?: readonly ChatToolCall[] | null }, options?: { signal?: AbortSignal }): Promise<ChatToolMessage[]>;
  /** Does what the output of a response asks for; the result is input of the next. */
  runResponse(output: readonly ResponseItem[], options?: { signal?: AbortSignal }): Promise<ResponseOutput[]>;
}

export function openaiTools(sb: Sandbox, options: ToolOptions = {}): OpenAITools {
  const tools = sandboxTools(sb, options);
  return {
    tools: tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } })),
    responseTools: tools.map(({ name, description, parameters }) => ({ type: 'function', name, description, parameters, strict: false })),
    async run(message, { signal } = {}) {
      const done: ChatToolMessage[] = [];
      for (const { id, function: wanted } of message.tool_calls ?? [])
        if (wanted) done.push({ role: 'tool', tool_call_id: id, content: await call(tools, wanted.name, parsed(wanted.arguments), signal) });
      return done;
    },
    async runResponse(output, { signal } = {}) {
      const done: ResponseOutput[] = [];
      for (const { type, call_id, name, arguments: args } of output)
        if (type === 'function_call' && call_id && name)
          done.push({ type: 'function_call_output', call_id, output: await call(tools, name, parsed(args ?? ''), signal) });
      return done;
    },
  };
}

// ---- Anthropic ----------------------------------------------------------------------------------------------------

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: Parameters;
}
export interface AnthropicBlock {
  type: string;
  id?: string;
  name?: string;
  input?: unknown;
}
export interface AnthropicResult {
  type: 'tool_result';
  tool_use_id: string;
  content: string;
}

/** For the SDK of Anthropic. */
export interface AnthropicTools {
  tools: AnthropicTool[];
  /** Does what the content of a message asks for; the result is the content of the next user message. */
  run(content: readonly AnthropicBlock[], options?: { signal?: AbortSignal }): Promise<AnthropicResult[]>;
}

export function anthropicTools(sb: Sandbox, options: ToolOptions = {}): AnthropicTools {
  const tools = sandboxTools(sb, options);
  return {
    tools: tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
    async run(content, { signal } = {}) {
      const done: AnthropicResult[] = [];
      for (const { type, id, name, input } of content)
        if (type === 'tool_use' && id && name) done.push({ type: 'tool_result', tool_use_id: id, content: await call(tools, name, input, signal) });
      return done;
    },
  };
}

// ---- frameworks ---------------------------------------------------------------------------------------------------

/** Imports a framework that the user has installed. The name is not a literal, so that no bundler looks for it. */
async function framework<T>(name: string): Promise<T> {
  try {
    return (await import(name)) as T;
  } catch (e) {
    throw new Error(`${name} is not installed: npm install ${name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/')}`, { cause: e });
  }
}

/** For the OpenAI Agents SDK: `new Agent({ tools: await agentsTools(sb) })`. */
export async function agentsTools(sb: Sandbox, options: ToolOptions = {}): Promise<any[]> {
  const { tool } = await framework<{ tool(how: object): unknown }>('@openai/agents');
  return sandboxTools(sb, options).map(({ name, description, parameters, execute }) =>
    tool({ name, description, parameters, strict: false, execute: (args: Record<string, unknown>) => execute(args) }),
  );
}

/** For LangChain: `createReactAgent({ llm, tools: await langchainTools(sb) })`. */
export async function langchainTools(sb: Sandbox, options: ToolOptions = {}): Promise<any[]> {
  type Run = (args: Record<string, unknown>, config?: { signal?: AbortSignal }) => Promise<string>;
  const { tool } = await framework<{ tool(run: Run, how: object): unknown }>('@langchain/core/tools');
  return sandboxTools(sb, options).map(({ name, description, parameters, execute }) =>
    tool((args, config) => execute(args, { signal: config?.signal }), { name, description, schema: parameters }),
  );
}

/** For the Vercel AI SDK: `generateText({ model, tools: await vercelTools(sb) })`. */
export async function vercelTools(sb: Sandbox, options: ToolOptions = {}): Promise<Record<string, any>> {
  const { tool, jsonSchema } = await framework<{ tool(how: object): unknown; jsonSchema(schema: object): unknown }>('ai');
  const made: Record<string, unknown> = {};
  for (const { name, description, parameters, execute } of sandboxTools(sb, options))
    made[name] = tool({
      description, inputSchema: jsonSchema(parameters),
      execute: (args: Record<string, unknown>, { abortSignal }: { abortSignal?: AbortSignal } = {}) => execute(args, { signal: abortSignal }),
    });
  return made;
}
