// The primitive cache: 64 sets of 4 entries; in a full set the one that was not used for longest goes.
#include "kernels/cpu/gemm_cache.h"

#include <pthread.h>

#include <cstring>
#include <new>

namespace yoke::cpu {

constexpr int kSets = 64;
constexpr int kWays = 4;

struct GemmCache {
    dnnl_stream_t stream;
    uint64_t clock;
    GemmEntry entries[kSets][kWays];
};

static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static pthread_key_t g_key;
static dnnl_engine_t g_engine;  // one for the process, kept to its end
static thread_local GemmCache *t_cache;

static void clear(GemmEntry *entry)
{
    dnnl_primitive_destroy(entry->primitive);
    dnnl_memory_destroy(entry->a);
    dnnl_memory_destroy(entry->b);
    dnnl_memory_destroy(entry->c);
    if (entry->bias) dnnl_memory_destroy(entry->bias);
    memset(static_cast<void *>(entry), 0, sizeof(*entry));
}

static void destroy_cache(void *pointer)
{
    GemmCache *cache = static_cast<GemmCache *>(pointer);
    for (auto &set : cache->entries)
        for (GemmEntry &entry : set)
            if (entry.primitive) clear(&entry);
    dnnl_stream_destroy(cache->stream);
    delete cache;
    t_cache = nullptr;
}

static void start()
{
    if (dnnl_engine_create(&g_engine, dnnl_cpu, 0) != dnnl_success) g_engine = nullptr;
    if (pthread_key_create(&g_key, destroy_cache)) g_engine = nullptr;
}

static GemmCache *make_cache()
{
    pthread_once(&g_once, start);
    if (!g_engine) return nullptr;
    GemmCache *cache = new (std::nothrow) GemmCache();
    if (!cache) return nullptr;
    if (dnnl_stream_create(&cache->stream, g_engine, dnnl_stream_default_flags) != dnnl_success) {
        delete cache;
        return nullptr;
    }
    pthread_setspecific(g_key, cache);
    t_cache = cache;
    return cache;
}

static uint64_t hash(const GemmKey &key)
{
    uint64_t words[sizeof(GemmKey) / 8], h = 0;
    memcpy(words, &key, sizeof(words));
    for (uint64_t word : words) h = (h ^ word) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
}

// One operand's description: two axes, or three in a batch, along which a stride of 0 means broadcast.
static bool describe(dnnl_memory_desc_t *out, const GemmKey &key, int64_t rows, int64_t columns,
                     const int64_t *strides)
{
    bool batched = key.batch > 1;
    bool shared = batched && strides[0] == 0;
    const dnnl_dims_t dims = {shared ? 1 : key.batch, rows, columns};
    const dnnl_dims_t steps = {shared ? rows * columns : strides[0], strides[1], strides[2]};
    dnnl_data_type_t type = key.dtype == YOKE_BF16 ? dnnl_bf16 : dnnl_f32;
    int skip = batched ? 0 : 1;
    return dnnl_memory_desc_init_by_strides(out, 3 - skip, dims + skip, type, steps + skip) ==
           dnnl_success;
}

static bool make_memory(dnnl_memory_t *out, const dnnl_memory_desc_t *desc)
{
    return dnnl_memory_create(out, desc, g_engine, DNNL_MEMORY_NONE) == dnnl_success;
}

static void make_entry(GemmEntry *entry, const GemmKey &key)
{
    dnnl_memory_desc_t a, b, c, bias = {};
    const int64_t flat[3] = {0, key.n, 1};
    if (!describe(&a, key, key.m, key.k, key.a) || !describe(&b, key, key.k, key.n, key.b) ||
        !describe(&c, key, key.m, key.n, key.c) ||
        (key.bias && !describe(&bias, key, 1, key.n, flat)))
        return;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t primitive_desc = nullptr;
    if (dnnl_matmul_desc_init(&desc, &a, &b, key.bias ? &bias : nullptr, &c) != dnnl_success ||
        dnnl_primitive_desc_create(&primitive_desc, &desc, nullptr, g_engine, nullptr) !=
            dnnl_success)
        return;
    GemmEntry made = {};
    bool good = dnnl_primitive_create(&made.primitive, primitive_desc) == dnnl_success &&
                make_memory(&made.a, &a) && make_memory(&made.b, &b) && make_memory(&made.c, &c) &&
                (!key.bias || make_memory(&made.bias, &bias));
    dnnl_primitive_desc_destroy(primitive_desc);
    if (!good) return clear(&made);
    entry->primitive = made.primitive;
    entry->a = made.a;
    entry->b = made.b;
    entry->c = made.c;
    entry->bias = made.bias;
}

GemmEntry *find_gemm(const GemmKey &key)
{
    GemmCache *cache = t_cache ? t_cache : make_cache();
    if (!cache) return nullptr;
    GemmEntry *set = cache->entries[hash(key) % kSets], *oldest = set;
    for (int way = 0; way < kWays; way++) {
        GemmEntry *entry = set + way;
        if (entry->used && memcmp(&entry->key, &key, sizeof(key)) == 0) {
            entry->used = ++cache->clock;
            return entry;
        }
        if (entry->used < oldest->used) oldest = entry;
    }
    if (oldest->primitive) clear(oldest);
    oldest->key = key;
    oldest->used = ++cache->clock;
    make_entry(oldest, key);
    return oldest;
}

dnnl_stream_t gemm_stream()
{
    return t_cache->stream;
}

}  // namespace yoke::cpu
