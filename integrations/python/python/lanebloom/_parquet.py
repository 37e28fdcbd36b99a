"""The bytes that Parquet's filters hash for the values of a column."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
import uuid
from typing import Any, Optional

from ._lanebloom import SplitBlockBloomFilter

_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTES, _FIXED = range(8)
_PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]

# Numbers of the union LogicalType, which newer files have, and of ConvertedType plus 1.
_LOGICAL = {1: "STRING", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INTEGER", 12: "JSON", 14: "UUID", 15: "FLOAT16"}
_CONVERTED = {1: "STRING", 5: "ENUM", 6: "DECIMAL", 7: "DATE", 8: "TIME", 9: "TIME", 10: "TIMESTAMP", 11: "TIMESTAMP", 20: "JSON"}
_UNITS = {1: 10**3, 2: 10**6, 3: 10**9}
_CONVERTED_UNITS = {8: 10**3, 9: 10**6, 10: 10**3, 11: 10**6}

# The physical types that a logical type may have, and the most digits of a decimal here.
_STORED = {
    "STRING": (_BYTES,), "ENUM": (_BYTES,), "JSON": (_BYTES,), "DATE": (_INT32,), "TIME": (_INT32, _INT64), "TIMESTAMP": (_INT64,),
    "INTEGER": (_INT32, _INT64), "UUID": (_FIXED,), "FLOAT16": (_FIXED,), "DECIMAL": (_INT32, _INT64, _BYTES, _FIXED),
}
_MOST_DIGITS = 1000

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_JULIAN_1970 = 2_440_588
_NANOSECONDS = 10**9
# Units of numpy's datetime64 that have a fixed length, in a second or in seconds.
_NUMPY_UNITS = {"ns": (10**9, 1), "us": (10**6, 1), "ms": (10**3, 1), "s": (1, 1), "m": (1, 60), "h": (1, 3600), "D": (1, 86_400)}


def typed(found: SplitBlockBloomFilter, key: Key) -> Optional[SplitBlockBloomFilter]:
    """The filter, with keys that are values of the column; None if it says nothing."""
    if key.physical == _BOOLEAN and found.approx_len == 0:
        # parquet-java makes a filter for booleans and adds none to it.
        return None
    if key.format:
        # The two zeros are equal, and either one is looked up as 0.0. A NaN has many bit patterns.
        found.add_both_zeros()
        found.add(struct.pack(key.format, math.nan))
    return SplitBlockBloomFilter.from_bytes(found.to_bytes(), key=key)


def asked(key: Key, values: Any) -> Optional[list[bytes]]:
    """The bytes of values, for the filters of row groups; None if any row group may have one of them."""
    stored: list[bytes] = []

    def keep(value: Any) -> None:
        one = key(value)
        if one is not None:
            stored.append(one)

    # A filter reads the arrays of all libraries, and gives each value to its function.
    SplitBlockBloomFilter(1, key=keep).contains_many(values)
    if key.format:
        if struct.pack(key.format, math.nan) in stored:
            return None
        zeros = [struct.pack(key.format, zero) for zero in (0.0, -0.0)]
        if zeros[0] in stored:
            stored.append(zeros[1])
    return stored


class Key:
    """A function from a value of a column to the bytes that Parquet hashes."""

    def __init__(self, name: str, numbers: tuple[int, int, int, int, int, int, int, int], is_signed: bool) -> None:
        physical, length, logical, converted, scale, precision, unit, bits = numbers
        if not 0 <= physical < len(_PHYSICAL):
            raise ValueError(f"column {name} has the physical type {physical}, which is none of Parquet's")
        self.name, self.physical, self.length = name, physical, length
        self.scale, self.precision = scale, precision
        self.logical = _LOGICAL.get(logical) or _CONVERTED.get(converted, "")
        if self.logical and physical not in _STORED[self.logical]:
            raise ValueError(f"column {name} has the type {self.logical} in {_PHYSICAL[physical]}, which Parquet does not have")
        if self.logical == "DECIMAL" and not (0 <= scale <= precision <= _MOST_DIGITS and 0 <= length <= _MOST_DIGITS):
            raise ValueError(f"column {name} has decimals of {precision} digits, {scale} after the point, in {length} bytes")
        if length != {"UUID": 16, "FLOAT16": 2}.get(self.logical, length):
            raise ValueError(f"column {name} has the type {self.logical} in {length} bytes")
        self.unit = _UNITS.get(unit) or _CONVERTED_UNITS.get(converted, 0)
        if physical == _INT96:
            self.logical, self.unit = "TIMESTAMP", _NANOSECONDS
        self.bits = 32 if physical == _INT32 else 64
        self.signed = True
        if logical == 10:
            self.bits, self.signed = bits, is_signed
        elif 12 <= converted <= 19:
            self.bits, self.signed = 8 << (converted - 12) % 4, converted >= 16
        if self.bits not in (8, 16, 32, 64):
            raise ValueError(f"column {name} has integers of {self.bits} bits")
        # The formats of floats, as struct has them.
        self.format = {_FLOAT: "<f", _DOUBLE: "<d"}.get(physical, "<e" if self.logical == "FLOAT16" else "")
        if self.logical in ("TIME", "TIMESTAMP") and not self.unit:
            raise ValueError(f"column {name} has times of an unknown unit")

    def __repr__(self) -> str:
        kind = self.logical
        if kind == "DECIMAL":
            kind += f"({self.precision}, {self.scale})"
        return f"<column {self.name}: {_PHYSICAL[self.physical]}{' ' + kind if kind else ''}>"

    def __call__(self, value: Any) -> Optional[bytes]:
        value, ticks = _plain(value)
        if value is None:
            return None
        if isinstance(value, datetime.time):
            return self._stored(self._time(value, ticks))
        if self.logical == "TIMESTAMP":
            return self._stored(self._timestamp(value, ticks))
        if self.logical == "DATE":
            return self._stored(self._date(value, ticks))
        if ticks is not None or self.logical == "TIME":
            raise self._type_error(value)
        if self.logical == "DECIMAL":
            return self._stored(self._decimal(value))
        if self.format:
            return self._float(value)
        if self.physical == _BOOLEAN:
            if not isinstance(value, bool):
                raise self._type_error(value)
            return bytes([value])
        if self.physical in (_INT32, _INT64):
            if not isinstance(value, int) or isinstance(value, bool):
                raise self._type_error(value)
            least = -1 << self.bits - 1 if self.signed else 0
            most = least + (1 << self.bits) - 1
            if not least <= value <= most:
                raise ValueError(f"{value}: {self} holds integers from {least} to {most}")
            return self._stored(value)
        return self._bytes(value)

    def _type_error(self, value: Any) -> TypeError:
        wanted = {"DECIMAL": "Decimal or int", "DATE": "date", "TIME": "time", "TIMESTAMP": "datetime or date", "UUID": "UUID or bytes"}
        kinds = ["bool", "int", "int", "", "float", "float", "str or bytes", "bytes"]
        right = wanted.get(self.logical) or ("float" if self.format else kinds[self.physical])
        return TypeError(f"{_short(value)}, a {type(value).__name__}: keys of {self} are {right}")

    def _not_exact(self, value: Any, advice: str = "") -> ValueError:
        return ValueError(f"{_short(value)}: {self} cannot hold it exactly{advice}")

    def _stored(self, number: int) -> bytes:
        """An integer, as the physical type has it."""
        try:
            if self.physical == _INT96:
                day, rest = divmod(number, 86_400 * _NANOSECONDS)
                return struct.pack("<qI", rest, day + _JULIAN_1970)
            if self.physical == _INT32:
                return struct.pack("<i" if self.signed else "<I", number)
            if self.physical == _INT64:
                return struct.pack("<q" if self.signed else "<Q", number)
            # The bytes of Java's BigInteger: the fewest, with a sign.
            length = self.length if self.physical == _FIXED else (number if number >= 0 else ~number).bit_length() // 8 + 1
            return number.to_bytes(length, "big", signed=True)
        except (struct.error, OverflowError):
            raise ValueError(f"{number} is beyond the range of {self}") from None

    def _timestamp(self, value: Any, ticks: Optional[tuple[int, int]]) -> int:
        if ticks is None:
            if not isinstance(value, datetime.date):
                raise self._type_error(value)
            if not isinstance(value, datetime.datetime):
                value = datetime.datetime(value.year, value.month, value.day)
            moment = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
            since = moment - _EPOCH
            # A Timestamp of pandas has nanoseconds too.
            nanoseconds = (since.days * 86_400 + since.seconds) * _NANOSECONDS + since.microseconds * 1000 + getattr(value, "nanosecond", 0)
            ticks = nanoseconds, _NANOSECONDS
        number, rest = divmod(ticks[0] * self.unit, ticks[1])
        if rest:
            raise self._not_exact(value, f", in units of 1/{self.unit} s")
        return number

    def _date(self, value: Any, ticks: Optional[tuple[int, int]]) -> int:
        if ticks is not None:
            day, rest = divmod(ticks[0], ticks[1] * 86_400)
            if rest:
                raise self._not_exact(value)
            return day
        if not isinstance(value, datetime.date):
            raise self._type_error(value)
        if isinstance(value, datetime.datetime):
            if value.tzinfo or value.time() != datetime.time() or getattr(value, "nanosecond", 0):
                raise self._not_exact(value)
        return value.toordinal() - _EPOCH.toordinal()

    def _time(self, value: datetime.time, ticks: Optional[tuple[int, int]]) -> int:
        if self.logical != "TIME" or value.tzinfo:
            raise self._type_error(value)
        if ticks is None:
            ticks = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond, 10**6
        number, rest = divmod(ticks[0] * self.unit, ticks[1])
        if rest:
            raise self._not_exact(value)
        return number

    def _decimal(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, decimal.Decimal)):
            raise self._type_error(value)
        number = decimal.Decimal(value)
        # (Before digits are computed that nobody wants.)
        if not number.is_finite() or number and number.adjusted() >= self.precision - self.scale:
            raise self._not_exact(value)
        sign, digits, exponent = number.as_tuple()
        unscaled = int("".join(map(str, digits)))
        shift = int(exponent) + self.scale
        if unscaled and shift < -len(digits):
            raise self._not_exact(value)
        if unscaled and shift < 0:
            unscaled, rest = divmod(unscaled, 10**-shift)
            if rest:
                raise self._not_exact(value)
        elif unscaled:
            unscaled *= 10**shift
        return -unscaled if sign else unscaled

    def _float(self, value: Any) -> bytes:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._type_error(value)
        try:
            # 0.0 for both zeros, and one NaN for all.
            stored = struct.pack(self.format, math.nan if value != value else value or 0.0)
        except (OverflowError, struct.error):
            raise self._not_exact(value) from None
        (back,) = struct.unpack(self.format, stored)
        if back != value and value == value:
            kind = {"<f": "float32", "<e": "float16"}.get(self.format)
            raise self._not_exact(value, f": pass numpy.{kind}({_short(value)})" if kind else "")
        return stored

    def _bytes(self, value: Any) -> bytes:
        if self.logical == "UUID" and isinstance(value, uuid.UUID):
            value = value.bytes
        if isinstance(value, str) and self.physical == _BYTES:
            return value.encode()
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise self._type_error(value)
        stored = bytes(value)
        if self.physical == _FIXED and len(stored) != self.length:
            raise ValueError(f"{len(stored)} bytes: {self} holds values of {self.length}")
        return stored


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(value: Any) -> tuple[Any, Optional[tuple[int, int]]]:
    """A value of Python, and for a datetime64, a timestamp or a time of Arrow the ticks and how many are a second."""
    module = type(value).__module__
    if module in ("builtins", "datetime", "decimal", "uuid"):
        return value, None
    if module.startswith("pyarrow") and hasattr(value, "as_py"):
        if type(value).__name__ == "TimestampScalar" and value.value is not None:
            return value, (value.value, _NUMPY_UNITS[value.type.unit][0])
        if type(value).__name__ == "Time64Scalar" and value.value is not None:
            # (Python's time has no nanoseconds.)
            return value.as_py(), (value.value, _NUMPY_UNITS[value.type.unit][0])
        return value.as_py(), None
    if module.startswith("pandas") and str(value) in ("NaT", "<NA>"):
        return None, None
    if module.startswith("numpy") and hasattr(value, "dtype") and not getattr(value, "ndim", 0):
        import numpy

        if value.dtype.kind == "M":
            if numpy.isnat(value):
                return None, None
            unit, count = numpy.datetime_data(value.dtype)
            if unit not in _NUMPY_UNITS:
                raise TypeError(f"{value!r}: a datetime64 in units of {unit}")
            per_second, seconds = _NUMPY_UNITS[unit]
            return value, (int(value.astype("i8")) * count * seconds, per_second)
        return value.item(), None
    return value, None
