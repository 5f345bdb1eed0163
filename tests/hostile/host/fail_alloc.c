/*
 * Library for LD_PRELOAD: makes the n-th allocation of libyoke fail, on any thread. Allocations of libraries called
 * by libyoke count, too. The caller is read off the stack. The first code outside these libraries decides, so
 * allocations of the host program go on, including a script interpreter's.
 *
 * Some allocations do not count, because no caller can repair their failure. The dynamic loader keeps thread-local
 * data, and ends the process if there is no memory. libgomp does so, too, and oneDNN writes to missing memory. For
 * these two, an allocation does not count if libyoke has made sure of free memory: it took an equal block just before
 * and gave it back (kernels/cpu/onednn_room.h).
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "tests/hostile/host/fail_alloc.h"

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* ---- the caller of an allocation --------------------------------------------------------------------------------- */

enum { kHost, kYoke, kEngine, kOpenmp, kDnn, kLoader };

typedef struct Range {
    uintptr_t begin, end;
    int owner;
} Range;
static Range g_ranges[512];
static int g_range_count;

static int owner_of_name(const char *name)
{
    static const struct {
        const char *part;
        int owner;
    } kNames[] = {
        {"/libyoke.so", kYoke}, {"/libyoke_cuda", kYoke}, {"/libgomp.so", kOpenmp},
        {"/ld-linux", kLoader}, {"/libc.so", kEngine},    {"/libstdc++", kEngine},
        {"/libgcc_s", kEngine}, {"/libm.so", kEngine},    {"/libdnnl", kDnn},
        {"/libz.so", kEngine},  {"fail_alloc", kEngine},
    };
    for (size_t i = 0; i < sizeof kNames / sizeof kNames[0]; ++i)
        if (strstr(name, kNames[i].part)) return kNames[i].owner;
    return kHost;
}

static int add_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum && g_range_count < 512; ++i) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        g_ranges[g_range_count++] =
            (Range){begin, begin + part->p_memsz, owner_of_name(info->dlpi_name)};
    }
    return 0;
}

typedef struct Asker {
    int owner;       /* owner of the first code that is no engine */
    uintptr_t place; /* address in this code */
    int by_openmp, by_dnn, by_loader;
} Asker;

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *argument)
{
    Asker *asker = argument;
    const uintptr_t at = _Unwind_GetIP(context);
    int owner = kEngine; /* code that oneDNN wrote */
    for (int i = 0; i < g_range_count; ++i)
        if (at >= g_ranges[i].begin && at < g_ranges[i].end) owner = g_ranges[i].owner;
    asker->by_openmp |= owner == kOpenmp;
    asker->by_dnn |= owner == kDnn;
    asker->by_loader |= owner == kLoader;
    if (owner != kHost && owner != kYoke) return _URC_NO_REASON;
    asker->owner = owner;
    asker->place = at;
    return _URC_NORMAL_STOP;
}

/* ---- blocks that libyoke has and did not have before ------------------------------------------------------------- */

enum { kPlaces = 1 << 17 };
static struct {
    void *block;
    uintptr_t asker;
    long number;
} g_blocks[kPlaces];
static atomic_flag g_lock = ATOMIC_FLAG_INIT;
static long g_block_count, g_number;

static void lock_blocks(void)
{
    while (atomic_flag_test_and_set(&g_lock)) {
    }
}
static size_t home_of(const void *block)
{
    return (size_t)(((uintptr_t)block * 0x9E3779B97F4A7C15u) >> 47) % kPlaces;
}

static void note_block(void *block, uintptr_t asker)
{
    lock_blocks();
    size_t at = home_of(block);
    while (g_blocks[at].block && g_blocks[at].block != block) at = (at + 1) % kPlaces;
    g_block_count += !g_blocks[at].block;
    g_blocks[at].block = block;
    g_blocks[at].asker = asker;
    g_blocks[at].number = ++g_number;
    atomic_flag_clear(&g_lock);
}

static void forget_block(const void *block)
{
    if (!block) return;
    lock_blocks();
    size_t hole = home_of(block);
    while (g_blocks[hole].block && g_blocks[hole].block != block) hole = (hole + 1) % kPlaces;
    if (g_blocks[hole].block) {
        --g_block_count;
        for (size_t at = (hole + 1) % kPlaces; g_blocks[at].block; at = (at + 1) % kPlaces) {
            const size_t home = home_of(g_blocks[at].block);
            if ((at + kPlaces - home) % kPlaces < (at + kPlaces - hole) % kPlaces) continue;
            g_blocks[hole] = g_blocks[at];
            hole = at;
        }
        g_blocks[hole].block = NULL;
    }
    atomic_flag_clear(&g_lock);
}

/* ---- the n-th allocation ----------------------------------------------------------------------------------------- */

