#include "ranks.h"

#include <cstdlib>
#include <cstring>

#include "kernels/common/numeric.h"

namespace yoke::test {

Rank::Rank(const yoke_backend_comm &table, void *device, int number, const Ranks &ranks,
           Rendezvous &rendezvous, const void *id)
    : rank(number),
      size(ranks.size),
      engine(table),
      timeout_s(ranks.timeout_s),
      device_(device),
      ranks_(ranks),
      rendezvous_(rendezvous),
      id_(id)
{
}

Rank::~Rank()
{
    destroy();
}

void Rank::destroy()
{
    if (comm) engine.destroy(comm);
    comm = nullptr;
}

yoke_status Rank::init()
{
    return init(id_, [&](const yoke_comm_member &record) { return engine.init(&record, &comm); });
}

yoke_status Rank::split(const void *id, Rank &child)
{
    return child.init(id, [&](const yoke_comm_member &record) {
        return engine.split(comm, &record, &child.comm);
    });
}

yoke_status Rank::init(const void *id,
                       const std::function<yoke_status(const yoke_comm_member &)> &make)
{
    settings().clear();
    if (!ranks_.shares_memory) settings()["YOKE_COMM_SHM"] = "0";
    if (!ranks_.nodes.empty())
        settings()["YOKE_COMM_TEST_NODE"] = ranks_.nodes[static_cast<size_t>(rank)];
    if (const char *piece = getenv("YOKE_COMM_TEST_PIECE"))
        settings()["YOKE_COMM_TEST_PIECE"] = piece;
    fault = {};
    fault.struct_size = sizeof fault;
    yoke_comm_member record{};
    record.struct_size = sizeof record;
    record.rank = rank;
    record.size = size;
    record.device = device_;
    record.id = id;
    record.address = ranks_.address;
    record.timeout_s = timeout_s;
    record.all_gather = [](void *user, const void *mine, uint64_t bytes, void *all) {
        Rank &from = *static_cast<Rank *>(user);
        const yoke_status status = from.rendezvous_.gather(from.rank, mine, bytes, all);
        if (from.change_gathered) from.change_gathered(all);
        if (from.after_gather) from.after_gather();
        return status;
    };
    record.is_over = [](void *user) -> int32_t {
        const Rank &from = *static_cast<Rank *>(user);
        return from.is_over && from.is_over();
    };
    record.user = this;
    record.fault = &fault;
    return make(record);
}

yoke_comm_signature Rank::sign(const yoke_collective &record)
{
    yoke_comm_signature sign{};
    sign.group = 77;
    sign.count = record.count;
    sign.op = record.op;
    sign.dtype = record.dtype;
    sign.reduction = record.reduction;
    sign.root = record.peer;
    if (record.op == YOKE_COMM_SEND) sign.sequence = ++sent_[record.peer];
    if (record.op == YOKE_COMM_RECV) {
        sign.op = YOKE_COMM_SEND;
        sign.root = rank;
        sign.sequence = ++received_[record.peer];
    }
    if (sign.op != YOKE_COMM_SEND) sign.sequence = ++calls_;
    return sign;
}

yoke_status Rank::call(yoke_collective &record)
{
    yoke_comm_signature signature = sign(record);
    if (lie) lie(signature);
    lie = nullptr;
    fault = {};
    fault.struct_size = sizeof fault;
    record.struct_size = sizeof record;
    record.signature = &signature;
    record.timeout_s = timeout_s;
    record.fault = &fault;
    record.find_gone = [](void *user, const int32_t *asked, int32_t count, int32_t died) {
        const Rank &from = *static_cast<Rank *>(user);
        return from.find_gone ? from.find_gone({asked, static_cast<size_t>(count)}, died != 0) : -1;
    };
    record.user = this;
    return engine.call(comm, &record);
}

yoke_status Rank::run(int32_t op, yoke_dtype dtype, int64_t count, const void *in, void *out,
                      int32_t peer, int32_t reduction)
{
    yoke_collective record{};
    record.op = op;
    record.dtype = dtype;
    record.count = count;
    record.in = in;
    record.out = out;
    record.peer = peer;
    record.reduction = reduction;
    return call(record);
}

void with_ranks(const yoke_backend_comm &engine, void *device, const Ranks &ranks, const Body &body)
{
    with_uninitialised_ranks(engine, device, ranks, [&](Rank &rank) {
        ASSERT_DONE(rank.init());
        body(rank);
        rank.meet();  // no rank leaves while another works
    });
}

// ---- elements -------------------------------------------------------------------------------------------------------

const yoke_dtype kDtypes[11] = {YOKE_F64, YOKE_F32, YOKE_F16,  YOKE_BF16,    YOKE_I64,    YOKE_I32,
                                YOKE_I8,  YOKE_U8,  YOKE_BOOL, YOKE_F8_E4M3, YOKE_F8_E5M2};

template <class F>
static void with_type(yoke_dtype dtype, const F &f)
{
    using namespace kernels;
#define YOKE_CASE(name, type) \
    case name:                \
        return f.template operator()<type>();
    switch (dtype) {
        YOKE_FLOAT_TYPES(YOKE_CASE)
        YOKE_STORED_FLOAT_TYPES(YOKE_CASE)
        YOKE_INTEGER_TYPES(YOKE_CASE)
        YOKE_BOOL_TYPES(YOKE_CASE)
    }
#undef YOKE_CASE
}

uint64_t bytes_of(yoke_dtype dtype)
{
    uint64_t bytes = 0;
    with_type(dtype, [&]<class T>() { bytes = sizeof(T); });
    return bytes;
}

std::string encode(yoke_dtype dtype, const std::vector<double> &values)
{
    std::string bytes(values.size() * bytes_of(dtype), '\0');
    with_type(dtype, [&]<class T>() {
        for (size_t i = 0; i < values.size(); ++i) {
            const T one = kernels::convert<T>(values[i]);
            memcpy(&bytes[i * sizeof(T)], &one, sizeof one);
        }
    });
    return bytes;
}

std::vector<double> decode(yoke_dtype dtype, const std::string &bytes)
{
    std::vector<double> values(bytes.size() / bytes_of(dtype));
    with_type(dtype, [&]<class T>() {
        for (size_t i = 0; i < values.size(); ++i) {
            T one;
            memcpy(&one, &bytes[i * sizeof(T)], sizeof one);
            values[i] = kernels::convert<double>(one);
        }
    });
    return values;
}

}  // namespace yoke::test
