"""Small pictures of picked images, as PNG in base64: a record can hold them, and a page can show them."""

import base64
import struct
import zlib

from torch import Tensor

MOST = 25  # pictures per round


def thumbnails(images: Tensor) -> list[str]:
    """The first images [n, channels, height, width] in [0, 1], each as a PNG in base64."""
    return [base64.b64encode(png(image)).decode() for image in images[:MOST]]


def png(image: Tensor) -> bytes:
    """An image [1 or 3, height, width] in [0, 1] as a file: 8 bits per channel, no filter."""
    channels, height, width = image.shape
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).reshape(height, -1).numpy()
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
