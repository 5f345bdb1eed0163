// Worker of comm.py: all_reduce of float32 by the host engine alone, between two processes.
//
// HOW is in_place (memory of mem_alloc), staged (ordinary memory, through shared memory) or tcp. The table is called as
// the core calls it: what a group's call takes longer is what the core adds.
#include <map>
#include <string>
#include <vector>

#include "comm_pair.h"
#include "core/backend/comm.h"

extern "C" yoke_status yoke_cpu_backend_get(const yoke_host *host, const yoke_backend **out);

namespace {

bool g_shares_memory = true;

yoke_status tell(yoke_status status, int64_t, const char *message)
{
    fprintf(stderr, "%s\n", message);
    return status;
}

const char *config(const char *key)
{
    return !g_shares_memory && !strcmp(key, "YOKE_COMM_SHM") ? "0" : nullptr;
}

const yoke_host kHost = {
    sizeof(yoke_host),
    YOKE_BACKEND_ABI,
    tell,
    [](int32_t, const char *) {},
    config,
    [] { return int32_t{1}; },
    [](void *, uint64_t, void *, uint32_t, void **) { return YOKE_E_UNSUPPORTED; },
    [](void *, void *, void *) {}};

yoke_status all_gather(void *user, const void *mine, uint64_t bytes, void *all)
{
    const auto &side = *static_cast<const pair_side *>(user);
    char *to = static_cast<char *>(all);
    memcpy(to + side.rank * bytes, mine, bytes);
    pair_swap(&side, mine, to + (1 - side.rank) * bytes, bytes);
    return YOKE_OK;
}

// A communicator with its two tensors.
class Pair {
public:
    Pair(const yoke_backend_comm &engine, pair_side &side, const std::string &how, uint64_t bytes)
        : engine_(engine), bytes_(bytes), data_(bytes)
    {
        g_shares_memory = how != "tcp";
        char ids[2][YOKE_COMM_ID_BYTES], id[YOKE_COMM_ID_BYTES];
        pair_check(engine.unique_id(id, 20) == YOKE_OK, "unique_id");
        all_gather(&side, id, sizeof id, ids);
        yoke_comm_member init = {};
        init.struct_size = sizeof init;
        init.rank = side.rank;
        init.size = 2;
        init.id = ids[0];
        init.address = "127.0.0.1";
        init.timeout_s = 30;
        init.all_gather = all_gather;
        init.user = &side;
        pair_check(engine.init(&init, &comm_) == YOKE_OK, "init");
        tensor_ = data_.data();
        if (how == "in_place")
            pair_check(engine.mem_alloc(comm_, bytes, &tensor_, nullptr) == YOKE_OK, "mem_alloc");
        memset(tensor_, 0, bytes);
    }

    void all_reduce(long count)
    {
        for (; count > 0; --count) {
            yoke_comm_signature signature = {};
            signature.sequence = ++calls_;
            signature.count = static_cast<int64_t>(bytes_ / sizeof(float));
            signature.op = YOKE_COMM_ALL_REDUCE;
            signature.dtype = YOKE_F32;
            yoke_collective call = {};
            call.struct_size = sizeof call;
            call.op = YOKE_COMM_ALL_REDUCE;
            call.signature = &signature;
            call.dtype = YOKE_F32;
            call.reduction = YOKE_REDUCE_SUM;
            call.peer = -1;
            call.count = signature.count;
            call.in = call.out = tensor_;
            call.timeout_s = 30;
            pair_check(engine_.call(comm_, &call) == YOKE_OK, "all_reduce");
        }
    }

private:
    const yoke_backend_comm &engine_;
    void *comm_ = nullptr;
    uint64_t bytes_, calls_ = 0;
    std::vector<char> data_;
    void *tensor_ = nullptr;
};

struct Pairs {
    const yoke_backend_comm &engine;
    pair_side side;
    std::map<std::string, Pair> of;
};

void run(void *user, const char *how, unsigned long long bytes, long count)
{
    auto &pairs = *static_cast<Pairs *>(user);
    const std::string key = how + std::to_string(bytes);
    pairs.of.try_emplace(key, pairs.engine, pairs.side, how, bytes).first->second.all_reduce(count);
}

}  // namespace

int main()
{
    const pair_side side = pair_fork();
    const yoke_backend *backend;
    pair_check(yoke_cpu_backend_get(&kHost, &backend) == YOKE_OK, "the cpu backend");
    const std::string about = std::string("Yoke's host engine, ") + backend->build_info();
    Pairs pairs{*backend->comm, side, {}};
    pair_serve(&side, about.c_str(), run, &pairs);
}
