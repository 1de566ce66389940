"""Small files in the formats of public data sets, written from their specifications."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

IDX_CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx(array: np.ndarray) -> bytes:
    code = IDX_CODES[np.dtype(array.dtype).str[1:]]
    head = struct.pack(">BBBB", 0, 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def idx_gz(array: np.ndarray) -> bytes:
    return gzip.compress(idx(array), mtime=0)  # the same array, the same file


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def cifar(images: np.ndarray, labels: np.ndarray) -> bytes:
    return b"".join(bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def xlsx(rows: list[list[object]]) -> bytes:
    """As Excel writes it: texts in a table of shared strings, numbers in the cells."""
    texts = sorted({cell for row in rows for cell in row if isinstance(cell, str)})
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    strings = f"<sst {space}>" + "".join(f"<si><t>{text}</t></si>" for text in texts) + "</sst>"
    lines = []
    for i, row in enumerate(rows, start=1):
        cells = []
        for j, cell in enumerate(row):
            place = f'r="{chr(65 + j)}{i}"'
            text = (
                f'<c {place} t="s"><v>{texts.index(cell)}</v></c>' if isinstance(cell, str) else f"<c {place}><v>{cell!r}</v></c>"
            )
            cells.append(text if cell is not None else f"<c {place}/>")
        lines.append(f'<row r="{i}">{"".join(cells)}</row>')
    sheet = f"<worksheet {space}><sheetData>{''.join(lines)}</sheetData></worksheet>"
    head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    return zipped({"xl/sharedStrings.xml": (head + strings).encode(), "xl/worksheets/sheet1.xml": (head + sheet).encode()})


def png(path: Path, array: np.ndarray) -> None:
    """Grey (height, width) or colours (height, width, 3)."""
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def put(root: Path, place: str, data: bytes) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
