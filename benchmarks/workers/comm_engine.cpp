// Worker of the collectives' benchmark: all_reduce of float32 by the host engine alone, between two processes.
//
// A case is "HOW BYTES WHAT", as in "staged 26214400 wall". HOW is in_place (memory of mem_alloc), staged (ordinary
// memory, through shared memory) or tcp; WHAT is wall, or cpu: the processor seconds of both processes together. The
// table is called as the core calls it, so that what the core adds is measured elsewhere.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/backend/backend.h"

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

const yoke_host kHost = {sizeof(yoke_host),
                         YOKE_BACKEND_ABI,
                         tell,
                         [](int32_t, const char *) {},
                         config,
                         [] { return int32_t{1}; },
                         [](void *, uint64_t, void *, void **) { return YOKE_E_UNSUPPORTED; },
                         [](void *, void *, void *) {}};

void check(bool fine, const char *what)
{
    if (fine) return;
    fprintf(stderr, "%s failed\n", what);
    exit(1);
}

// This process's end of the pair, and which it is.
struct Side {
    int rank, socket;

    void swap(const void *mine, void *theirs, size_t bytes) const
    {
        check(write(socket, mine, bytes) == static_cast<ssize_t>(bytes), "write");
        for (size_t got = 0; got < bytes;) {
            const ssize_t now = read(socket, static_cast<char *>(theirs) + got, bytes - got);
            if (now <= 0) exit(rank ? 0 : 1);  // the other one has ended
            got += static_cast<size_t>(now);
        }
    }
};

yoke_status all_gather(void *user, const void *mine, uint64_t bytes, void *all)
{
    const Side &side = *static_cast<Side *>(user);
    char *to = static_cast<char *>(all);
    memcpy(to + side.rank * bytes, mine, bytes);
    side.swap(mine, to + (1 - side.rank) * bytes, bytes);
    return YOKE_OK;
}

// A communicator with its two tensors.
class Pair {
public:
    Pair(const yoke_backend_comm &engine, Side &side, const std::string &how, uint64_t bytes)
        : engine_(engine), bytes_(bytes), data_(bytes)
    {
        g_shares_memory = how != "tcp";
        char ids[2][YOKE_COMM_ID_BYTES], id[YOKE_COMM_ID_BYTES];
        check(engine.unique_id(id) == YOKE_OK, "unique_id");
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
        check(engine.init(&init, &comm_) == YOKE_OK, "init");
        tensor_ = data_.data();
        if (how == "in_place")
            check(engine.mem_alloc(comm_, bytes, &tensor_) == YOKE_OK, "mem_alloc");
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
            check(engine_.call(comm_, &call) == YOKE_OK, "all_reduce");
        }
    }

private:
    const yoke_backend_comm &engine_;
    void *comm_ = nullptr;
    uint64_t bytes_, calls_ = 0;
    std::vector<char> data_;
    void *tensor_ = nullptr;
};

double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double cpu()
{
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval &t) {
        return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Order {
    char how[16], what[8];
    unsigned long long bytes;
    long count;
};

// Both ranks: what one repetition took, of the processor both together.
double measure(const yoke_backend_comm &engine, Side &side, const Order &order)
{
    static std::map<std::string, Pair> pairs;
    const std::string key = order.how + std::to_string(order.bytes);
    Pair &pair = pairs.try_emplace(key, engine, side, order.how, order.bytes).first->second;
    pair.all_reduce(3);
    const double start = now(), busy = cpu();
    pair.all_reduce(order.count);
    const double mine[2] = {now() - start, cpu() - busy};
    double theirs[2];
    side.swap(mine, theirs, sizeof mine);
    const double all = strcmp(order.what, "cpu") == 0 ? mine[1] + theirs[1] : mine[0];
    return all / static_cast<double>(order.count);
}

}  // namespace

int main()
{
    int sockets[2];
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    const int rank = fork() == 0;
    close(sockets[1 - rank]);
    Side side{rank, sockets[rank]};
    const yoke_backend *backend;
    check(yoke_cpu_backend_get(&kHost, &backend) == YOKE_OK, "the cpu backend");
    if (rank == 0) {
        setvbuf(stdout, nullptr, _IOLBF, 0);
        printf("Yoke's host engine, %s\n", backend->build_info());
    }
    char line[128];
    for (;;) {
        Order order = {}, other;
        if (rank == 0) {
            if (!fgets(line, sizeof line, stdin)) return 0;
            if (sscanf(line, "%15s %llu %7s %ld", order.how, &order.bytes, order.what,
                       &order.count) != 4)
                return 1;
        }
        side.swap(&order, &other, sizeof order);
        const double seconds = measure(*backend->comm, side, rank ? other : order);
        if (rank == 0) printf("%.17g\n", seconds);
    }
}
