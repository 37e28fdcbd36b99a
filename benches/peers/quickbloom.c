// quickbloom for the bench `peers`: its functions, which Rust calls as those of a library, and its
// single calls inlined into loops, which a C program gets by link-time optimization.

#include <quickbloom.c>

void peers_quickbloom_insert(void* filter, const uint64_t* hashes, size_t count) {
    for (size_t i = 0; i < count; i++) qb_insert_prehash(filter, hashes[i]);
}

// How many are found.
size_t peers_quickbloom_contains(void* filter, const uint64_t* hashes, size_t count) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) found += qb_contains_prehash(filter, hashes[i]) != 0;
    return found;
}
