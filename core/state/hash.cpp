#include "core/state/hash.h"

#include "core/base/error.h"

#ifndef YOKE_WITHOUT_XXHASH
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace yoke {

#ifdef YOKE_WITHOUT_XXHASH

struct Hash128::State {};

Hash128::Hash128()
{
    fail(
        YOKE_E_UNSUPPORTED,
        "CheckpointManager: this build does not support checkpoints, because it was built without xxhash; install xxhash (Debian: libxxhash-dev) and build again");
}
Hash128::~Hash128() = default;
void Hash128::add(const void *, uint64_t) {}
std::string Hash128::text() const
{
    return {};
}

#else

struct Hash128::State {
    XXH3_state_t state;
};

Hash128::Hash128() : state_(std::make_unique<State>())
{
    XXH3_128bits_reset(&state_->state);
}

Hash128::~Hash128() = default;

void Hash128::add(const void *from, uint64_t bytes)
{
    if (bytes) XXH3_128bits_update(&state_->state, from, bytes);
}

std::string Hash128::text() const
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->state));
    std::string text;
    for (const unsigned char byte : canonical.digest) text += format("%02x", byte);
    return text;
}

#endif

std::string hash_text(std::string_view bytes)
{
    Hash128 hash;
    hash.add(bytes.data(), bytes.size());
    return hash.text();
}

}  // namespace yoke
