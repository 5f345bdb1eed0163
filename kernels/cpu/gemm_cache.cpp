// The primitive cache: 64 sets of 4 entries; in a full set the one that was not used for longest goes.
#include "kernels/cpu/gemm_cache.h"

#include <pthread.h>

#include <cstring>
#include <new>

#include "kernels/cpu/gemm_exit.h"
#include "kernels/cpu/gemm_room.h"

namespace yoke::cpu {

constexpr int kSets = 64;
constexpr int kWays = 4;

struct GemmCache {
    dnnl_stream_t stream;
    uint64_t clock;
    GemmEntry entries[kSets][kWays];
};

static pthread_key_t g_key;
static dnnl_engine_t g_engine;  // one for the process, kept to its end
static thread_local GemmCache *t_cache __attribute__((tls_model("initial-exec")));

// oneDNN keeps what it makes in a cache of its own, under a lock that a fork in the midst would leave to the child
// locked for ever. So a fork waits until nothing is being made.
static pthread_mutex_t g_making = PTHREAD_MUTEX_INITIALIZER;

static void lock_making()
{
    pthread_mutex_lock(&g_making);
}

static void unlock_making()
{
    pthread_mutex_unlock(&g_making);
}

struct Making {
    Making() { lock_making(); }
    ~Making() { unlock_making(); }
};

static void before_fork()
{
    lock_making();
    exit_before_fork();
}

static void after_fork()
{
    exit_after_fork();
    unlock_making();
}

static void after_fork_in_child()
{
    exit_after_fork_in_child();
    unlock_making();
}

// While the library is loaded: a fork amid the very first product finds them too.
static const bool g_has_handlers =
    pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;

static void clear(GemmEntry *entry)
{
    if (entry->primitive) dnnl_primitive_destroy(entry->primitive);
    if (entry->a) dnnl_memory_destroy(entry->a);
    if (entry->b) dnnl_memory_destroy(entry->b);
    if (entry->c) dnnl_memory_destroy(entry->c);
    if (entry->bias) dnnl_memory_destroy(entry->bias);
    memset(static_cast<void *>(entry), 0, sizeof(*entry));
}

// A thread ends. While the process does too, what the cache holds stays: oneDNN may be gone.
static void destroy_cache(void *pointer)
{
    GemmCache *cache = static_cast<GemmCache *>(pointer);
    if (const Inside inside; inside.status() == dnnl_success) {
        for (auto &set : cache->entries)
            for (GemmEntry &entry : set)
                if (entry.primitive) clear(&entry);
        dnnl_stream_destroy(cache->stream);
        delete cache;
    }
    t_cache = nullptr;
    end_inside();
}

// Under the lock, at each thread's first product.
static dnnl_status_t start()
{
    // What was done already stays done, so that a start for which there was no memory is tried again.
    static bool has_key;
    if (!has_key) has_key = pthread_key_create(&g_key, destroy_cache) == 0;
    if (!has_key || !g_has_handlers || !watches_exit()) return dnnl_out_of_memory;
    return g_engine ? dnnl_success : dnnl_engine_create(&g_engine, dnnl_cpu, 0);
}

static dnnl_status_t make_cache()
{
    {
        const Making making;
        if (!has_room_for_onednn(0)) return dnnl_out_of_memory;
        if (dnnl_status_t status = start()) return status;
    }
    GemmCache *cache = new (std::nothrow) GemmCache();
    if (!cache || !has_room_for_onednn(0)) {
        delete cache;
        return dnnl_out_of_memory;
    }
    dnnl_status_t status = dnnl_stream_create(&cache->stream, g_engine, dnnl_stream_default_flags);
    if (status == dnnl_success && pthread_setspecific(g_key, cache)) {
        dnnl_stream_destroy(cache->stream);
        status = dnnl_out_of_memory;
    }
    if (status != dnnl_success) {
        delete cache;
        return status;
    }
    t_cache = cache;
    return dnnl_success;
}

static uint64_t hash(const GemmKey &key)
{
    uint64_t words[sizeof(GemmKey) / 8], h = 0;
    memcpy(words, &key, sizeof(words));
    for (uint64_t word : words) h = (h ^ word) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
}

static dnnl_data_type_t onednn_type(yoke_dtype dtype)
{
    switch (dtype) {
#define YOKE_TYPE(value, type) \
    case value:                \
        return type;
        YOKE_ONEDNN_TYPES(YOKE_TYPE)
#undef YOKE_TYPE
        default:
            return dnnl_data_type_undef;
    }
}

// One operand's description: two axes, or three in a batch, along which a stride of 0 means broadcast.
static dnnl_status_t describe(dnnl_memory_desc_t *out, const GemmKey &key, int64_t rows,
                              int64_t columns, const int64_t *strides)
{
    bool batched = key.batch > 1;
    bool shared = batched && strides[0] == 0;
    const dnnl_dims_t dims = {shared ? 1 : key.batch, rows, columns};
    const dnnl_dims_t steps = {shared ? rows * columns : strides[0], strides[1], strides[2]};
    int skip = batched ? 0 : 1;
    return dnnl_memory_desc_init_by_strides(out, 3 - skip, dims + skip, onednn_type(key.dtype),
                                            steps + skip);
}

// The operands of a product as oneDNN sees them.
struct Descs {
    dnnl_memory_desc_t a, b, c, bias;
};

static dnnl_status_t describe_all(Descs *out, const GemmKey &key)
{
    const int64_t flat[3] = {0, key.n, 1};
    dnnl_status_t status = describe(&out->a, key, key.m, key.k, key.a);
    if (!status) status = describe(&out->b, key, key.k, key.n, key.b);
    if (!status) status = describe(&out->c, key, key.m, key.n, key.c);
    if (!status && key.bias) status = describe(&out->bias, key, 1, key.n, flat);
    return status;
}

static dnnl_status_t make_primitive(dnnl_primitive_t *out, const GemmKey &key, const Descs &descs)
{
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, &descs.a, &descs.b,
                                                 key.bias ? &descs.bias : nullptr, &descs.c);
    if (status) return status;
    struct Owned {  // an exception may come out of oneDNN
        dnnl_primitive_desc_t desc = nullptr;
        ~Owned() { dnnl_primitive_desc_destroy(desc); }
    } made;
    status = dnnl_primitive_desc_create(&made.desc, &desc, nullptr, g_engine, nullptr);
    return status ? status : dnnl_primitive_create(out, made.desc);
}

