// hash.h: XXH3 with 128 bits. The hash detects damage, but no forgery.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace yoke {

class Hash128 {
public:
    // Begins a hash. Raises YOKE_E_UNSUPPORTED if the library was built without xxhash.
    Hash128();
    ~Hash128();
    Hash128(const Hash128 &) = delete;
    Hash128 &operator=(const Hash128 &) = delete;

    void add(const void *from, uint64_t bytes);
    // Returns the hash of all bytes so far: 32 hexadecimal digits, as `xxhsum -H2` prints them.
    std::string text() const;

    static constexpr size_t kTextLength = 32;

private:
    struct State;
    std::unique_ptr<State> state_;
};

std::string hash_text(std::string_view bytes);

}  // namespace yoke
