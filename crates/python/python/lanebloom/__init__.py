"""Fast approximate sets: Bloom and cuckoo filters for numpy, Arrow and plain Python keys."""

from ._lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SplitBlockBloomFilter,
    WindowedBloomFilter,
    __version__,
    _restore,
    key_bytes,
)

__all__ = [
    "Bitmap",
    "BloomFilter",
    "CuckooFilter",
    "Filter",
    "GuavaBloomFilter",
    "ScalableBloomFilter",
    "SplitBlockBloomFilter",
    "WindowedBloomFilter",
    "__version__",
    "key_bytes",
]
