#!/usr/bin/python3
"""The other end of test_pb_oracle: the official protobuf implementation.

Messages go over stdin and stdout as a u32 length (little-endian) and the bytes.
First COUNT random messages are sent; each must come back re-encoded, byte for
byte. Then COUNT messages come in; each is parsed and sent back re-encoded.
"""
import random
import struct
import subprocess
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message_factory import MessageFactory

PROTO, COUNT, SEED = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def load():
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"--descriptor_set_out={out.name}", f"--proto_path={PROTO.rpartition('/')[0]}",
                        PROTO], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("sample.All"))


def number(rng, low, high):
    return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(max(low, -300), min(high, 300))])


def scalar(rng, field):
    t = field.type
    if t in (field.TYPE_UINT32,):
        return number(rng, 0, 2**32 - 1)
    if t == field.TYPE_UINT64:
        return number(rng, 0, 2**64 - 1)
    if t in (field.TYPE_INT32, field.TYPE_SINT32):
        return number(rng, -2**31, 2**31 - 1)
    if t in (field.TYPE_INT64, field.TYPE_SINT64):
        return number(rng, -2**63, 2**63 - 1)
    if t == field.TYPE_BOOL:
        return rng.random() < 0.5
    if t == field.TYPE_ENUM:
        return rng.choice(list(field.enum_type.values_by_number))
    if t == field.TYPE_DOUBLE:
        return rng.choice([0.0, -0.0, 1.5, -1e300, float("inf"), rng.random()])
    size = rng.choice([0, 1, 5, 127, 128, 300])
    if t == field.TYPE_STRING:
        return "".join(rng.choice("aé€😀\n") for _ in range(size))
    return rng.randbytes(size)


def fill(rng, message, depth):
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4:
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            for i in range(rng.randint(0, 1)):  # one entry at most: their order is not defined
                # not 0: the official encoder writes it in a map, and only there
                getattr(message, field.name)[f"k{i}"] = rng.randint(1, 2**32 - 1)
        elif field.label == field.LABEL_REPEATED:
            for _ in range(rng.choice([1, 2, 40])):
                if field.message_type:
                    fill(rng, getattr(message, field.name).add(), depth + 1)
                else:
                    getattr(message, field.name).append(scalar(rng, field))
        elif field.message_type:
            if depth < 6:
                sub = getattr(message, field.name)
                sub.SetInParent()
                fill(rng, sub, depth + 1)
        else:
            setattr(message, field.name, scalar(rng, field))


def send(data):
    sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)
    sys.stdout.buffer.flush()


def receive():
    size, = struct.unpack("<I", sys.stdin.buffer.read(4))
    return sys.stdin.buffer.read(size)


def main():
    rng, cls = random.Random(SEED), load()
    for i in range(COUNT):
        message = cls()
        fill(rng, message, 0)
        data = message.SerializeToString(deterministic=True)
        send(data)
        back = receive()
        if back != data:
            again = cls.FromString(back)
            sys.exit(f"message {i} (seed {SEED}) came back different, equal as a message: {again == message}")
    for _ in range(COUNT):
        data = receive()
        send(cls.FromString(data).SerializeToString(deterministic=True))


main()
