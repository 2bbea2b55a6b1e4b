// A model that follows a script, behind the APIs of OpenAI (chat completions and responses) and Anthropic. Agents and
// examples talk to it as to a real one.
//
// A script is a list of steps: {tool, args} asks for a tool, {text} is the end. The step of a request is the number of
// tools that the conversation has asked for already. `seen` has the results of the tools, as the model got them.
import { createServer } from 'node:http';

const calledIn = {
  chat: (body) => body.messages.filter((one) => one.role === 'tool').map((one) => textOf(one.content)),
  responses: (body) => [body.input].flat().filter((one) => one.type === 'function_call_output').map((one) => textOf(one.output)),
  messages: (body) => body.messages.flatMap((one) => (Array.isArray(one.content) ? one.content : []))
    .filter((one) => one.type === 'tool_result').map((one) => textOf(one.content)),
};

function textOf(content) {
  return typeof content === 'string' ? content : [content].flat().map((one) => one.text ?? '').join('');
}

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };

const answers = {
  chat: ({ tool, args, text }, id, model) => ({
    id: `chat-${id}`, object: 'chat.completion', created: 1, model, usage,
    choices: [{
      index: 0, finish_reason: tool ? 'tool_calls' : 'stop', logprobs: null,
      message: {
        role: 'assistant', content: text ?? null, refusal: null,
        ...(tool ? { tool_calls: [{ id: `call-${id}`, type: 'function', function: { name: tool, arguments: JSON.stringify(args) } }] } : {}),
      },
    }],
  }),
  responses: ({ tool, args, text }, id, model) => ({
    id: `resp-${id}`, object: 'response', created_at: 1, status: 'completed', model, error: null, incomplete_details: null, instructions: null,
    parallel_tool_calls: true, tools: [], tool_choice: 'auto', metadata: {},
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
    output: [tool
      ? { type: 'function_call', id: `fc-${id}`, call_id: `call-${id}`, name: tool, arguments: JSON.stringify(args), status: 'completed' }
      : { type: 'message', id: `msg-${id}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] }],
  }),
  messages: ({ tool, args, text }, id, model) => ({
    id: `msg-${id}`, type: 'message', role: 'assistant', model, stop_sequence: null, stop_reason: tool ? 'tool_use' : 'end_turn',
    usage: { input_tokens: 1, output_tokens: 1 },
    content: [tool ? { type: 'tool_use', id: `toolu-${id}`, name: tool, input: args } : { type: 'text', text }],
  }),
};

export async function scriptedModel(script) {
  const seen = [], asked = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (piece) => { text += piece; }).on('end', () => {
      const body = JSON.parse(text), kind = /chat\/completions/.test(request.url) ? 'chat' : /responses/.test(request.url) ? 'responses' : 'messages';
      const results = calledIn[kind](body), step = script[results.length];
      asked.push(body);
      seen.splice(0, seen.length, ...results);
      const answer = step ? answers[kind](step, results.length, body.model) : { error: { message: 'the script is over', type: 'invalid_request_error' } };
      response.writeHead(step ? 200 : 400, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { seen, asked, url: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections?.(), server.close()) };
}
