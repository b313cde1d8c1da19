"""`dataclass` for the values that thousands of visits a second are made of.

What is `frozen` is so to the type checker, which sees every line of ours. The interpreter's own freezing sets each
field through a call, which makes building an object seven times as dear; here it gets plain fields, and a hash.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    from dataclasses import dataclass as _dataclass

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Any:
        return _dataclass(slots=slots, unsafe_hash=frozen, kw_only=kw_only)
