#include "bindings/lua/src/runtime/script.h"

#include <pthread.h>
#include <string.h>

#include "bindings/lua/src/runtime/error.h"

static const char kPackage; /* registry key of the source's beginning, "@/…/yoke/" */

/* Line noted by the calling thread, of any state. */
static __thread const lua_Debug *noted;

/* State whose line is looked up when it is asked for, in the mode that looks for NaN; NULL: none. */
static __thread lua_State *looked_up;

/* Finds the innermost line of the script outside the package. Returns 0 if there is none. Needs two places on the
 * stack, and leaves it. */
static int find_line(lua_State *L, lua_Debug *at)
{
    size_t length = 0;
    int found = 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kPackage);
    const char *const package = lua_tolstring(L, -1, &length);
    for (int level = 0; !found && lua_getstack(L, level, at); ++level) {
        lua_getinfo(L, "S", at);
        if (*at->what == 'C' || (package && strncmp(at->source, package, length) == 0)) continue;
        found = lua_getinfo(L, "ln", at);
    }
    lua_pop(L, 1);
    return found;
}

static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
{
    static __thread lua_Debug here;
    (void)user;
    const lua_Debug *at = noted;
    if (!at && looked_up && lua_checkstack(looked_up, 2) && find_line(looked_up, &here)) at = &here;
    if (!at) return 0;
    *file = *at->source == '@' ? at->source + 1 : at->short_src;
    *line = at->currentline;
    *function = at->name ? at->name : *at->what == 'm' ? "main chunk" : NULL;
    return 1;
}

void yl_tell_line_of(lua_State *L)
{
    looked_up = L;
}

/* Makes the library ask for the noted line. A provider set by a host program since then stays. */
static void set_provider(void)
{
    yoke_set_stack_provider(tell, NULL, NULL);
}

int yl_tell_lines(lua_State *L)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    lua_Debug at;
    if (!lua_getstack(L, 1, &at) || !lua_getinfo(L, "S", &at)) return 0;
    const char *const end = *at.source == '@' ? strrchr(at.source, '/') : NULL;
    lua_pushlstring(L, at.source, end ? (size_t)(end + 1 - at.source) : strlen(at.source));
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kPackage);
    pthread_once(&once, set_provider);
    return 0;
}

void yl_note_line(lua_State *L, lua_Debug *at)
{
    if (find_line(L, at)) noted = at;
}

void yl_forget_line(void)
{
    noted = NULL;
}
