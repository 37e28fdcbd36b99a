// Boost.Bloom for the bench `peers`: single calls and bulk calls on whole slices of hashes, so that
// the calls are inlined into their loop, as in a C++ program.

#include <boost/bloom/fast_multiblock64.hpp>
#include <boost/bloom/filter.hpp>
#include <boost/version.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

// The keys are hashes already. Marked as avalanching, so that the filter does not mix them again.
struct Identity {
    using is_avalanching = std::true_type;
    std::size_t operator()(std::uint64_t hash) const noexcept { return hash; }
};

static_assert(sizeof(std::size_t) == 8 && boost::hash_is_avalanching<Identity>::value,
              "hashes are used as they are");

// One block of 64 bytes per key, one bit in each of its words.
using Filter = boost::bloom::filter<std::uint64_t, 1, boost::bloom::fast_multiblock64<8>, 0, Identity>;

} // namespace

extern "C" {

// As in boost/version.hpp: 109000 is 1.90.
std::uint32_t peers_boost_version() noexcept { return BOOST_VERSION; }

Filter* peers_boost_new(std::size_t keys, double rate) noexcept { return new Filter(keys, rate); }

void peers_boost_drop(Filter* filter) noexcept { delete filter; }

void peers_boost_clear(Filter* filter) noexcept { filter->clear(); }

std::size_t peers_boost_bytes(const Filter* filter) noexcept { return filter->capacity() / 8; }

void peers_boost_insert(Filter* filter, const std::uint64_t* hashes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; i++) filter->insert(hashes[i]);
}

// Before 1.90 this is a loop of single calls.
void peers_boost_insert_bulk(Filter* filter, const std::uint64_t* hashes, std::size_t count) noexcept {
    filter->insert(hashes, hashes + count);
}

// How many are found.
std::size_t peers_boost_contains(const Filter* filter, const std::uint64_t* hashes, std::size_t count) noexcept {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count; i++) found += filter->may_contain(hashes[i]);
    return found;
}

// The same by bulk calls of `batch` hashes each. Boost has them since 1.90.
#if BOOST_VERSION >= 109000
std::size_t peers_boost_contains_bulk(const Filter* filter, const std::uint64_t* hashes, std::size_t count,
                                      std::size_t batch) noexcept {
    std::size_t found = 0;
    for (; count > batch; hashes += batch, count -= batch)
        filter->may_contain(hashes, hashes + batch, [&](std::uint64_t, bool is_in) { found += is_in; });
    filter->may_contain(hashes, hashes + count, [&](std::uint64_t, bool is_in) { found += is_in; });
    return found;
}
#else
std::size_t peers_boost_contains_bulk(const Filter* filter, const std::uint64_t* hashes, std::size_t count,
                                      std::size_t) noexcept {
    return peers_boost_contains(filter, hashes, count);
}
#endif
}
