"""The byte alphabet of byte-level BPE: every byte is spelt as one printable character.

Source: GPT-2's `bytes_to_unicode`: printable Latin-1 characters stand for themselves, the other bytes, in order, for
the characters from U+0100 on. A space is "Ġ", a newline "Ċ".
"""

PRINTABLE = frozenset([*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)])
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
CHARACTER_OF_BYTE = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + n) for n, byte in enumerate(OTHERS)}
BYTE_OF_CHARACTER = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}


def spelt_bytes(spelling: str) -> bytes:
    """The bytes that a token's spelling stands for; characters outside the alphabet stand for their UTF-8."""
    try:
        return bytes([BYTE_OF_CHARACTER[character] for character in spelling])
    except KeyError:
        return b"".join(
            bytes([BYTE_OF_CHARACTER[character]]) if character in BYTE_OF_CHARACTER else character.encode()
            for character in spelling
        )