static dnnl_status_t make_memory(dnnl_memory_t *out, const dnnl_memory_desc_t &desc)
{
    return dnnl_memory_create(out, &desc, g_engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t make_entry(GemmEntry *entry, const GemmKey &key)
{
    Descs descs = {};
    dnnl_status_t status = describe_all(&descs, key);
    if (!status) status = make_primitive(&entry->primitive, key, descs);
    if (!status) status = make_memory(&entry->a, descs.a);
    if (!status) status = make_memory(&entry->b, descs.b);
    if (!status) status = make_memory(&entry->c, descs.c);
    if (!status && key.bias) status = make_memory(&entry->bias, descs.bias);
    if (status) clear(entry);
    bool cannot = status == dnnl_unimplemented || status == dnnl_invalid_arguments;
    return cannot ? dnnl_success : status;
}

static uint64_t operand_bytes(const GemmKey &key)
{
    const int64_t elements = key.m * key.k + key.k * key.n + key.m * key.n;
    return static_cast<uint64_t>(key.batch * elements) * sizeof(float);
}

dnnl_status_t find_gemm(const GemmKey &key, GemmEntry **out)
{
    dnnl_status_t status = t_cache ? dnnl_success : make_cache();
    if (status) return status;
    GemmCache *cache = t_cache;
    GemmEntry *set = cache->entries[hash(key) % kSets], *oldest = set;
    for (int way = 0; way < kWays; way++) {
        GemmEntry *entry = set + way;
        if (entry->used && memcmp(&entry->key, &key, sizeof(key)) == 0) {
            entry->used = ++cache->clock;
            *out = entry;
            return dnnl_success;
        }
        if (entry->used < oldest->used) oldest = entry;
    }
    clear(oldest);
    *out = nullptr;
    {
        const Making making;
        if (!has_room_for_onednn(operand_bytes(key))) return dnnl_out_of_memory;
        status = make_entry(oldest, key);
    }
    if (status) return status;
    oldest->key = key;
    oldest->used = ++cache->clock;
    *out = oldest;
    return dnnl_success;
}

dnnl_stream_t gemm_stream()
{
    return t_cache->stream;
}

}  // namespace yoke::cpu
