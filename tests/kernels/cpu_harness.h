// Harness for kernels of the CPU backend by themselves: a host, arrays of any layout, launches by op number. Every
// check runs at each instruction set of this CPU.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.h"
#include "core/backend/ops.inc"

namespace cpu_test {

struct Level {
    std::string name;
    const yoke_kernel_fn *kernels;
};

// Return the levels of this CPU, the table of the last level, and this thread's last report to the host: a failure,
// and the log.
const std::vector<Level> &levels();
const yoke_backend &backend();
std::string take_error();
std::string take_log();
void set_threads(int threads);

// Strided array with its storage, filled and read as doubles in row-major order.
class Array {
public:
    Array(yoke_dtype dtype, std::vector<int64_t> shape);
    Array(yoke_dtype dtype, std::vector<int64_t> shape, const std::vector<double> &values);

    // Returns an optional operand that is not given.
    static Array absent();

    // Views: the same storage.
    Array permuted(const std::vector<int> &axes) const;
    Array expanded(const std::vector<int64_t> &shape) const;
    Array sliced(int axis, int64_t start, int64_t step, int64_t count) const;
    Array reversed(int axis) const { return sliced(axis, shape[axis] - 1, -1, shape[axis]); }

    std::vector<double> values() const;
    void set(const std::vector<double> &values);
    double at(int64_t index) const { return values()[index]; }
    int64_t numel() const;
    yoke_operand operand(uint32_t flags) const;
    char *data() const { return storage->data() + offset; }

    yoke_dtype dtype;
    std::vector<int64_t> shape, strides;
    std::shared_ptr<std::vector<char>> storage;
    int64_t offset = 0;
    bool present = true;
};

// Returns values that are exact in every dtype and differ from their neighbours.
std::vector<double> ramp(int64_t n, double from = -3, double step = 0.5, int period = 13);
std::vector<yoke_dtype> all_dtypes();
std::vector<yoke_dtype> float_dtypes();
double tolerance(yoke_dtype dtype);

yoke_arg integer(int64_t value);
yoke_arg number(double value);
yoke_arg text(const char *value);
yoke_arg integers(const std::vector<int64_t> &values);

// Launches an op. Operands are in the op's order. Results begin at `first_written`, or are the operands marked in
// `written`.
yoke_status launch(const Level &level, int op, const std::vector<Array> &operands,
                   size_t first_written, const std::vector<yoke_arg> &params = {},
                   const std::vector<bool> &written = {});

void expect_near(const std::vector<double> &got, const std::vector<double> &want, double relative,
                 const std::string &what);

}  // namespace cpu_test
