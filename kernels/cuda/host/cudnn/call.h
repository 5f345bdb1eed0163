// Graph of a launch through cuDNN: its plan, cached by key, its workspace, and its run.
//
// Contract
//  * Inside the context of its device, on the launch's stream, without waiting for the stream.
//  * A workspace is within the launch's limit. If memory is missing, the next plan with a smaller workspace runs.
//  * If the launch asks for a benchmark, and not for determinism, a key's first run outside captures times the first
//    plans on the launch's own operands and keeps the quickest. If YOKE_CUDNN_BENCHMARK_FILE names a file, the next
//    process uses the result too. This happens for 64 keys of an op. In a capture, the file's winner or the first plan
//    runs.
//  * A failure before a plan runs is not the launch's failure: there is no plan then, and a single warning gives the
//    reason. A failure during the run is the launch's failure.
#pragma once

#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/cudnn/worker.h"

namespace yoke::cuda {

// Operand with the shape of another operand, but with other data and strides.
struct View {
    yoke_operand operand;
    int64_t strides[YOKE_MAX_NDIM];

    View(const yoke_operand &like, const void *data, const int64_t *wanted);
    View(const View &) = delete;
    View &operator=(const View &) = delete;
};

class CudnnCall {
public:
    CudnnCall(const yoke_launch *launch, CudnnWorker &worker) : launch_(launch), worker_(worker) {}
    CudnnCall(const CudnnCall &) = delete;
    CudnnCall &operator=(const CudnnCall &) = delete;

    // Finds the key's plan, or makes it at the first call. Sets *exists to whether there is a plan. Fails only if the
    // device is lost.
    yoke_status prepare(bool *exists);
    // Returns the smallest workspace of the plans refused for their size, after prepare(); 0 if no plan was refused.
    uint64_t refused() const { return entry_->refused; }
    // Runs the plan. If there is no memory for any plan's workspace, no plan runs: returns YOKE_E_OOM with *has_room
    // false.
    yoke_status run(bool *has_room);
    // Warns that memory for a workspace is missing. `instead` says what the launch does now.
    void tell_no_room(const char *instead) const;

protected:
    ~CudnnCall() = default;

    static constexpr int kMostOperands = 16;
    using Text = char[160];

    // Returns all values on which the graph depends. prepare() fills in the last two words.
    virtual CudnnKey key() const = 0;
    virtual EngineRules rules(uint64_t limit) const = 0;
    virtual void build(Graph &graph) const = 0;
    // Writes the graph's tensors and numbers into `all`. Returns their number.
    virtual int operands(CudnnWorker::Operand (&all)[kMostOperands]) const = 0;
    virtual void describe(Text &text) const = 0;  // "the convolution of 8 x 64 x 56 x 56 …"
    // Returns the bytes of the first operand, if a run adds to this operand. Trial runs then add to other memory.
    virtual uint64_t adds_to() const { return 0; }
    // Returns whether the launch's plan may be chosen by its time.
    bool is_benchmark() const;
    // Warns that cuDNN has no engine. `refused` is the smallest workspace above the limit, or 0.
    virtual void tell_none(const CudnnFailure &why, uint64_t refused) const;

    const yoke_launch *const launch_;

private:
    yoke_status make_first(uint64_t limit);
    yoke_status find_plan(const Graph &graph, const EngineRules &rules, CudnnPlan &plan,
                          bool *exists, uint64_t *refused);
    yoke_status find_smaller(uint64_t limit, CudnnPlan &plan, bool *exists);
    yoke_status execute(const CudnnPlan &plan, void *workspace);
    // ---- for a benchmark ----
    bool recall(const Graph &graph, const EngineRules &rules);
    yoke_status pass_by(const CudnnFailure &failure) const;
    bool reserve(Scratch &room, uint64_t bytes, yoke_status *lost) const;
    int race(const CudnnPlan *plans, int count, yoke_status *lost);
    yoke_status measure(const Graph &graph, const EngineRules &rules);
    yoke_status tune();
    void tell_room(uint64_t wanted, uint64_t less) const;

    CudnnWorker &worker_;
    CudnnEntry *entry_ = nullptr;
};

}  // namespace yoke::cuda
