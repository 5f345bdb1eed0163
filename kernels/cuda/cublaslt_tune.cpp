#include "kernels/cuda/cublaslt_tune.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "kernels/cuda/driver.h"

namespace yoke::cuda {

bool is_tuning(const yoke_launch *launch)
{
    const char *wanted = g_host->config("YOKE_CUBLASLT_AUTOTUNE");
    if (!wanted || strcmp(wanted, "1") != 0) return false;
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(static_cast<cudaStream_t>(launch->stream), &capturing) ==
               cudaSuccess &&
           capturing == cudaStreamCaptureStatusNone;
}

// ---- the file ---------------------------------------------------------------------------------------------------------

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

// What a line begins with: "cublaslt 130100 NVIDIA_H200 <key> ".
void begin_line(Text &line, const yoke_launch *launch, const CublasLt &lt, const PlanKey &key)
{
    char name[128] = "";
    driver().call.cuDeviceGetName(name, sizeof name,
                                  static_cast<const Device *>(launch->device)->number);
    for (char *c = name; *c; ++c)
        if (*c == ' ') *c = '_';
    line.add("cublaslt %zu %s ", lt.call->cublasLtGetVersion(), name);
    add_hex(line, &key, sizeof key);
    line.add(" ");
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
    FILE *file = winners_file() ? fopen(winners_file(), "re") : nullptr;
    if (!file) return false;
    char wanted[512], line[1024];
    Text text{wanted, sizeof wanted};
    begin_line(text, launch, lt, key);
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
    begin_line(text, launch, lt, plan.key);
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

// ---- trials ------------------------------------------------------------------------------------------------------------

Stopwatch::Stopwatch(const yoke_launch *launch) : stream_(static_cast<cudaStream_t>(launch->stream))
{
    if (cudaEventCreateWithFlags(&first_, cudaEventDefault) != cudaSuccess) first_ = nullptr;
    if (cudaEventCreateWithFlags(&last_, cudaEventDefault) != cudaSuccess) last_ = nullptr;
}

Stopwatch::~Stopwatch()
{
    if (first_) cudaEventDestroy(first_);
    if (last_) cudaEventDestroy(last_);
    cudaGetLastError();  // of a run that failed: it is no failure of the caller's
}

bool Stopwatch::start() const
{
    return first_ && last_ && cudaEventRecord(first_, stream_) == cudaSuccess;
}

float Stopwatch::stop() const
{
    float milliseconds = 0;
    const bool good = cudaEventRecord(last_, stream_) == cudaSuccess &&
                      cudaEventSynchronize(last_) == cudaSuccess &&
                      cudaEventElapsedTime(&milliseconds, first_, last_) == cudaSuccess;
    return good ? milliseconds : -1;
}

}  // namespace yoke::cuda
