// Sends and receives. A header precedes each message; the elements are received after the headers have been compared.
#include <cstring>

#include "kernels/mpi/flow.h"

namespace yoke::mpi {

namespace {

int data_tag(const Signature &signature)
{
    return kFirstDataTag + static_cast<int>(signature.sequence % kDataTags);
}

int64_t bytes_of(const yoke_collective &call)
{
    return call.count * kernels::dtype_bytes(call.dtype);
}

// A message that is to come.
struct Incoming {
    const yoke_collective &call;
    size_t operation;  // receives the header
    const Signature *header;
    bool is_taken = false;
};

struct Messages {
    Comm &comm;
    Flow &flow;
    std::vector<Incoming> incoming = {};

    void begin(const yoke_collective &call)
    {
        if (call.op == YOKE_COMM_SEND) {
            const Signature &header = comm.buffers.headers.emplace_back(*call.signature);
            flow.send(&header, sizeof header, call.peer, kHeaderTag, call.peer);
            flow.send(call.in, bytes_of(call), call.peer, data_tag(header), call.peer);
            return;
        }
        // If the other rank makes a collective instead, it may send further ranks' signatures.
        const auto bytes = sizeof(Signature) * static_cast<size_t>(comm.size);
        char *header = comm.buffers.received.emplace_back().reserve(bytes);
        incoming.push_back(
            {call, flow.operations().size(), reinterpret_cast<const Signature *>(header)});
        flow.receive(header, static_cast<int64_t>(bytes), call.peer, kHeaderTag);
    }

    yoke_status take(Incoming &awaited)
    {
        const yoke_collective &call = awaited.call;
        awaited.is_taken = true;
        if (memcmp(awaited.header, call.signature, sizeof(Signature)) != 0)
            return flow.fail_mismatch(call.peer, *call.signature, *awaited.header);
        flow.receive(call.out, bytes_of(call), call.peer, data_tag(*call.signature));
        return YOKE_OK;
    }

    yoke_status take_all(bool *is_done)
    {
        for (Incoming &one : incoming) {
            if (one.is_taken || !flow.operations()[one.operation].is_done) continue;
            *is_done = false;
            if (yoke_status status = take(one)) return status;
        }
        return YOKE_OK;
    }
};

}  // namespace

yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count)
{
    comm.has_messages = true;
    comm.buffers.headers.clear();
    comm.buffers.received.clear();
    Flow flow(comm, calls[0]);
    Messages messages{comm, flow};
    for (size_t i = 0; i < count; ++i) messages.begin(calls[i]);
    for (bool is_done = false;;) {
        if (yoke_status status = flow.look(&is_done)) return status;
        if (yoke_status status = messages.take_all(&is_done)) return status;
        if (is_done) return YOKE_OK;
        if (yoke_status status = flow.rest()) return status;
    }
}

}  // namespace yoke::mpi
