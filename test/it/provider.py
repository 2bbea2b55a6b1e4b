"""A provider of models, over TLS with an authority of its own: what OpenAI and Anthropic answer.

Every request is kept: method, path, headers, body. A request may be held (`hold`) after its
first event until the test lets it go, or until the gateway hangs up. With `echo` answers quote the
key, in a header and in the text; with "bytes" every byte of a stream is a chunk and a write of its own.
"""

import http.server
import json
import ssl
import subprocess
import threading

KEYS = {"openai": "sk-openai-7f3c9d", "anthropic": "sk-ant-51b0aa"}
CHUNKS = ["Hel", "lo ", "there"]
VECTOR = [0.5] * 8


def certificates(place):
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=A test's own authority", "-keyout", place / "ca.key", "-out", place / "ca.pem")
    openssl("req", *curve, "-subj", "/CN=provider", "-keyout", place / "site.key", "-out", place / "site.csr")
    (place / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", place / "site.csr", "-CA", place / "ca.pem", "-CAkey", place / "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", place / "names", "-out", place / "site.pem")


class Provider:
    def __init__(self, place):
        certificates(place)
        self.authority = place / "ca.pem"
        self.seen, self.go, self.begun, self.hung_up = [], threading.Event(), threading.Event(), threading.Event()
        self.hold, self.accepts, self.echo = False, set(KEYS.values()), None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place / "site.pem", place / "site.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.go.set()
        self.server.shutdown()
        self.server.server_close()

    def take(self):
        seen, self.seen = self.seen, []
        return seen

    def handler(self):
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.answer(None)

            def do_POST(self):
                self.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def answer(self, body):
                provider.seen.append({"method": self.command, "path": self.path, "body": body,
                                      "headers": {k.lower(): v for k, v in self.headers.items()}})
                anthropic = "x-api-key" in self.headers
                key = self.headers["x-api-key"] if anthropic else self.headers.get("authorization", "").removeprefix("Bearer ")
                quoted = self.quoted = [key] if provider.echo else []
                if key not in provider.accepts:
                    self.json(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
                elif body is None:
                    self.json(200, {"object": "list", "data": [{"id": "gpt-4o-mini", "object": "model"}]})
                elif body.get("model") == "gpt-4o-mini-2024-07-18":
                    self.json(500, {"error": {"message": "out of order", "type": "server_error"}})
                elif body.get("stream"):
                    self.stream(events(self.path, body, [*CHUNKS, *quoted]))
                else:
                    self.json(200, whole(self.path, "".join([*CHUNKS, *quoted])))

            def json(self, status, doc):
                text = json.dumps(doc).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(text)))
                self.send_header("set-cookie", "a=b")
                self.send_header("openai-organization", "secret-org")
                self.send_header("x-request-id", "req_1")
                self.send_header("x-quoted", "".join(self.quoted))
                self._headers_buffer.append(b"\r\n" + text)  # head and body in one piece
                self.flush_headers()

            def stream(self, pieces):
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.send_header("x-quoted", "".join(self.quoted))
                self.end_headers()
                try:
                    for i, piece in enumerate(pieces):
                        if i == 2 and provider.hold:
                            provider.begun.set()
                            self.wait()
                        if provider.echo == "bytes":
                            for byte in b"".join(b"1\r\n%c\r\n" % byte for byte in piece):
                                self.wfile.write(b"%c" % byte)
                            continue
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    provider.hung_up.set()

            def wait(self):
                """Until the test says go on, or the other side is gone."""
                self.connection.settimeout(0.05)
                while not provider.go.is_set():
                    try:
                        if not self.connection.recv(1):
                            raise ConnectionResetError
                    except (TimeoutError, ssl.SSLWantReadError):
                        continue
                self.connection.settimeout(None)

        return Handler


def whole(path, said="".join(CHUNKS)):
    if "embeddings" in path:
        return {"object": "list", "model": "e", "data": [{"object": "embedding", "index": 0, "embedding": VECTOR}],
                "usage": {"prompt_tokens": 8, "total_tokens": 8}}
    if "responses" in path:
        return {"id": "r", "object": "response", "status": "completed",
                "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed",
                            "content": [{"type": "output_text", "text": said, "annotations": []}]}],
                "usage": {"input_tokens": 40, "output_tokens": 20, "total_tokens": 60, "input_tokens_details": {"cached_tokens": 10}}}
    if "messages" in path:
        return {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [{"type": "text", "text": said}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 11, "output_tokens": 22, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}}
    return {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": said},
                                                                "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150, "prompt_tokens_details": {"cached_tokens": 40}}}


def events(path, body, texts=CHUNKS):
    def data(doc, name=None):
        return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(doc).encode() + b"\n\n"

    if "messages" in path:
        usage = {"input_tokens": 11, "output_tokens": 1, "cache_read_input_tokens": 3}
        yield data({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c",
                                                         "usage": usage}}, "message_start")
        yield data({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, "content_block_start")
        for text in texts:
            yield data({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}, "content_block_delta")
        for so_far in (10, 22):
            yield data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": so_far}}, "message_delta")
        yield data({"type": "message_stop"}, "message_stop")
    elif "responses" in path:
        for text in texts:
            yield data({"type": "response.output_text.delta", "delta": text, "item_id": "m", "output_index": 0, "content_index": 0},
                       "response.output_text.delta")
        yield data({"type": "response.completed", "response": whole(path)}, "response.completed")
    else:
        wanted = (body.get("stream_options") or {}).get("include_usage")
        for text in texts:
            yield data({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}}],
                        **({"usage": None} if wanted else {})})
        if wanted:
            yield data({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": whole(path)["usage"]})
        yield b"data: [DONE]\n\n"
