"""What the programs say to each other is as recorded: the fields of every message, the bytes of a sample, the numbers of the enums."""

import os
import subprocess

from google.protobuf import descriptor_pb2

import paddock
import signer as rig
from golden_kit import compare, parse, tables

PROTOS = ("wire.proto", "signer.proto")


def descriptors(workdir):
    out = workdir / "descriptors"
    subprocess.run(["protoc", f"--descriptor_set_out={out}", f"-I{paddock.ROOT / 'api'}", *PROTOS], check=True)
    return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def messages(inside, scope):
    for message in inside:
        name = f"{scope}.{message.name}"
        yield name, message
        yield from messages(message.nested_type, name)


def test_messages_and_frames(workdir):
    """As the codec of the programs encodes them (test/unit/wire/wire_golden.c); none of the definition is missing."""
    done = subprocess.run([paddock.ROOT / "build/release/test/unit/wire/wire_golden"], check=True, capture_output=True, text=True)
    found = parse(done.stdout)
    defined = {name for file in descriptors(workdir) for name, _ in messages(file.message_type, file.package)}
    assert defined == {title for title in found if not title.startswith("frame ")} and len(defined) > 200
    compare("wire", found)


def test_numbers(workdir):
    enums = {}
    for file in descriptors(workdir):
        inside = [(file.package, file.enum_type), *((name, message.enum_type) for name, message in messages(file.message_type, file.package))]
        enums |= {f"{scope}.{enum.name}": "\n".join(f"{value.number} {value.name}" for value in enum.value) for scope, each in inside for enum in each}
    compare("wire_numbers", enums)


def test_store_of_the_signer(tmp_path):
    """Its tables and columns, and the JSON of its audit; the rules in it are messages of the wire."""
    os.chmod(tmp_path, 0o711)
    signer = rig.Signer(tmp_path / "signer")
    try:
        signer.agent("dca", signer.wallet(), day=rig.ETHER, windows=[rig.pb.Window(days=31, from_minute=540, to_minute=1020)])
        signer.api.ask("REQUEST", **rig.request())
    finally:
        signer.kill()
    compare("store_signer", tables(tmp_path / "signer" / "signer.db"))
