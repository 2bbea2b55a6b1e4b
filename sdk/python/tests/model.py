"""A model that follows a script, behind the protocols of OpenAI (chat completions and responses) and Anthropic (messages).

A step of the script is a text, a call of a tool `(name, arguments)`, a list of such calls, or a function that makes one of
these of the request. Every request is kept, with what it says about earlier calls (`results`).
"""

import http.server
import json
import threading
import time


class Model:
    def __init__(self, *steps):
        self.steps, self.seen, self.lock = list(steps), [], threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def environment(self):
        """What points the providers' clients here."""
        return {"OPENAI_BASE_URL": f"{self.url}/v1", "OPENAI_API_KEY": "sk-scripted", "ANTHROPIC_BASE_URL": self.url, "ANTHROPIC_API_KEY": "sk-ant-scripted",
                "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}

    def results(self):
        """What the tools said, in order, as the last request has it."""
        return results_of(self.seen[-1])

    def step(self, request):
        with self.lock:
            self.seen.append(request)
            step = self.steps.pop(0) if self.steps else "the script is over"
        step = step(request) if callable(step) else step
        return step if isinstance(step, (str, list)) else [step]

    def handler(self):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                shapes = {"/v1/chat/completions": chat, "/v1/responses": response, "/v1/messages": message}
                shape = shapes.get(self.path.partition("?")[0])
                if shape is None or request.get("stream"):
                    body, status = {"error": {"message": f"not scripted: {self.path}"}}, 400
                else:
                    body, status = shape(model.step(request), request), 200
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        return Handler


def results_of(request):
    found = []
    for item in request.get("messages", []) + (request.get("input") if isinstance(request.get("input"), list) else []):
        if item.get("role") == "tool":
            found.append(plain(item["content"]))
        elif item.get("type") == "function_call_output":
            found.append(plain(item["output"]))
        elif isinstance(item.get("content"), list):
            found += [plain(block["content"]) for block in item["content"] if block.get("type") == "tool_result"]
    return found


def plain(content):
    return content if isinstance(content, str) else "".join(block.get("text", f"[{block['type']}]") for block in content)


def calls(step):
    return [(f"call_{index}_{time.monotonic_ns()}", name, arguments) for index, (name, arguments) in enumerate(step)]


def chat(step, request):
    said = {"role": "assistant", "content": step if isinstance(step, str) else None}
    if not isinstance(step, str):
        said["tool_calls"] = [{"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}} for id, name, arguments in calls(step)]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": request["model"], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            "choices": [{"index": 0, "message": said, "finish_reason": "stop" if isinstance(step, str) else "tool_calls", "logprobs": None}]}


def response(step, request):
    if isinstance(step, str):
        output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": step, "annotations": []}]}]
    else:
        output = [{"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
                  for id, name, arguments in calls(step)]
    return {"id": "r", "object": "response", "created_at": 1, "model": request["model"], "status": "completed", "output": output, "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1,
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 0}}}


def message(step, request):
    if isinstance(step, str):
        content = [{"type": "text", "text": step}]
    else:
        content = [{"type": "tool_use", "id": id, "name": name, "input": arguments} for id, name, arguments in calls(step)]
    return {"id": "m", "type": "message", "role": "assistant", "model": request["model"], "content": content, "stop_sequence": None,
            "stop_reason": "end_turn" if isinstance(step, str) else "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1}}
