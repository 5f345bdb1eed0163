/* Problems of this machine's GPUs: yoke.doctor and yoke.doctor_record. */
#include "bindings/lua/src/leaves.h"
#include "bindings/lua/src/runtime/class.h"
#include "bindings/lua/src/runtime/fields.h"

#include "yoke/doctor.h"

#include <string.h>

static const char *const kStatus[] = {"ok", "warn", "fail", "skip"};

/* Releases a handle. The handle exists while its texts are copied, so that an error cannot leak the object. */
static void release_report(void *report)
{
    yoke_report_release(report);
}

static const YlClass kReport = {"yoke.report", "a report", NULL, release_report, 0};

/* Reads the options in the table at `index`, which may be absent, and returns the flags. Raises for other options. */
static uint32_t options_arg(lua_State *L, Binding *b, int index, const char *call, double *deadline)
{
    uint32_t flags = 0;
    if (lua_isnoneornil(L, index)) return 0;
    const Target target = {b, call, "options"};
    if (!lua_istable(L, index))
        return (uint32_t)yl_wrong_type(L, target, index, "a table of options");
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = yl_key(L, -2);
        const int value = lua_gettop(L);
        if (!strcmp(key, "probe")) {
            flags |= yl_bool_arg(L, b, value, call, "probe") ? YOKE_DOCTOR_PROBE : 0u;
        } else if (!strcmp(key, "redact")) {
            flags |= yl_bool_arg(L, b, value, call, "redact") ? YOKE_DOCTOR_REDACT : 0u;
        } else if (!strcmp(key, "deadline")) {
            *deadline = yl_number_arg(L, b, value, call, "deadline");
        } else {
            static const char *const names[] = {"probe", "redact", "deadline"};
            yl_raise(L, b, YOKE_E_VALUE, call,
                     "there is no option '%s'%s; the options are probe, redact and deadline", key,
                     yl_meant(L, key, names, 3));
        }
    }
    return flags;
}

static void push_check(lua_State *L, const yoke_check *check)
{
    lua_createtable(L, 0, 8);
    yl_set_integer(L, "number", check->number);
    yl_set_integer(L, "card", check->card);
    yl_set_text(L, "id", check->id);
    yl_set_text(L, "title", check->title);
    yl_set_text(L, "status", kStatus[check->status]);
    yl_set_text(L, "evidence", check->evidence);
    yl_set_text(L, "remedy", check->remedy);
    yl_set_text(L, "url", check->url);
}

/* Implements yoke.doctor{probe=, redact=, deadline=}: returns {checks = {…}, exit_code = 0}. */
static int doctor(lua_State *L)
{
    Binding *b = yl_binding(L);
    double deadline = 0;
    yl_arg_count(L, b, "doctor", 0, 1);
    const uint32_t flags = options_arg(L, b, 1, "doctor", &deadline);
    yoke_report **box = yl_push_handle(L, &kReport);
    yl_check(L, b, yoke_doctor(flags, deadline, box));
    const int32_t count = yoke_report_count(*box);
    lua_createtable(L, 0, 2);
    lua_createtable(L, count, 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_check check = {.struct_size = sizeof check};
        yl_check(L, b, yoke_report_check(*box, i, &check));
        push_check(L, &check);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "checks");
    yl_set_integer(L, "exit_code", yoke_report_exit_code(*box));
    return 1;
}

/* Implements yoke.doctor_record(folder, {probe=, redact=, deadline=}): returns true, or nil and why not. */
static int doctor_record(lua_State *L)
{
    Binding *b = yl_binding(L);
    yl_arg_count(L, b, "doctor_record", 1, 2);
    const char *folder = yl_string_arg(L, b, 1, "doctor_record", "folder");
    double deadline = 0;
    const uint32_t flags = options_arg(L, b, 2, "doctor_record", &deadline);
    if (yoke_doctor_record_v2(folder, flags, deadline)) return yl_nil_error(L, b);
    lua_pushboolean(L, 1);
    return 1;
}

void yl_open_doctor(lua_State *L, Binding *b)
{
    static const luaL_Reg functions[] = {
        {"doctor", doctor}, {"doctor_record", doctor_record}, {NULL, NULL}};
    yl_open_class(L, b, &kReport, NULL, NULL);
    yl_set_functions(L, b, functions);
}
