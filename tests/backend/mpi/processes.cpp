// Ranks that are processes of an MPI job, started by mpirun. The ranks exchange data on a board in a file named by
// the environment. The suite's data must not go through the engine under test.
#include "tests/backend/ranks.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace yoke::test {

const bool kEngineKnowsDeaths = false;

namespace {

constexpr int kMostRanks = 4;
constexpr uint64_t kMostBytes = 2048;

// Zeros at first.
struct Board {
    std::atomic<uint32_t> came, generation;
    char cells[kMostRanks][kMostBytes];

    void wait(int size)
    {
        const uint32_t now = generation.load();
        if (came.fetch_add(1) + 1 == static_cast<uint32_t>(size)) {
            came = 0;
            ++generation;
            return;
        }
        while (generation.load() == now) usleep(50);
    }
};
// A board for all processes, and a board for groups of each size.
struct Boards {
    Board all, of_size[kMostRanks];
};

Boards &boards()
{
    static Boards *const mapped = [] {
        const char *path = getenv("YOKE_TEST_BOARD");
        const int fd = open(path ? path : "", O_RDWR | O_CLOEXEC);
        void *at = fd < 0 || ftruncate(fd, sizeof(Boards))
                       ? MAP_FAILED
                       : mmap(nullptr, sizeof(Boards), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            fprintf(stderr,
                    "YOKE_TEST_BOARD names no file: tests/backend/mpi/run.sh starts this\n");
            _exit(2);
        }
        return static_cast<Boards *>(at);
    }();
    return *mapped;
}

class ProcessRendezvous final : public Rendezvous {
public:
    explicit ProcessRendezvous(int size) : size_(size), board_(boards().of_size[size - 1]) {}
    yoke_status gather(int rank, const void *mine, uint64_t bytes, void *all) override
    {
        if (bytes > kMostBytes) return YOKE_E_VALUE;
        if (bytes) memcpy(board_.cells[rank], mine, bytes);
        board_.wait(size_);
        for (int i = 0; bytes && i < size_; ++i)
            memcpy(static_cast<char *>(all) + static_cast<uint64_t>(i) * bytes, board_.cells[i],
                   bytes);
        board_.wait(size_);
        return YOKE_OK;
    }

private:
    int size_;
    Board &board_;
};

int number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : -1;
}

yoke_backend &table()
{
    static yoke_backend made = {};
    return made;
}

}  // namespace

std::vector<BackendUnderTest> contract_backends()
{
    return {{"mpi", nullptr, false}};
}

void Contract::SetUp()
{
    table_ = &table();
    told() = {};
    if (table_->comm) return;
    static const yoke_host host = plain_host();
    void *module = dlopen(YOKE_TEST_MPI_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    const auto get = reinterpret_cast<yoke_comm_get_fn>(dlsym(module, YOKE_COMM_SYMBOL));
    ASSERT_NE(get, nullptr) << dlerror();
    ASSERT_DONE(get(&host, &table().comm));
    EXPECT_STREQ(table_->comm->name, "mpi");
    // MPI's initialisation needs all processes of the job, so smaller groups come afterwards.
    Ranks everyone;
    everyone.size = number_of("OMPI_COMM_WORLD_SIZE");
    with_ranks(*table_->comm, nullptr, everyone, [](Rank &r) { ASSERT_DONE(r.barrier()); });
}

void Contract::TearDown() {}

void Collectives::SetUp()
{
    Contract::SetUp();
}

// Groups of more ranks than there are processes are left to `./dev soak`, which starts four.
void with_uninitialised_ranks(const yoke_backend_comm &engine, void *device, const Ranks &ranks,
                              const Body &body)
{
    const int self = number_of("OMPI_COMM_WORLD_RANK"), all = number_of("OMPI_COMM_WORLD_SIZE");
    if (ranks.size > all) return;
    if (self < ranks.size) {
        ProcessRendezvous rendezvous(ranks.size);
        char mine[YOKE_COMM_ID_BYTES], ids[kMostRanks * YOKE_COMM_ID_BYTES];
        EXPECT_DONE(engine.unique_id(mine, 20));
        rendezvous.gather(self, mine, sizeof mine, ids);
        Rank rank(engine, device, self, ranks, rendezvous, ids);
        body(rank);
    }
    boards().all.wait(all);
}

}  // namespace yoke::test
