// The devices of the fake driver. See machine.h.
#include "tests/fakes/cuda/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "tests/fakes/cuda/driver.h"
#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/scenario.h"

namespace {

using yoke::fake::CudaMachine;
using yoke::fake::read_scenario;

// Null without a scenario.
const CudaMachine *machine()
{
    static const CudaMachine *const only = []() -> const CudaMachine * {
        const char *path = getenv("YOKE_FAKE_SCENARIO");
        if (!path) return nullptr;
        try {
            return new CudaMachine(read_scenario(path));
        } catch (const std::exception &error) {
            fprintf(stderr, "fake: %s: %s\n", path, error.what());
            return new CudaMachine;
        }
    }();
    return only;
}

const char *capabilities()
{
    const char *list = getenv("FAKE_CUDA_DEVICES");
    return list ? list : "9.0";
}

}  // namespace

int fake_machine_problem()
{
    return machine() ? machine()->problem : 0;
}

int fake_machine_version()
{
    const char *text = getenv("FAKE_CUDA_VERSION");
    return text ? atoi(text) : machine() ? machine()->version : 13000;
}

int fake_machine_count()
{
    if (machine()) return static_cast<int>(machine()->devices.size());
    const std::string list = capabilities();
    return list.empty() ? 0 : 1 + static_cast<int>(std::count(list.begin(), list.end(), ','));
}

EXPORT int fake_machine_device(int ordinal, fake_device *out)
{
    if (ordinal < 0 || ordinal >= fake_machine_count()) return 101;  // CUDA_ERROR_INVALID_DEVICE
    if (machine()) {
        *out = machine()->devices[static_cast<size_t>(ordinal)];
        out->chunks = fake_chunks_of(ordinal);
        return 0;
    }
    const char *list = capabilities();
    for (int i = 0; i < ordinal; ++i) list = strchr(list, ',') + 1;
    *out = {};
    out->chunks = fake_chunks_of(ordinal);
    snprintf(out->name, sizeof out->name, "Fake GPU %d", ordinal);
    memset(out->uuid, 0xA0 + ordinal, sizeof out->uuid);
    out->bus = 0x65 + ordinal;
    const char *multiprocessors = getenv("FAKE_CUDA_MULTIPROCESSORS");
    out->multiprocessors = multiprocessors ? atoi(multiprocessors) : 132;
    out->total = fake_memory();
    return sscanf(list, "%d.%d", &out->major, &out->minor) == 2 ? 0 : 1;
}
