#include "contract.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>

// The embedded backend of libyoke.
extern "C" yoke_status yoke_cpu_backend_get(const yoke_host *host, const yoke_backend **out);

namespace yoke::test {

// Opens the CUDA module named by the environment: a fake module, or the real module on a GPU.
static yoke_status cuda_backend_get(const yoke_host *host, const yoke_backend **out)
{
    void *module = dlopen(getenv("YOKE_TEST_CUDA_MODULE"), RTLD_NOW | RTLD_LOCAL);
    if (!module) return host->set_error(YOKE_E_IO, 0, dlerror());
    return reinterpret_cast<yoke_backend_get_fn>(dlsym(module, YOKE_BACKEND_SYMBOL))(host, out);
}

std::vector<BackendUnderTest> contract_backends()
{
    std::vector<BackendUnderTest> all = {{"cpu", yoke_cpu_backend_get, true}};
    if (getenv("YOKE_TEST_CUDA_MODULE")) all.push_back({"cuda", cuda_backend_get, false});
    return all;
}

namespace {

struct Opened {
    const yoke_backend *table = nullptr;
    void *device = nullptr;
};

// By kind, and by device for scratch.
std::map<std::string, Opened> &opened()
{
    static std::map<std::string, Opened> all;
    return all;
}

const yoke_backend *table_of(void *device)
{
    for (const auto &[kind, one] : opened())
        if (one.device == device) return one.table;
    return nullptr;
}

// Scratch straight from the backend.
std::map<void *, uint64_t> &scratch_sizes()
{
    static std::map<void *, uint64_t> sizes;
    return sizes;
}
std::mutex scratch_mutex;

yoke_status scratch_alloc(void *device, uint64_t bytes, void *, uint32_t, void **out)
{
    const yoke_status status = table_of(device)->alloc(device, bytes, out);
    if (status != YOKE_OK) return status;
    const std::lock_guard lock(scratch_mutex);
    scratch_sizes()[*out] = bytes;
    return YOKE_OK;
}

// Blocks freed by kernels: pending work may still use the blocks until the test ends.
std::map<void *, uint64_t> &freed_scratch()
{
    static std::map<void *, uint64_t> sizes;
    return sizes;
}

void scratch_free(void *, void *pointer, void *)
{
    const std::lock_guard lock(scratch_mutex);
    freed_scratch().insert(scratch_sizes().extract(pointer));
}

const yoke_host kHost = [] {
    yoke_host host = plain_host();
    host.scratch_alloc = scratch_alloc;
    host.scratch_free = scratch_free;
    return host;
}();

}  // namespace

void Contract::SetUp()
{
    Opened &here = opened()[GetParam().kind];
    if (!here.table) {
        ASSERT_DONE(GetParam().get(&kHost, &here.table));
        int32_t count = 0;
        ASSERT_DONE(here.table->device_count(&count));
        if (count > 0) {
            ASSERT_DONE(here.table->device_open(0, &here.device));
        }
    }
    table_ = here.table;
    device_ = here.device;
    if (!device_) {
        char why[512] = "";
        table_->why_unavailable(why, sizeof why);
        GTEST_SKIP() << GetParam().kind << ": " << why;
    }
    info_.struct_size = sizeof info_;
    ASSERT_DONE(table_->device_info(device_, &info_));
    told() = {};
}

void Contract::TearDown()
{
    if (!device_) return;
    EXPECT_DONE(table_->device_synchronize(device_));
    for (const Block &b : blocks_) EXPECT_DONE(table_->free(device_, b.data, b.bytes));
    const std::lock_guard lock(scratch_mutex);
    EXPECT_TRUE(scratch_sizes().empty()) << "a kernel kept scratch";
    for (const auto &[data, bytes] : freed_scratch())
        EXPECT_DONE(table_->free(device_, data, bytes));
    freed_scratch().clear();
}

void *Contract::block(uint64_t bytes)
{
    void *data = nullptr;
    EXPECT_DONE(table_->alloc(device_, bytes, &data));
    if (data) blocks_.push_back({data, bytes});
    return data;
}

}  // namespace yoke::test
