// Remedies for errors at the start of the driver.
#include "kernels/cuda/host/driver.h"

namespace yoke::cuda {

namespace {

struct Remedy {
    CUresult error;
    const char *text;
};

constexpr Remedy kRemedies[] = {
    {CUDA_ERROR_OUT_OF_MEMORY,
     "free memory on the host or the GPU (nvidia-smi lists the processes that hold it)"},
    {CUDA_ERROR_NOT_INITIALIZED,
     "a process that was forked after CUDA's first use cannot use CUDA; start the process with spawn or exec"},
    {CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, "update the NVIDIA driver"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE,
     "another process has exclusive use of the GPU; end that process, or allow sharing with 'sudo nvidia-smi -c 0'"},
    {CUDA_ERROR_INVALID_DEVICE,
     "CUDA_VISIBLE_DEVICES or a MIG setting names a GPU that does not exist; compare the names with 'nvidia-smi -L'"},
    {CUDA_ERROR_DEVICE_NOT_LICENSED,
     "the virtual GPU has no licence; check the licence server with 'nvidia-smi -q'"},
    {CUDA_ERROR_OPERATING_SYSTEM,
     "the system refused a call of the driver; check that this user may open /dev/nvidia*, and reload the module nvidia_uvm"},
    {CUDA_ERROR_SYSTEM_NOT_READY,
     "the GPUs are not ready yet; on a machine with NVSwitch, start the service nvidia-fabricmanager in exactly the driver's version"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
     "the driver's kernel module and its libcuda.so.1 have different versions; restart the machine after a driver update"},
    {CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
     "this GPU does not support the forward-compatibility libcuda; remove the folder of cuda-compat from LD_LIBRARY_PATH, or restart the machine after a driver update"},
    {CUDA_ERROR_MPS_CONNECTION_FAILED,
     "the MPS control daemon does not answer; start nvidia-cuda-mps-control or unset CUDA_MPS_PIPE_DIRECTORY"},
    {CUDA_ERROR_MPS_RPC_FAILURE, "the MPS server failed; restart nvidia-cuda-mps-control"},
    {CUDA_ERROR_MPS_SERVER_NOT_READY, "the MPS server is recovering; try again in a moment"},
    {CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "the MPS server is full; end another of its clients"},
    {CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, "the MPS server is full; end another of its clients"},
    {CUDA_ERROR_UNKNOWN,
     "often the module nvidia_uvm is broken after the machine slept: run 'sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm', or restart the machine"},
};

}  // namespace

const char *remedy_of(int64_t error)
{
    for (const Remedy &remedy : kRemedies)
        if (remedy.error == error) return remedy.text;
    return "check whether nvidia-smi works, and look for NVRM in the kernel's log";
}

}  // namespace yoke::cuda
