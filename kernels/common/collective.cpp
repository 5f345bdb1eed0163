#include "kernels/common/collective.h"

#include <sys/random.h>

#include <cstdarg>

#include "kernels/common/combination.h"
#include "kernels/common/names.h"
#include "kernels/common/support.h"

namespace yoke::kernels {

__attribute__((format(printf, 3, 4))) static yoke_status refuse(const yoke_host *host,
                                                                yoke_status status,
                                                                const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const yoke_status told = tell(host, status, 0, format, arguments);
    va_end(arguments);
    return told;
}

yoke_status check_arguments(const Asker &asker, const yoke_collective &call)
{
    const char *who = asker.engine;
    if (call.op < 0 || call.op >= YOKE_COMM_OP_COUNT)
        return refuse(asker.host, YOKE_E_UNSUPPORTED, "%s: there is no collective number %d", who,
                      call.op);
    if (call.count < 0 ||
        (call.op != YOKE_COMM_BARRIER && (call.dtype < YOKE_F64 || call.dtype > YOKE_F8_E5M2)))
        return refuse(asker.host, YOKE_E_VALUE,
                      "%s: a collective cannot have %lld elements of dtype number %d", who,
                      static_cast<long long>(call.count), call.dtype);
    if (has_peer(call.op) && (call.peer < 0 || call.peer >= asker.size ||
                              (is_message(call.op) && call.peer == asker.rank)))
        return refuse(asker.host, YOKE_E_VALUE, "%s: rank %d of %d has no peer %d", who, asker.rank,
                      asker.size, call.peer);
    if (reduces(call.op) && !can_reduce(call.dtype, call.reduction))
        return refuse(asker.host, YOKE_E_TYPE,
                      "%s: reduction number %d is not defined for %s; cast it first", who,
                      call.reduction, dtype_name(call.dtype));
    return YOKE_OK;
}

const char *call_name(int32_t op)
{
    static const char *const kNames[] = {"barrier",    "all_reduce", "reduce",  "broadcast",
                                         "all_gather", "gather",     "scatter", "reduce_scatter",
                                         "all_to_all", "send",       "recv"};
    return op >= 0 && op < YOKE_COMM_OP_COUNT ? kNames[op] : "an unknown collective";
}

yoke_status tell_mismatch(const Asker &asker, const yoke_comm_signature &mine, int32_t peer,
                          const yoke_comm_signature &theirs)
{
    const auto number = [](uint64_t x) { return static_cast<unsigned long long>(x); };
    const auto elements = [](int64_t x) { return static_cast<long long>(x); };
    return refuse(
        asker.host, YOKE_E_COMM,
        "%s: this rank called %s, call %llu of group %llu: %lld elements of dtype %d, reduction %d, root %d; rank %d called %s, call %llu of group %llu: %lld elements of dtype %d, reduction %d, root %d",
        asker.engine, call_name(mine.op), number(mine.sequence), number(mine.group),
        elements(mine.count), mine.dtype, mine.reduction, mine.root, peer, call_name(theirs.op),
        number(theirs.sequence), number(theirs.group), elements(theirs.count), theirs.dtype,
        theirs.reduction, theirs.root);
}

yoke_status draw_id(const yoke_host *host, const char *engine, void *id)
{
    if (getrandom(id, YOKE_COMM_ID_BYTES, 0) == YOKE_COMM_ID_BYTES) return YOKE_OK;
    return refuse(host, YOKE_E_IO,
                  "%s: cannot get random numbers from the system for the id of a group", engine);
}

}  // namespace yoke::kernels
