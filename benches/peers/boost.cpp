// Boost.Bloom for the bench `peers` and the example `figures` of integrations/parquet: single
// calls and bulk calls on whole slices of hashes or keys, so that the calls are inlined into their
// loop, as in a C++ program.

#include <boost/bloom/fast_multiblock32.hpp>
#include <boost/bloom/fast_multiblock64.hpp>
#include <boost/bloom/filter.hpp>
#include <boost/version.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace {

// The keys are hashes already. Marked as avalanching, so that the filter does not mix them again.
struct Identity {
    using is_avalanching = std::true_type;
    std::size_t operator()(std::uint64_t hash) const noexcept { return hash; }
};

static_assert(sizeof(std::size_t) == 8 && boost::hash_is_avalanching<Identity>::value,
              "hashes are used as they are");

// A key of `key_calls.rs`.
struct Text {
    std::size_t len;
    char bytes[24];
    operator std::string_view() const noexcept { return {bytes, len}; }
};

// The target of the pointer in `boost.rs`.
struct Raw {
    virtual ~Raw() = default;
    virtual void clear() noexcept = 0;
    virtual std::size_t bytes() const noexcept = 0;
    virtual void insert(const void* keys, std::size_t count) noexcept = 0;
    virtual void insert_bulk(const void* keys, std::size_t count) noexcept = 0;
    virtual std::size_t contains(const void* keys, std::size_t count) const noexcept = 0;
    virtual std::size_t contains_bulk(const void* keys, std::size_t count, std::size_t batch) const noexcept = 0;
};

// A filter of `Key`, which come as `Given`. One block per key, one bit in each of its eight words:
// 64 bytes, or, with words of 32 bits, 32.
template <class Given, class Key = Given, class Hash = boost::hash<Key>, class Block = boost::bloom::fast_multiblock64<8>>
struct Filter final : Raw {
    boost::bloom::filter<Key, 1, Block, 0, Hash> filter;

    Filter(std::size_t keys, double rate) : filter(keys, rate) {}
    explicit Filter(std::size_t bits) : filter(bits) {}
    void clear() noexcept override { filter.clear(); }
    std::size_t bytes() const noexcept override { return filter.capacity() / 8; }

    void insert(const void* keys, std::size_t count) noexcept override {
        auto given = static_cast<const Given*>(keys);
        for (std::size_t i = 0; i < count; i++) filter.insert(Key(given[i]));
    }

    // Before 1.90 this is a loop of single calls.
    void insert_bulk(const void* keys, std::size_t count) noexcept override {
        auto given = static_cast<const Given*>(keys);
        filter.insert(given, given + count);
    }

    // How many are found.
    std::size_t contains(const void* keys, std::size_t count) const noexcept override {
        auto given = static_cast<const Given*>(keys);
        std::size_t found = 0;
        for (std::size_t i = 0; i < count; i++) found += filter.may_contain(Key(given[i]));
        return found;
    }

    // The same by bulk calls of `batch` keys each. Boost has them since 1.90.
    std::size_t contains_bulk(const void* keys, std::size_t count, std::size_t batch) const noexcept override {
#if BOOST_VERSION >= 109000
        auto given = static_cast<const Given*>(keys);
        std::size_t found = 0;
        auto add = [&](const auto&, bool is_in) { found += is_in; };
        for (; count > batch; given += batch, count -= batch) filter.may_contain(given, given + batch, add);
        filter.may_contain(given, given + count, add);
        return found;
#else
        static_cast<void>(batch);
        return contains(keys, count);
#endif
    }
};

} // namespace

extern "C" {

// The form of boost/version.hpp: 109000 is 1.90.
std::uint32_t peers_boost_version() noexcept { return BOOST_VERSION; }

// The kinds are those of `boost.rs`. Keys have Boost's default hash.
Raw* peers_boost_new(int kind, std::size_t keys, double rate) noexcept {
    switch (kind) {
    case 0: return new Filter<std::uint64_t, std::uint64_t, Identity>(keys, rate);
    case 1: return new Filter<std::uint64_t>(keys, rate);
    case 2: return new Filter<std::array<unsigned char, 16>>(keys, rate);
    default: return new Filter<Text, std::string_view>(keys, rate);
    }
}

// A filter of hashes in blocks of 32 bytes, of this many bytes.
Raw* peers_boost_split_blocks(std::size_t bytes) noexcept {
    return new Filter<std::uint64_t, std::uint64_t, Identity, boost::bloom::fast_multiblock32<8>>(8 * bytes);
}

void peers_boost_drop(Raw* filter) noexcept { delete filter; }

void peers_boost_clear(Raw* filter) noexcept { filter->clear(); }

std::size_t peers_boost_bytes(const Raw* filter) noexcept { return filter->bytes(); }

void peers_boost_insert(Raw* filter, const void* keys, std::size_t count) noexcept { filter->insert(keys, count); }

void peers_boost_insert_bulk(Raw* filter, const void* keys, std::size_t count) noexcept {
    filter->insert_bulk(keys, count);
}

std::size_t peers_boost_contains(const Raw* filter, const void* keys, std::size_t count) noexcept {
    return filter->contains(keys, count);
}

std::size_t peers_boost_contains_bulk(const Raw* filter, const void* keys, std::size_t count,
                                      std::size_t batch) noexcept {
    return filter->contains_bulk(keys, count, batch);
}
}
