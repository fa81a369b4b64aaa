"""The hashes of shingles, by which a text is known that is not stored.

They are made side by side: the text is one large number, of 32 bits a letter. From the hashes of all
stretches of n letters, one multiplication and one addition make those of all stretches of 2 n, so that
shingles of 24 letters take five such steps, each a few calls into C.
"""

from __future__ import annotations

from codecs import utf_32_be_decode, utf_32_le_decode, utf_32_le_encode
from functools import cache, lru_cache

DIGITS = 5  # of a hash: 20 bits are enough to tell passages apart, too few to tell the words
_HASH = b"\xff\xff\x0f\x00"  # the bits of a hash among those of a letter
_LETTER = 8 * len(_HASH)
_KEPT_LETTERS = 2_000  # of a text whose hashes are kept: at most some ten megabytes in all
# Odd and below 128, so that nothing is carried into the next letter's bits; distinct, so that order counts.
_FACTORS = (113, 107, 103, 101, 97, 89, 83)


def shingle_hashes(letters: str, size: int) -> str:
    """The hash of each shingle of that many letters, by where it starts; a hash is one character."""
    return (_kept_hashes if len(letters) <= _KEPT_LETTERS else _hashes)(letters, size)


def _hashes(letters: str, size: int) -> str:
    mask, steps = _plan(len(letters).bit_length(), size)
    hashes, joined = int.from_bytes(utf_32_le_encode(letters)[0], "little"), 0
    for factor, joins, doubles in steps:
        if joins is not None:
            joined = (joined * factor + (hashes >> joins) if joins else hashes) & mask
        if doubles is not None:
            hashes = (hashes * factor + (hashes >> doubles)) & mask
    whole = 4 * max(0, len(letters) - size + 1)  # what follows are shingles that the end cuts short
    return utf_32_le_decode(joined.to_bytes(4 * len(letters), "little")[:whole], "surrogatepass")[0]


_kept_hashes = lru_cache(maxsize=1024)(_hashes)  # the queries of a document have hits in common


@cache
def _plan(bits: int, size: int) -> tuple[int, list[tuple[int, int | None, int | None]]]:
    """How hashes are made in texts of fewer than 2 ** bits letters: their bits, and the steps.

    A step has a factor, and how far on the hashes are that are joined to the ones so far, if any are, and
    those that double the length of all.
    """
    steps: list[tuple[int, int | None, int | None]] = []
    done = 0
    for level in range(size.bit_length()):
        width = size & 1 << level
        joins = _LETTER * done if width else None
        done += width
        steps.append((_FACTORS[level], joins, _LETTER << level if done < size else None))
    return int.from_bytes(_HASH * 2**bits, "little"), steps


@lru_cache(maxsize=1024)
def hash_codes(digits: str) -> str:
    """Hashes of five hexadecimal digits each, as `shingle_hashes` has them."""
    codes = ["000" + digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
    return utf_32_be_decode(bytes.fromhex("".join(codes)), "surrogatepass")[0]
