# /v1/proxy/diagnose: whether the sandbox reaches a URL. Its connections go through the gate, which decides.
import http.client
import socket
import urllib.parse


def ask(parts):
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=10)
    try:
        connection.request("GET", parts.path or "/", headers={"Range": "bytes=0-0", "User-Agent": "paddock"})
        reply = connection.getresponse()
        return not (reply.status == 403 and reply.read(64).startswith(b"paddock: "))  # the gate's refusal
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main(url):
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        refuse("url must be one of http or https")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        address = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)[0][4][0]
    except OSError:
        address = None
    done({"url": url, "matched_mapping": None, "resolved_target": f"{address}:{port}" if address else None,
          "target_reachable": bool(address) and ask(parts), "route": "gate"})


run(main)
