#include "ranks.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::test {

namespace {

std::mutex g_lock;
std::string g_logged;
const yoke_backend *g_table = nullptr;

struct Block {
    void *device, *pointer;
    uint64_t bytes;
};
std::vector<Block> g_scratch;

yoke_status set_error(yoke_status status, int64_t, const char *message)
{
    failure() = {status, message ? message : ""};
    return status;
}

void log(int32_t, const char *line)
{
    const std::lock_guard lock(g_lock);
    g_logged += std::string(line) + "\n";
}

const char *config(const char *key)
{
    return getenv(key);
}

int32_t one_thread()
{
    return 1;
}

yoke_status scratch_alloc(void *device, uint64_t bytes, void *, uint32_t, void **out)
{
    const yoke_status status = g_table->alloc(device, bytes, out);
    const std::lock_guard lock(g_lock);
    if (!status) g_scratch.push_back({device, *out, bytes});
    return status;
}

std::atomic<int> g_scratch_given_back{0};

// Counts only. Pending work may still use the memory, and free_scratch() frees it.
void scratch_free(void *, void *, void *)
{
    ++g_scratch_given_back;
}

const yoke_host kHost = {sizeof(yoke_host), YOKE_BACKEND_ABI, set_error,   log, config,
                         one_thread,        scratch_alloc,    scratch_free};

}  // namespace

Failure &failure()
{
    thread_local Failure last;
    return last;
}

void set_devices()
{
    setenv("FAKE_CUDA_DEVICES", "9.0,9.0,9.0,9.0", 1);
}

const yoke_backend &open_module(const char *folders)
{
    if (g_table) return *g_table;
    setenv("YOKE_CUDA_LIB_PATH", folders, 1);
    void *library = dlopen(MODULE_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    const auto get = reinterpret_cast<yoke_backend_get_fn>(dlsym(library, YOKE_BACKEND_SYMBOL));
    if (get(&kHost, &g_table)) abort();
    return *g_table;
}

const yoke_backend_comm &engine()
{
    return *open_module().comm;
}

std::string logged()
{
    const std::lock_guard lock(g_lock);
    return g_logged;
}

int scratch_given_back()
{
    return g_scratch_given_back;
}

// Frees the scratch memory of a device with idle streams.
static void free_scratch(const void *device)
{
    const std::lock_guard lock(g_lock);
    std::erase_if(g_scratch, [&](const Block &block) {
        if (block.device != device) return false;
        EXPECT_EQ(g_table->free(block.device, block.pointer, block.bytes), YOKE_OK)
            << failure().message;
        return true;
    });
}

// Returns the library opened by the module, or null.
static void *fake_nccl()
{
    void *library = nullptr;
    for (const char *folder : {DRIVER_FOLDER, OLD_FOLDER})
        if (!library)
            library =
                dlopen((std::string(folder) + "/libnccl.so.2").c_str(), RTLD_NOW | RTLD_NOLOAD);
    return library;
}

void count_calls_anew()
{
    reinterpret_cast<void (*)()>(dlsym(fake_nccl(), "fake_nccl_reset"))();
}

int held_after_a_while(int milliseconds)
{
    void *library = fake_nccl();
    if (!library) return 0;
    const auto held = reinterpret_cast<int (*)()>(dlsym(library, "fake_nccl_held"));
    for (int i = 0; i < milliseconds && held(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return held();
}

// Returns how much the driver still holds for programs, by the kinds of fake.h: "0=1" is one context.
static std::string kinds_held_after_a_while()
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const auto held = reinterpret_cast<int (*)(int)>(dlsym(driver, "fake_held"));
    std::string text = "?";
    for (int i = 0; i < 5000 && !text.empty(); ++i) {
        if (i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        text.clear();
        for (int kind = 0; kind < FAKE_KINDS; ++kind)
            if (held(kind)) text += std::to_string(kind) + "=" + std::to_string(held(kind)) + " ";
    }
    return text;
}

void expect_none_held()
{
    EXPECT_EQ(held_after_a_while(), 0);
    EXPECT_EQ(kinds_held_after_a_while(), "");
    EXPECT_EQ(logged(), "");
}

void Board::gather(int rank, const void *mine, uint64_t bytes, void *all)
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return left_ == 0; });
    parts_[static_cast<size_t>(rank)].assign(static_cast<const char *>(mine ? mine : ""),
                                             mine ? bytes : 0);
    if (++came_ == size_) {
        left_ = size_;
        changed_.notify_all();
    }
    changed_.wait(lock, [&] { return came_ == size_; });
    char *to = static_cast<char *>(all);
    for (const std::string &part : parts_) {
        if (to && !part.empty()) memcpy(to, part.data(), part.size());
        to += part.size();
    }
    if (--left_ == 0) {
        came_ = 0;
        changed_.notify_all();
    } else {
        changed_.wait(lock, [&] { return left_ == 0; });
    }
}

// ---- a rank ---------------------------------------------------------------------------------------------------------

