"""What the owner of the machine says to the signer, for the walk: owner.py SOCKET CALL FIELDS, where FIELDS is JSON by the names of
api/signer.proto with bytes as 0x and hexadecimal digits. Prints the answer the same way."""

import base64
import json
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "it"))

import signer  # noqa: E402
from google.protobuf import json_format  # noqa: E402


def plain(value):
    """With base64, which is how protobuf writes bytes in JSON, for what begins with 0x."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, str) and value.startswith("0x"):
        return base64.b64encode(bytes.fromhex(value[2:])).decode()
    return value


def main(place, name, fields):
    end = socket.socket(socket.AF_UNIX)
    end.connect(place)
    message = json_format.ParseDict(plain(json.loads(fields)), signer.CALLS[name][0]())
    peer = signer.Peer(end)
    answer = peer.ask(name, **{field.name: value for field, value in message.ListFields()})
    print(json_format.MessageToJson(answer))


main(*sys.argv[1:])
