"""Files of tensors in the safetensors format: 8 bytes with the length of a JSON header,
little-endian; the header, {name: {"dtype", "shape", "data_offsets"}}; the numbers."""

import ctypes
import hashlib
import json
import math
import mmap
import os
import struct

import torch

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
MAX_HEADER_BYTES = 100 << 20  # as the format's own library has it


class FormatError(ValueError):
    """The file is not what it should be; the message names it."""


def _header(entries):
    """The first bytes of a file of {name: (shape, dtype)}, and where it ends."""
    fields, at = {}, 0
    for name, (shape, dtype) in entries.items():
        size = math.prod(shape) * torch.empty((), dtype=dtype).element_size()
        fields[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(fields, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, 8 + len(text) + at


def file_bytes(entries):
    """Bytes of the file that `write` makes of tensors of {name: (shape, dtype)}."""
    return _header(entries)[1]


def write(path, tensors):
    """Writes {name: tensor}, in this order, so that the file is whole or not there. Returns
    the SHA-256 of the file's bytes, in hexadecimal digits."""
    new = f"{path}.new"
    header, _ = _header({name: (t.shape, t.dtype) for name, t in tensors.items()})
    digest = hashlib.sha256(header)
    with open(new, "wb") as file:
        file.write(header)
        for tensor in tensors.values():
            _write_numbers(file, digest, tensor.detach().to("cpu").contiguous())
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)
    return digest.hexdigest()


def _write_numbers(file, digest, tensor):
    size = tensor.numel() * tensor.element_size()
    if size:
        numbers = (ctypes.c_char * size).from_address(tensor.data_ptr())
        digest.update(numbers)
        file.write(numbers)


def read(path, sha256=None):
    """{name: tensor}. The numbers stay in the file until they are looked at, and must not
    be changed. With `sha256`, as `write` returned it, all bytes are read and compared first.
    Raises FormatError and OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise FormatError(f"{path}: has {size} bytes")
        # Private: torch wants memory that it may write to.
        content = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise FormatError(f"{path}: is damaged: its SHA-256 is not that of what was written")
    length = struct.unpack("<Q", content[:8])[0]
    if length > min(size - 8, MAX_HEADER_BYTES):
        raise FormatError(f"{path}: header of {length} bytes in a file of {size}")
    try:
        fields = json.loads(content[8 : 8 + length])
        fields.pop("__metadata__", None)
        return {name: _view(content, 8 + length, field) for name, field in fields.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"{path}: {error}") from None


def _view(content, base, field):
    dtype, shape = _DTYPES[field["dtype"]], field["shape"]
    start, stop = field["data_offsets"]
    count = math.prod(shape)
    if stop - start != count * torch.empty((), dtype=dtype).element_size():
        raise FormatError(f"data_offsets {start}..{stop} do not fit the shape {shape}")
    if base + stop > len(content):
        raise FormatError(f"ends at byte {len(content)}, a tensor at {base + stop}")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(content, dtype=dtype, count=count, offset=base + start).view(
        shape
    )