Rank::Rank(const Layout &layout, Board &board, int number, const std::string &id)
    : rank(number),
      size(layout.size),
      timeout_s(layout.timeout_s),
      layout_(layout),
      board_(board),
      id_(id)
{
    const yoke_backend &table = open_module();
    const auto place = static_cast<size_t>(number);
    const int index = layout.devices.empty() ? number : layout.devices[place];
    EXPECT_EQ(table.device_open(index, &device), YOKE_OK) << failure().message;
    EXPECT_EQ(table.stream_create(device, 0, &stream), YOKE_OK) << failure().message;
}

Rank::~Rank()
{
    const yoke_backend &table = open_module();
    if (comm) destroy();
    free_scratch(device);
    for (const auto &[pointer, bytes] : rooms_)
        EXPECT_EQ(table.free(device, pointer, bytes), YOKE_OK) << failure().message;
    EXPECT_EQ(table.stream_destroy(device, stream), YOKE_OK) << failure().message;
    table.device_close(device);
}

yoke_status Rank::init()
{
    yoke_comm_member member{};
    member.struct_size = sizeof member;
    member.rank = rank;
    member.size = size;
    member.device = device;
    member.id = id_.data();
    member.address = "127.0.0.1";
    member.timeout_s = timeout_s;
    member.user = this;
    member.fault = &fault;
    if (gathers)
        member.all_gather = [](void *user, const void *mine, uint64_t bytes, void *all) {
            Rank &self = *static_cast<Rank *>(user);
            self.board_.gather(self.rank, mine, bytes, all);
            if (self.change_gathered) self.change_gathered(all, bytes);
            return YOKE_OK;
        };
    member.is_over = [](void *user) -> int32_t {
        const Rank &self = *static_cast<Rank *>(user);
        return self.is_over && self.is_over();
    };
    return engine().init(&member, &comm);
}

yoke_status Rank::call(yoke_collective record)
{
    static thread_local yoke_comm_signature signature;
    signature = {1, 0, record.count, record.op, record.dtype, record.reduction, record.peer, 1, 0};
    record.struct_size = sizeof record;
    record.signature = &signature;
    record.stream = stream;
    if (!record.fault) record.fault = &fault;
    return engine().call(comm, &record);
}

yoke_status Rank::run(int32_t op, yoke_dtype dtype, int64_t count, const void *in, void *out,
                      int32_t peer, int32_t reduction, uint32_t flags)
{
    yoke_collective record{};
    record.op = op;
    record.dtype = dtype;
    record.reduction = reduction;
    record.peer = peer;
    record.flags = flags;
    record.count = count;
    record.in = in;
    record.out = out;
    record.timeout_s = timeout_s;
    return call(record);
}

void Rank::destroy()
{
    engine().destroy(comm);
    comm = nullptr;
}

void Rank::sync()
{
    EXPECT_EQ(open_module().stream_synchronize(device, stream), YOKE_OK) << failure().message;
}

void *Rank::room(size_t bytes)
{
    void *pointer = nullptr;
    EXPECT_EQ(open_module().alloc(device, bytes ? bytes : 1, &pointer), YOKE_OK);
    rooms_.emplace_back(pointer, bytes ? bytes : 1);
    return pointer;
}

void *Rank::upload(const std::string &bytes)
{
    void *pointer = room(bytes.size());
    if (bytes.empty()) return pointer;
    EXPECT_EQ(open_module().copy(device, pointer, bytes.data(), bytes.size(),
                                 YOKE_COPY_HOST_TO_DEVICE, stream),
              YOKE_OK);
    sync();
    return pointer;
}

std::string Rank::download(const void *from, size_t bytes)
{
    std::string to(bytes, '\0');
    if (!bytes) return to;
    EXPECT_EQ(open_module().copy(device, to.data(), from, bytes, YOKE_COPY_DEVICE_TO_HOST, stream),
              YOKE_OK)
        << failure().message;
    sync();
    return to;
}

void with_ranks(const Layout &layout, const Body &body, bool with_comm)
{
    open_module();
    std::string id(YOKE_COMM_ID_BYTES, '\0');
    ASSERT_EQ(engine().unique_id(id.data(), 20), YOKE_OK) << failure().message;
    Board board(layout.size);
    std::vector<std::thread> threads;
    for (int number = 0; number < layout.size; ++number)
        threads.emplace_back([&, number] {
            SCOPED_TRACE("rank " + std::to_string(number));
            Rank rank(layout, board, number, id);
            if (with_comm) {
                ASSERT_EQ(rank.init(), YOKE_OK) << failure().message;
            }
            body(rank);
        });
    for (std::thread &thread : threads) thread.join();
}

double seconds_of(const std::function<void()> &run)
{
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void expect_fails(yoke_status expected, yoke_status status, const std::vector<const char *> &texts)
{
    EXPECT_EQ(status, expected) << failure().message;
    for (const char *text : texts)
        EXPECT_NE(failure().message.find(text), std::string::npos)
            << "'" << text << "' is not in: " << failure().message;
}

}  // namespace yoke::test
