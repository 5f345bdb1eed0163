// What engines of collectives ask of a call, alike: its ops, and whether its arguments are sound.
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

// Returns the name of a collective as the API has it: "all_reduce".
const char *call_name(int32_t op);

// Who asks: "cpu", with its place in the communicator.
struct Asker {
    const yoke_host *host;
    const char *engine;
    int32_t rank, size;
};

// Of op, count, dtype, peer and reduction; the core has looked at them for its own callers.
yoke_status check_arguments(const Asker &asker, const yoke_collective &call);

// Tells that this rank's call and that of a peer differ, in full. Returns YOKE_E_COMM.
yoke_status tell_mismatch(const Asker &asker, const yoke_comm_signature &mine, int32_t peer,
                          const yoke_comm_signature &theirs);

// YOKE_COMM_ID_BYTES that nobody can guess.
yoke_status draw_id(const yoke_host *host, const char *engine, void *id);

}  // namespace yoke::kernels