static atomic_int g_armed;
static atomic_long g_count, g_wanted;
static atomic_int g_failed;
static _Thread_local int t_busy __attribute__((tls_model("initial-exec")));
/* Flags by size, in steps of 16: this thread has given back a block, and taken none since. */
static _Thread_local unsigned char t_given[64] __attribute__((tls_model("initial-exec")));

/* Rest of a large block that this thread has just given back. */
static _Thread_local size_t t_room __attribute__((tls_model("initial-exec")));
enum { kLarge = 256 * 1024 };

static size_t step_of(size_t bytes)
{
    const size_t step = (bytes + 8 + 15) / 16; /* as glibc rounds, with its own word */
    return step < 64 ? step : 0;
}

/* Returns 1 if the allocation is to fail. *place becomes the caller's place, 0 for a caller that does not count. */
static int refuses(size_t bytes, uintptr_t *place)
{
    *place = 0;
    const int has_one = t_given[step_of(bytes)];
    t_given[step_of(bytes)] = 0;
    if (!g_armed || t_busy) return 0;
    t_busy = 1;
    Asker asker = {kHost, 0, 0, 0, 0};
    _Unwind_Backtrace(look_at_frame, &asker);
    t_busy = 0;
    if (asker.owner != kYoke || asker.by_loader) return 0;
    *place = asker.place;
    if (asker.by_openmp && has_one && step_of(bytes)) return 0;
    if (asker.by_dnn && bytes <= t_room) {
        t_room -= bytes;
        return 0;
    }
    if (!asker.by_dnn) t_room = 0;
    if (atomic_fetch_add(&g_count, 1) + 1 != g_wanted) return 0;
    g_failed = 1;
    return 1;
}

static void *noted(void *block, uintptr_t place)
{
    if (block && place) note_block(block, place);
    if (!block) errno = ENOMEM;
    return block;
}

void *malloc(size_t bytes)
{
    uintptr_t place;
    void *block = refuses(bytes, &place) ? NULL : __libc_malloc(bytes);
    return noted(block, place);
}

void *calloc(size_t count, size_t bytes)
{
    uintptr_t place;
    void *block = refuses(count * bytes, &place) ? NULL : __libc_calloc(count, bytes);
    return noted(block, place);
}

void *realloc(void *block, size_t bytes)
{
    uintptr_t place;
    if (refuses(bytes, &place)) return noted(NULL, place);
    void *moved = __libc_realloc(block, bytes);
    if (moved) forget_block(block);
    return noted(moved, place);
}

void *memalign(size_t alignment, size_t bytes)
{
    uintptr_t place;
    void *block = refuses(bytes, &place) ? NULL : __libc_memalign(alignment, bytes);
    return noted(block, place);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *block = memalign(alignment, bytes);
    if (!block) return ENOMEM;
    *out = block;
    return 0;
}

void free(void *block)
{
    const size_t bytes = block ? malloc_usable_size(block) : 0;
    if (block) t_given[step_of(bytes)] = 1;
    if (bytes >= kLarge) t_room = bytes;
    forget_block(block);
    __libc_free(block);
}

/* ---- for the test ------------------------------------------------------------------------------------------------ */

/* Functions for Lua: package.loadlib(path, "fail_alloc_arm_lua")(n), and _disarm_lua, which returns whether an
 * allocation failed. */
typedef struct lua_State lua_State;
int fail_alloc_arm_lua(lua_State *L);
int fail_alloc_disarm_lua(lua_State *L);
__attribute__((weak)) long long lua_tointegerx(lua_State *, int, int *);
__attribute__((weak)) void lua_pushboolean(lua_State *, int);

void fail_alloc_arm(long n)
{
    g_range_count = 0;
    dl_iterate_phdr(add_ranges, NULL);
    g_count = 0;
    g_wanted = n;
    g_failed = 0;
    g_armed = 1;
}

int fail_alloc_disarm(void)
{
    g_armed = 0;
    return g_failed;
}

long fail_alloc_blocks(void)
{
    return g_block_count;
}

long fail_alloc_number(void)
{
    return g_number;
}

void fail_alloc_tell(long number)
{
    Dl_info info;
    for (int i = 0; i < kPlaces; ++i)
        if (g_blocks[i].block && g_blocks[i].number > number &&
            dladdr((void *)g_blocks[i].asker, &info))
            fprintf(stderr, "  block %ld of %zu bytes: %s+%#lx %s\n", g_blocks[i].number,
                    malloc_usable_size(g_blocks[i].block), info.dli_fname,
                    (unsigned long)(g_blocks[i].asker - (uintptr_t)info.dli_fbase),
                    info.dli_sname ? info.dli_sname : "");
}

int fail_alloc_arm_lua(lua_State *L)
{
    fail_alloc_arm((long)lua_tointegerx(L, 1, NULL));
    return 0;
}

int fail_alloc_disarm_lua(lua_State *L)
{
    lua_pushboolean(L, fail_alloc_disarm());
    return 1;
}
