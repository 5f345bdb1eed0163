#include "kernels/cuda/host/cublaslt_tune.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"

namespace yoke::cuda {

Tuning tuning_of(const yoke_launch *launch)
{
    const char *wanted = g_host->config("YOKE_CUBLASLT_AUTOTUNE");
    if (!wanted || strcmp(wanted, "1") != 0) return Tuning::kOff;
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    const cudaError_t error =
        cudaStreamIsCapturing(static_cast<cudaStream_t>(launch->stream), &capturing);
    log_failure(*static_cast<const Device *>(launch->device), error,
                "tuning a matrix product: cudaStreamIsCapturing");
    if (error) return Tuning::kOff;
    return capturing == cudaStreamCaptureStatusNone ? Tuning::kNow : Tuning::kLater;
}

// ---- the file -------------------------------------------------------------------------------------------------------

namespace {

void add_hex(Text &text, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        text.add("%02x", static_cast<unsigned>(static_cast<const unsigned char *>(bytes)[i]));
}

bool read_hex(const char *text, void *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) return false;
        static_cast<unsigned char *>(bytes)[i] = static_cast<unsigned char>(byte);
    }
    return true;
}

// What a line begins with: "cublaslt 130100 NVIDIA_H200 <key> ". False, and the log is told, if the GPU has no name.
bool begin_line(Text &line, const yoke_launch *launch, const CublasLt &lt, const PlanKey &key)
{
    const Device &device = *static_cast<const Device *>(launch->device);
    char name[128] = "";
    const CUresult error = driver().call.cuDeviceGetName(name, sizeof name, device.number);
    log_failure(device, error, "YOKE_CUBLASLT_AUTOTUNE_FILE is not used: cuDeviceGetName");
    if (error) return false;
    for (char *c = name; *c; ++c)
        if (*c == ' ') *c = '_';
    line.add("cublaslt %zu %s ", lt.call->cublasLtGetVersion(), name);
    add_hex(line, &key, sizeof key);
    line.add(" ");
    return true;
}

const char *winners_file()
{
    const char *path = g_host->config("YOKE_CUBLASLT_AUTOTUNE_FILE");
    return path && *path ? path : nullptr;
}

}  // namespace

bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo)
{
    char wanted[512], line[1024];
    Text text{wanted, sizeof wanted};
    if (!winners_file() || !begin_line(text, launch, lt, key)) return false;
    FILE *file = fopen(winners_file(), "re");
    if (!file) return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found = strncmp(line, wanted, text.length) == 0 &&
                read_hex(line + text.length, algo, sizeof *algo);
    fclose(file);
    return found;
}

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan)
{
    if (!winners_file()) return;
    char line[1024];
    Text text{line, sizeof line};
    if (!begin_line(text, launch, lt, plan.key)) return;
    add_hex(text, &plan.algo, sizeof plan.algo);
    text.add("\n");
    // One write, so that processes which share the file do not mix their lines.
    const int file = open(winners_file(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    const bool kept = file >= 0 && write(file, line, text.length) == (ssize_t)text.length;
    if (file >= 0) close(file);
    if (kept) return;
    char message[512];
    snprintf(message, sizeof message, "cuda: YOKE_CUBLASLT_AUTOTUNE_FILE %s cannot be written",
             winners_file());
    g_host->log(YOKE_LOG_WARN, message);
}

// ---- trials ---------------------------------------------------------------------------------------------------------

Stopwatch::Stopwatch(const yoke_launch *launch)
    : device_(*static_cast<const Device *>(launch->device)),
      stream_(static_cast<cudaStream_t>(launch->stream))
{
    for (cudaEvent_t *event : {&first_, &last_})
        if (works_)
            check(cudaEventCreateWithFlags(event, cudaEventDefault), "cudaEventCreateWithFlags");
}

Stopwatch::~Stopwatch()
{
    for (const cudaEvent_t event : {first_, last_})
        if (event) check(cudaEventDestroy(event), "cudaEventDestroy");
}

void Stopwatch::check(cudaError_t error, const char *what)
{
    char tuning[96];
    snprintf(tuning, sizeof tuning, "tuning a matrix product: %s", what);
    log_failure(device_, error, tuning);
    works_ = works_ && error == cudaSuccess;
}

bool Stopwatch::start()
{
    if (works_) check(cudaEventRecord(first_, stream_), "cudaEventRecord");
    return works_;
}

float Stopwatch::stop()
{
    float milliseconds = 0;
    check(cudaEventRecord(last_, stream_), "cudaEventRecord");
    if (works_) check(cudaEventSynchronize(last_), "cudaEventSynchronize");
    if (works_) check(cudaEventElapsedTime(&milliseconds, first_, last_), "cudaEventElapsedTime");
    return works_ ? milliseconds : -1;
}

}  // namespace yoke::cuda
