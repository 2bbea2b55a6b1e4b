// One call with a provider's own client: node run.js NAME, with AI_URL, AI_TOKEN and AI_MODULES set.
// Prints what the program would see, as JSON.
const path = require("path");
const { createRequire } = require("module");
const need = createRequire(path.join(process.env.AI_MODULES, "node_modules", "x.js"));
const url = process.env.AI_URL, token = process.env.AI_TOKEN;

const openai = () => {
  const { OpenAI } = need("openai");
  return new OpenAI({ baseURL: `${url}/api/openai/v1`, apiKey: token });
};
const anthropic = (name) => {
  const { Anthropic } = need(name);
  return new Anthropic({ baseURL: `${url}/api/anthropic`, apiKey: token });
};
const messages = [{ role: "user", content: "hello" }];
const ask = { model: "gpt-4o-mini", messages, max_tokens: 50 };
const claude = { model: "claude-3-haiku-20240307", messages, max_tokens: 50 };

async function collect(stream, text) {
  let all = "", chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    all += text(chunk) ?? "";
  }
  return { text: all, chunks };
}

const calls = {
  chat: async () => (await openai().chat.completions.create(ask)).choices[0].message.content,
  // Programs index choices[0] of every chunk: the one with the usage must not come unless it was asked for.
  chat_stream: async () => collect(await openai().chat.completions.create({ ...ask, stream: true }), (c) => c.choices[0].delta.content),
  chat_usage: async () => {
    const got = [];
    for await (const c of await openai().chat.completions.create({ ...ask, stream: true, stream_options: { include_usage: true } }))
      got.push(c.usage ?? null);
    return got.at(-1);
  },
  responses: async () => (await openai().responses.create({ model: "gpt-4o-mini", input: "hello", max_output_tokens: 50 })).output_text,
  responses_stream: async () =>
    collect(await openai().responses.create({ model: "gpt-4o-mini", input: "hello", stream: true }), (e) => e.type === "response.output_text.delta" ? e.delta : ""),
  embeddings: async () => (await openai().embeddings.create({ model: "text-embedding-3-small", input: "hello", encoding_format: "float" })).data[0].embedding.length,
  models: async () => (await openai().models.list()).data.map((m) => m.id),
  messages: async () => (await anthropic("@anthropic-ai/sdk").messages.create(claude)).content[0].text,
  messages_new: async () => (await anthropic("anthropic-new").messages.create(claude)).content[0].text,
  messages_stream: async () =>
    collect(await anthropic("@anthropic-ai/sdk").messages.create({ ...claude, stream: true }), (e) => e.type === "content_block_delta" ? e.delta.text : ""),
  refused: async () => openai().chat.completions.create({ ...ask, model: process.env.AI_MODEL }),
  refused_claude: async () => anthropic("@anthropic-ai/sdk").messages.create({ ...claude, model: process.env.AI_MODEL }),
};

calls[process.argv[2]]().then(
  (value) => console.log(JSON.stringify({ value })),
  (e) => console.log(JSON.stringify({ error: e.constructor.name, status: e.status, message: String(e.message), body: e.error ?? null })),
);
