// seqan's interleaved Bloom filter, for the bench `bank`. Calls take whole slices of hashes, so
// that the calls are inlined into their loop, as far as the library's are in C++.

// SeqAn says that the filter of its library hibf replaces this one. Debian has no package of that.
#define SEQAN3_DISABLE_DEPRECATED_WARNINGS
#include <seqan3/search/dream_index/interleaved_bloom_filter.hpp>
#include <seqan3/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

using Filter = seqan3::interleaved_bloom_filter<>;

extern "C" {

const char* peers_seqan_name() noexcept {
    static const std::string text = std::string("SeqAn ") + seqan3::seqan3_version_cstring;
    return text.c_str();
}

// `bits` for each filter. The library takes at most 5 hash functions.
Filter* peers_seqan_new(std::size_t filters, std::size_t bits, std::size_t hash_functions) noexcept {
    return new Filter(seqan3::bin_count{filters}, seqan3::bin_size{bits},
                      seqan3::hash_function_count{hash_functions});
}

void peers_seqan_drop(Filter* filter) noexcept { delete filter; }

void peers_seqan_insert(Filter* filter, std::size_t column, const std::uint64_t* hashes, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; i++) filter->emplace(hashes[i], seqan3::bin_index{column});
}

// Asks for each hash; the compiler must believe that the answer is read.
void peers_seqan_ask(const Filter* filter, const std::uint64_t* hashes, std::size_t count) noexcept {
    auto agent = filter->membership_agent();
    for (std::size_t i = 0; i < count; i++) {
        auto answer = agent.bulk_contains(hashes[i]).raw_data().data();
        asm volatile("" : : "r"(answer) : "memory");
    }
}

// Writes the bitmap of one hash: `words` words.
void peers_seqan_which(const Filter* filter, std::uint64_t hash, std::uint64_t* out, std::size_t words) noexcept {
    auto agent = filter->membership_agent();
    std::copy_n(agent.bulk_contains(hash).raw_data().data(), words, out);
}
}
