// Worker of comm.py: Gloo's all_reduce between two processes, over TCP on the loopback. A case is made once: its
// options and buffers are kept.
#include <gloo/allreduce.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "comm_pair.h"

namespace {

struct Case {
    std::vector<float> data;
    std::unique_ptr<gloo::AllreduceOptions> options;
};

struct Cases {
    std::shared_ptr<gloo::Context> context;
    std::map<unsigned long long, Case> of;
};

void run(void *user, const char *, unsigned long long bytes, long count)
{
    auto &cases = *static_cast<Cases *>(user);
    Case &one = cases.of[bytes];
    if (!one.options) {
        one.data.resize(bytes / sizeof(float));
        one.options = std::make_unique<gloo::AllreduceOptions>(cases.context);
        one.options->setOutput(one.data.data(), one.data.size());
        void (*const sum)(void *, const void *, const void *, size_t) = gloo::sum<float>;
        one.options->setReduceFunction(sum);
    }
    for (; count > 0; --count) gloo::allreduce(*one.options);
}

}  // namespace

int main()
{
    char folder[] = "/tmp/bench-comm-XXXXXX";
    pair_check(mkdtemp(folder) != nullptr, "mkdtemp");
    const pair_side side = pair_fork();
    gloo::rendezvous::FileStore store(folder);
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    auto context = std::make_shared<gloo::rendezvous::Context>(side.rank, 2);
    context->connectFullMesh(store, device);
    const std::string about = "Gloo " + std::to_string(GLOO_VERSION_MAJOR) + "." +
                              std::to_string(GLOO_VERSION_MINOR) + "." +
                              std::to_string(GLOO_VERSION_PATCH) + ": " + device->str();
    Cases cases{context, {}};
    pair_serve(&side, about.c_str(), run, &cases);
    if (side.rank == 0) std::filesystem::remove_all(folder);
}
