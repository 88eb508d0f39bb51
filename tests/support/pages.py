"""Small page images and PDF files, made from nothing."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

from PIL import Image

_PAD = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def png(colour: tuple[int, int, int] = (255, 255, 255), size: tuple[int, int] = (8, 6)) -> bytes:
    """A PNG file of one colour."""
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, "PNG")
    return content.getvalue()


def pdf(pages: Sequence[Sequence[str]], size: tuple[int, int] = (200, 100), password: str | None = None) -> bytes:
    """A PDF file with a page for each sequence of ASCII lines; one without lines has no text.

    A password makes it one that cannot be opened without: what it protects is not really encrypted.
    """
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = " ".join(f"1 0 0 1 10 {size[1] - 20 * (at + 1)} Tm ({line}) Tj" for at, line in enumerate(lines))
        stream = f"BT /F1 12 Tf {shown} ET" if lines else "0 0 10 10 re f"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size[0]} {size[1]}] /Contents {len(objects)} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>"
    trailer = ""
    if password is not None:
        objects.append(_encryption(password))
        trailer = f" /Encrypt {len(objects)} 0 R /ID [<{'00' * 16}> <{'00' * 16}>]"
    return _file(objects, trailer)


def _file(objects: Sequence[str], trailer: str) -> bytes:
    content = b"%PDF-1.4\n"
    places = []
    for number, text in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    start = len(content)
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    content += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    return content + f"trailer << /Size {len(objects) + 1} /Root 1 0 R{trailer} >>\nstartxref\n{start}\n%%EOF".encode()


def _encryption(password: str) -> str:
    """The dictionary of the standard security handler, revision 2 (PDF 1.4, section 3.5.2)."""
    user = (password.encode() + _PAD)[:32]
    owner = _rc4(hashlib.md5(user).digest()[:5], user)
    key = hashlib.md5(user + owner + (-4).to_bytes(4, "little", signed=True) + bytes(16)).digest()[:5]
    return f"<< /Filter /Standard /V 1 /R 2 /P -4 /O <{owner.hex()}> /U <{_rc4(key, _PAD).hex()}> >>"


def _rc4(key: bytes, text: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    out, i, j = [], 0, 0
    for byte in text:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
