"""Between a packed state's numbers and the vector that the kernel works on."""

from ..layout import SCALARS, SIZE, Vector


def load(state: Vector, scalars: Vector, grains: Vector) -> None:
    for index in range(SCALARS):
        state[index] = scalars[index]
    for index in range(SIZE - SCALARS):
        state[SCALARS + index] = grains[index]


def store(state: Vector, scalars: Vector, grains: Vector) -> None:
    for index in range(SCALARS):
        scalars[index] = state[index]
    for index in range(SIZE - SCALARS):
        grains[index] = int(state[SCALARS + index])
