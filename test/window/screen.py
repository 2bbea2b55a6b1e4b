"""What Xvfb shows: its frame buffer (`-fbdir`) is a file in the format of xwd(1)."""

import struct
import zlib
from pathlib import Path

HEADER = struct.Struct(">25I")


class Picture:
    """Pixels as bytes of RGB, a row after the other."""

    def __init__(self, width, height, rows):
        self.width, self.height, self.rows = width, height, rows

    def colours(self):
        return {row[at:at + 3] for row in self.rows for at in range(0, len(row), 3)}

    def write_png(self, path):
        raw = b"".join(b"\0" + row for row in self.rows)
        chunks = ((b"IHDR", struct.pack(">2I5B", self.width, self.height, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
        Path(path).write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks))


def shoot(xwd, left=0, top=0, width=None, height=None):
    """The screen, or a part of it, as it is now."""
    data = Path(xwd).read_bytes()
    fields = HEADER.unpack_from(data)
    header_size, full_width, full_height, bits, stride, colours = fields[0], fields[4], fields[5], fields[11], fields[12], fields[19]
    assert bits == 32, fields
    start = header_size + colours * 12
    width, height = width or full_width - left, height or full_height - top
    rows = []
    for y in range(top, top + height):
        row = data[start + y * stride + left * 4:start + y * stride + (left + width) * 4]
        rgb = bytearray(width * 3)
        rgb[0::3], rgb[1::3], rgb[2::3] = row[2::4], row[1::4], row[0::4]
        rows.append(bytes(rgb))
    return Picture(width, height, rows)
