"""QR codes of short texts, as SVG: byte mode, correction level L, versions 1 to 6. Pure.

The terms are those of ISO/IEC 18004: modules are dark or light, codewords are bytes.
"""

from collections.abc import Iterator

from markupsafe import Markup

# By version: codewords of data, of correction in each block, and how many blocks.
_SIZES = {1: (19, 7, 1), 2: (34, 10, 1), 3: (55, 15, 1), 4: (80, 20, 1), 5: (108, 26, 1), 6: (136, 18, 2)}
_FORMAT = 0b111011111000100  # level L with mask 0, already corrected and masked
_QUIET = 2  # light modules around it
Matrix = list[list[bool | None]]


def qr_svg(text: str) -> Markup | None:
    """A QR code; None for a text that is too long."""
    matrix = qr_matrix(text)
    if matrix is None:
        return None
    size = len(matrix) + 2 * _QUIET
    path = "".join(
        f"M{x + _QUIET} {y + _QUIET}h1v1h-1z"
        for y, row in enumerate(matrix)
        for x, is_dark in enumerate(row)
        if is_dark
    )
    return Markup('<svg viewBox="0 0 {0} {0}" aria-hidden="true"><path d="{1}"/></svg>').format(size, path)


def qr_matrix(text: str) -> list[list[bool]] | None:
    """The modules, row by row; True is dark."""
    data = text.encode()
    version = next((each for each, (room, _, _) in _SIZES.items() if len(data) + 2 <= room), None)
    if version is None:
        return None
    size = 17 + 4 * version
    matrix: Matrix = [[None] * size for _ in range(size)]
    _draw_patterns(matrix, version)
    _draw_format(matrix)
    bits = _bits(_interleave(_fill(data, _SIZES[version][0]), version))
    for x, y in _free_places(matrix):
        matrix[y][x] = next(bits, False) ^ ((x + y) % 2 == 0)
    return [[bool(module) for module in row] for row in matrix]


def _fill(data: bytes, room: int) -> bytes:
    """The codewords of data: mode and length, the text, an end, and padding."""
    bits = "0100" + f"{len(data):08b}" + "".join(f"{byte:08b}" for byte in data) + "0000"
    words = bytes(int(bits[at : at + 8].ljust(8, "0"), 2) for at in range(0, len(bits), 8))
    padding = bytes((0xEC, 0x11)) * room
    return (words + padding)[:room]


def _interleave(data: bytes, version: int) -> bytes:
    """Data and correction of all blocks, taken in turn."""
    room, correction, count = _SIZES[version]
    length = room // count
    blocks = [data[at * length : (at + 1) * length] for at in range(count)]
    corrections = [_correct(block, correction) for block in blocks]
    return bytes(word for turn in zip(*blocks, strict=True) for word in turn) + bytes(
        word for turn in zip(*corrections, strict=True) for word in turn
    )


def _powers() -> tuple[list[int], list[int]]:
    powers, logarithms, value = [0] * 512, [0] * 256, 1
    for exponent in range(255):
        powers[exponent] = powers[exponent + 255] = value
        logarithms[value] = exponent
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return powers, logarithms


_POWERS, _LOGARITHMS = _powers()


def _correct(block: bytes, count: int) -> bytes:
    """The Reed-Solomon codewords of a block: what remains when it is divided by the generator."""
    generator = [1]
    for exponent in range(count):
        generator = [
            high ^ _times(low, _POWERS[exponent])
            for high, low in zip([*generator, 0], [0, *generator], strict=True)
        ]
    rest = bytearray(block) + bytearray(count)
    for at in range(len(block)):
        for place, factor in enumerate(generator):
            rest[at + place] ^= _times(factor, rest[at]) if place else 0
    return bytes(rest[len(block) :])


def _times(one: int, other: int) -> int:
    return _POWERS[_LOGARITHMS[one] + _LOGARITHMS[other]] if one and other else 0


def _draw_patterns(matrix: Matrix, version: int) -> None:
    """The three finders, the timing lines, the alignment pattern and the dark module."""
    size = len(matrix)
    for left, top in ((0, 0), (size - 7, 0), (0, size - 7)):
        for y in range(max(0, top - 1), min(size, top + 8)):
            for x in range(max(0, left - 1), min(size, left + 8)):
                ring = max(abs(x - left - 3), abs(y - top - 3))
                matrix[y][x] = ring not in (2, 4)
    for at in range(8, size - 8):
        matrix[6][at] = matrix[at][6] = at % 2 == 0
    if version > 1:
        middle = size - 7
        for y in range(middle - 2, middle + 3):
            for x in range(middle - 2, middle + 3):
                matrix[y][x] = max(abs(x - middle), abs(y - middle)) != 1
    matrix[size - 8][8] = True


def _draw_format(matrix: Matrix) -> None:
    size = len(matrix)
    for bit in range(15):
        is_dark = bool(_FORMAT >> bit & 1)
        # Once around the first finder, once beside the other two.
        x, y = (8, bit + (bit > 5)) if bit < 8 else (14 - bit + (bit == 8), 8)
        matrix[y][x] = is_dark
        x, y = (size - 1 - bit, 8) if bit < 8 else (8, size - 15 + bit)
        matrix[y][x] = is_dark


def _bits(words: bytes) -> Iterator[bool]:
    return (bool(word >> place & 1) for word in words for place in range(7, -1, -1))


def _free_places(matrix: Matrix) -> list[tuple[int, int]]:
    """Where data goes: up and down in columns of two, from the right, around the timing line."""
    size = len(matrix)
    columns = [*range(size - 1, 6, -2), *range(5, 0, -2)]
    places = []
    for turn, right in enumerate(columns):
        rows = range(size - 1, -1, -1) if turn % 2 == 0 else range(size)
        places += [(x, y) for y in rows for x in (right, right - 1) if matrix[y][x] is None]
    return places
