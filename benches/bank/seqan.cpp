// seqan's interleaved Bloom filter, for the bench `bank`: that of its library hibf if HIBF is
// defined, otherwise that of SeqAn3, which says that hibf's replaces it. Calls take whole slices of
// hashes, so that the calls are inlined into their loop, as far as the library's are in C++.

#ifdef HIBF
#    include <hibf/interleaved_bloom_filter.hpp>
#    include <hibf/version.hpp>
namespace library = seqan::hibf;
using Filter = library::interleaved_bloom_filter;
static const char* const name = "hibf ";
static const char* const version = library::hibf_version_cstring;
static auto agent_of(const Filter& filter) { return filter.containment_agent(); }
static const auto& words_of(const library::bit_vector& bits) { return bits; }
#else
#    define SEQAN3_DISABLE_DEPRECATED_WARNINGS
#    include <seqan3/search/dream_index/interleaved_bloom_filter.hpp>
#    include <seqan3/version.hpp>
namespace library = seqan3;
using Filter = library::interleaved_bloom_filter<>;
static const char* const name = "SeqAn ";
static const char* const version = library::seqan3_version_cstring;
static auto agent_of(const Filter& filter) { return filter.membership_agent(); }
template <class Bits> static const auto& words_of(const Bits& bits) { return bits.raw_data(); }
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" {

const char* peers_seqan_name() noexcept {
    static const std::string text = std::string(name) + version;
    return text.c_str();
}

// `bits` for each filter. The library takes at most 5 hash functions.
Filter* peers_seqan_new(std::size_t filters, std::size_t bits, std::size_t hash_functions) noexcept {
    return new Filter(library::bin_count{filters}, library::bin_size{bits},
                      library::hash_function_count{hash_functions});
}

void peers_seqan_drop(Filter* filter) noexcept { delete filter; }

void peers_seqan_insert(Filter* filter, std::size_t column, const std::uint64_t* hashes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; i++) filter->emplace(hashes[i], library::bin_index{column});
}

// Asks for each hash; the compiler must believe that the answer is read.
void peers_seqan_ask(const Filter* filter, const std::uint64_t* hashes, std::size_t count) noexcept {
    auto agent = agent_of(*filter);
    for (std::size_t i = 0; i < count; i++) {
        auto answer = words_of(agent.bulk_contains(hashes[i])).data();
        asm volatile("" : : "r"(answer) : "memory");
    }
}

// Writes the bitmap of one hash: `words` words.
void peers_seqan_which(const Filter* filter, std::uint64_t hash, std::uint64_t* out, std::size_t words) noexcept {
    auto agent = agent_of(*filter);
    std::copy_n(words_of(agent.bulk_contains(hash)).data(), words, out);
}
}
