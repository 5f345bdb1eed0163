// Properties of a collective call that all engines need: kinds of ops, and checks of the arguments.
//
// Contract: compiled once a module, in the baseline instruction set.
#pragma once

#include "core/backend/comm.h"

namespace yoke::kernels {

inline bool is_message(int32_t op)
{
    return op == YOKE_COMM_SEND || op == YOKE_COMM_RECV;
}

inline bool has_peer(int32_t op)
{
    return is_message(op) || op == YOKE_COMM_REDUCE || op == YOKE_COMM_BROADCAST ||
           op == YOKE_COMM_GATHER || op == YOKE_COMM_SCATTER;
}

inline bool reduces(int32_t op)
{
    return op == YOKE_COMM_ALL_REDUCE || op == YOKE_COMM_REDUCE || op == YOKE_COMM_REDUCE_SCATTER;
}

// Returns the name of a collective as the API has it, such as "all_reduce". For an unknown number returns "no known
// op".
const char *call_name(int32_t op);

// Engine that checks a call, such as "cpu", with its rank and the communicator's size.
struct Asker {
    const yoke_host *host;
    const char *engine;
    int32_t rank, size;
};

// Checks op, count, dtype, peer and reduction. Reports the first wrong value to the host and returns
// YOKE_E_UNSUPPORTED, YOKE_E_VALUE or YOKE_E_TYPE. The core checks the calls of its own callers before.
yoke_status check_arguments(const Asker &asker, const yoke_collective &call);

// Reports in full how this rank's call and a peer's call differ. Returns YOKE_E_COMM.
yoke_status tell_mismatch(const Asker &asker, const yoke_comm_signature &mine, int32_t peer,
                          const yoke_comm_signature &theirs);

// Writes an id of YOKE_COMM_ID_BYTES random bytes, so other programs cannot guess the id. If the system gives no
// random bytes, reports this and returns YOKE_E_IO.
yoke_status draw_id(const yoke_host *host, const char *engine, void *id);

}  // namespace yoke::kernels
