#include "kernels/cuda/host/tune.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/library.h"

namespace yoke::cuda {

static void log_tuning(const Device &device, cudaError_t error, const char *tuned, const char *call)
{
    char what[96];
    snprintf(what, sizeof what, "tuning %s: %s", tuned, call);
    log_failure(device, error, what);
}

Tuning tuning_on(const yoke_launch *launch, const char *tuned)
{
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    const cudaError_t error =
        cudaStreamIsCapturing(static_cast<cudaStream_t>(launch->stream), &capturing);
    log_tuning(*static_cast<const Device *>(launch->device), error, tuned, "cudaStreamIsCapturing");
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

// Writes the begin of a line: "cublaslt 130100 NVIDIA_H200 <key> ". If the GPU has no name, logs this and returns
// false.
bool begin_line(Text &line, const yoke_launch *launch, const Tuned &tuned)
{
    const Device &device = *static_cast<const Device *>(launch->device);
    char name[128] = "", what[96];
    const CUresult error = driver().call.cuDeviceGetName(name, sizeof name, device.number);
    snprintf(what, sizeof what, "%s is not used: cuDeviceGetName", tuned.setting);
    log_failure(device, error, what);
    if (error) return false;
    for (char *c = name; *c; ++c)
        if (*c == ' ') *c = '_';
    line.add("%s %zu %s %s", tuned.library, tuned.version, name, tuned.op);
    if (*tuned.op) line.add(" ");
    add_hex(line, tuned.key, tuned.key_bytes);
    line.add(" ");
    return true;
}

const char *winners_file(const Tuned &tuned)
{
    const char *path = g_host->config(tuned.setting);
    return path && *path ? path : nullptr;
}

constexpr size_t kLine = 2048;

}  // namespace

bool has_winners_file(const Tuned &tuned)
{
    return winners_file(tuned) != nullptr;
}

bool recall_winner(const yoke_launch *launch, const Tuned &tuned, void *winner, size_t bytes)
{
    char wanted[kLine], line[kLine];
    Text text{wanted, sizeof wanted};
    if (!winners_file(tuned) || !begin_line(text, launch, tuned)) return false;
    FILE *file = fopen(winners_file(tuned), "re");
    if (!file) return false;
    bool found = false;
    while (!found && fgets(line, sizeof line, file))
        found =
            strncmp(line, wanted, text.length) == 0 && read_hex(line + text.length, winner, bytes);
    fclose(file);
    return found;
}

void keep_winner(const yoke_launch *launch, const Tuned &tuned, const void *winner, size_t bytes)
{
    if (!winners_file(tuned)) return;
    char line[kLine];
    Text text{line, sizeof line};
    if (!begin_line(text, launch, tuned)) return;
    add_hex(text, winner, bytes);
    text.add("\n");
    // A single write, so processes that share the file do not mix their lines.
    const int file = open(winners_file(tuned), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    const bool kept = file >= 0 && write(file, line, text.length) == (ssize_t)text.length;
    if (file >= 0) close(file);
    if (kept) return;
    char message[512];
    snprintf(message, sizeof message, "cuda: %s %s cannot be written", tuned.setting,
             winners_file(tuned));
    g_host->log(YOKE_LOG_WARN, message);
}

// ---- trials ---------------------------------------------------------------------------------------------------------

Stopwatch::Stopwatch(const yoke_launch *launch, const char *tuned)
    : device_(*static_cast<const Device *>(launch->device)),
      tuned_(tuned),
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
    log_tuning(device_, error, tuned_, what);
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
