#include "core/base/thread_state.h"

#include <pthread.h>
#include <cstdlib>
#include <utility>

namespace yoke::detail {

constinit thread_local ThreadState *current __attribute__((tls_model("initial-exec"))) = nullptr;
void (*drop_memory_cache)(void *cache) = nullptr;
void (*drop_stream)(yoke_stream *stream) = nullptr;

namespace {

void end_of_thread(void *pointer)
{
    auto *state = static_cast<ThreadState *>(pointer);
    // Taken out first: what drops the cache may look here for one to empty.
    void *cache = std::exchange(state->memory_cache, nullptr);
    if (cache && drop_memory_cache) drop_memory_cache(cache);
    for (yoke_stream *&stream : state->streams)
        if (stream && drop_stream) drop_stream(std::exchange(stream, nullptr));
    state->pool.clear();
    if (current == state) current = nullptr;
    free(state);
}

struct EndKey {
    bool made;
    pthread_key_t key;
};

EndKey make_end_key()
{
    pthread_key_t key = 0;
    const bool made = pthread_key_create(&key, end_of_thread) == 0;
    return {made, key};
}

// Made while the library is loaded, so that no fork finds it half made. Until then, or where the process has no key
// left, a thread's state is not freed at its end.
EndKey end_key = make_end_key();

}  // namespace

ThreadState &make_thread_state()
{
    // A process that cannot find 16 KiB cannot even report it: this is the one place where there is no status to give.
    auto *state = static_cast<ThreadState *>(calloc(1, sizeof(ThreadState)));
    if (!state) abort();
    current = state;
    if (end_key.made) pthread_setspecific(end_key.key, state);
    return *state;
}

}  // namespace yoke::detail
