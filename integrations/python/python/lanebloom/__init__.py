"""Fast approximate sets: Bloom and cuckoo filters for numpy, Arrow and plain Python keys."""

from ._lanebloom import (
    ArrowAnswers,
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    FilterBank,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SparkBloomFilter,
    SplitBlockBloomFilter,
    StaticFilter,
    WindowedBloomFilter,
    __version__,
    _restore,
    key_bytes,
)

__all__ = [
    "ArrowAnswers",
    "Bitmap",
    "BloomFilter",
    "CuckooFilter",
    "Filter",
    "FilterBank",
    "GuavaBloomFilter",
    "ScalableBloomFilter",
    "SparkBloomFilter",
    "SplitBlockBloomFilter",
    "StaticFilter",
    "WindowedBloomFilter",
    "__version__",
    "key_bytes",
]
