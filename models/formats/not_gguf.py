"""What a file is when it is not a GGUF file: the things people really download instead."""

BEGINNINGS = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file it points to; fetch that (git lfs pull)"),
    (b"PK\x03\x04", "a zip archive (a PyTorch checkpoint or a wheel, perhaps)"),
    (b"\x1f\x8b", "gzip-compressed; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed; unpack it first"),
    (b"\xfd7zXZ", "xz-compressed; unpack it first"),
    (b"\x80\x02", "a Python pickle (an old PyTorch checkpoint)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"FUGG", "a GGUF file with its bytes swapped"),
    (b"lmgg", "in the GGML format that came before GGUF; convert it"),
    (b"fmgg", "in the GGMF format that came before GGUF; convert it"),
    (b"tjgg", "in the GGJT format that came before GGUF; convert it"),
)
PAGES = (b"<!doctype html", b"<html", b"<?xml", b"<head")
HEAD_BYTES = 512
"""As much of the file as describe() wants to see."""


def describe(head: bytes, size: int) -> str:
    """What a file of `size` bytes that begins with `head` is, as the end of "it is ..."."""
    if not size:
        return "empty"
    if b"GGUF".startswith(head[:4]):
        return f"cut short after {size} bytes"
    for beginning, what in BEGINNINGS:
        if head.startswith(beginning):
            return what
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith(PAGES):
        return "a web page; perhaps a login or an error page was saved in its place"
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return "a safetensors file"
    if text.startswith(b"{"):
        return "a JSON document"
    if not any(head):
        return "nothing but zeros at its beginning: a download that did not finish"
    return f"something else; it begins with the bytes {head[:8].hex(' ')}"
