// recorder.c: preloaded before a library with instrumented functions (-finstrument-functions). Records each
// function's first entry between two marks, in the marking thread. The interpreter's own calls are recorded, too.
#include <stddef.h>
#include <stdint.h>

#define SLOTS (1u << 16)
#define UNSEEN __attribute__((no_instrument_function))

static uintptr_t seen[SLOTS], order[SLOTS];
static size_t count;
static __thread int is_recording;

UNSEEN static void note(uintptr_t what)
{
    size_t slot = what * 0x9e3779b97f4a7c15u >> 48;
    while (seen[slot] && seen[slot] != what) slot = (slot + 1) % SLOTS;
    if (seen[slot] || count == SLOTS / 2) return;
    seen[slot] = what;
    order[count++] = what;
}

UNSEEN void trip_begin(void)
{
    is_recording = 1;
}
// Notes a function of the script by a number, which is lower than any address.
UNSEEN void trip_note(size_t number)
{
    if (is_recording) note(number + 1);
}
UNSEEN size_t trip_end(void)
{
    is_recording = 0;
    return count;
}
UNSEEN uintptr_t trip_entry(size_t index)
{
    return order[index];
}

UNSEEN void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_enter(void *function, void *site)
{
    (void)site;
    if (is_recording) note((uintptr_t)function);
}
UNSEEN void __cyg_profile_func_exit(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site)
{
    (void)function, (void)site;
}
