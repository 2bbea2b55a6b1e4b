"""agentbox's service over gRPC: a command beside the same one by REST, and the speed of a streamed one."""

import time

import grpc

from common import Ours
from remember import add_times

GB = 1 << 30
SERVICE = "/sandbox.v1.SandboxService/"


def varint(value):
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def message(session, command):
    """ExecRequest and ExecStreamRequest begin alike: two strings."""
    parts = [session.encode(), command.encode()]
    return b"".join(bytes([number << 3 | 2]) + varint(len(part)) + part for number, part in enumerate(parts, 1))


def clock(call):
    begun = time.monotonic()
    call()
    return (time.monotonic() - begun) * 1000


def measure(work, book, options, stack):
    ours, rounds = Ours(work), 100 if options.quick else 1000
    stack.callback(ours.daemon.finish)
    daemon = ours.daemon.start()
    client = daemon.client()
    box = client.create(name="bench-agentbox", limits={"memory_mb": 2048})
    channel = grpc.insecure_channel(f"{daemon.host}:{daemon.port}", [("grpc.max_receive_message_length", -1)])
    stack.callback(channel.close)
    metadata = [("authorization", f"Bearer {daemon.key}")]
    unary, wanted = channel.unary_unary(SERVICE + "Exec"), message("bench-agentbox", "true")
    calls = {"gRPC": lambda: unary(wanted, metadata=metadata), "REST": lambda: client.post(f"{box.path}/exec", {"command": "true"})}
    times = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(clock(call))
    for name, values in times.items():
        add_times(book, f"agentbox: 'true' by {name}", values)
    middle = {name: sorted(values)[rounds // 2] for name, values in times.items()}
    book.add("agentbox: gRPC above REST, p50", middle["gRPC"] - middle["REST"], "ms", 1)

    size, got = GB // 8 if options.quick else GB, 0
    begun = time.monotonic()
    for piece in channel.unary_stream(SERVICE + "ExecStream")(message("bench-agentbox", f"head -c {size} /dev/zero"), metadata=metadata):
        got += len(piece)
    if got < size:
        raise SystemExit(f"{got} of {size} bytes came")
    book.add("agentbox: ExecStream of 1 GB", got / (time.monotonic() - begun) / 1e6, "MB/s", 300, least=True)
    daemon.stop()
