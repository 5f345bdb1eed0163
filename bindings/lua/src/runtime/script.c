#include "bindings/lua/src/runtime/script.h"

#include <pthread.h>
#include <string.h>

#include "bindings/lua/src/runtime/error.h"

static const char kPackage; /* registry key of the source's beginning, "@/…/yoke/" */

/* Line noted by the calling thread, of any state. */
static __thread const lua_Debug *noted;

static int32_t tell(void *user, const char **file, int32_t *line, const char **function)
{
    (void)user;
    const lua_Debug *const at = noted;
    if (!at) return 0;
    *file = *at->source == '@' ? at->source + 1 : at->short_src;
    *line = at->currentline;
    *function = at->name ? at->name : *at->what == 'm' ? "main chunk" : NULL;
    return 1;
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
    size_t length = 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kPackage);
    const char *const package = lua_tolstring(L, -1, &length);
    for (int level = 0; lua_getstack(L, level, at); ++level) {
        lua_getinfo(L, "S", at);
        if (*at->what == 'C' || (package && strncmp(at->source, package, length) == 0)) continue;
        lua_getinfo(L, "ln", at);
        noted = at;
        break;
    }
    lua_pop(L, 1);
}

void yl_forget_line(void)
{
    noted = NULL;
}
