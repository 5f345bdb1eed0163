// The language of device specs: what is understood, and how the rest is refused.
#include "core/select/spec.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

using test::expect_error;

TEST(DeviceSpec, EveryFormIsRead)
{
    EXPECT_EQ(parse_spec("auto").form, Spec::Form::kAuto);
    EXPECT_FALSE(parse_spec("auto").is_constrained);
    EXPECT_EQ(parse_spec("cuda").kind, "cuda");
    EXPECT_EQ(parse_spec("cuda:3").index, 3);
    EXPECT_EQ(parse_spec("uuid:GPU-8A").prefix, "gpu-8a");
    EXPECT_EQ(parse_spec("pci:0000:65:00.0").prefix, "0000:65:00.0");
    EXPECT_EQ(parse_spec("pci:65:00.0").prefix, "0000:65:00.0");
    EXPECT_EQ(parse_spec("pci:00000000:6A:00.0").prefix, "0000:6a:00.0");
}

TEST(DeviceSpec, EveryKeyIsRead)
{
    const Spec spec = parse_spec(
        "auto:n=2, min_free=8GiB,min_memory=40GB,min_cc=8.6,max_util=20,name=H100,same=nvlink,"
        "homogeneous,exclude=egpu+display,kind=cuda,wait=1.5m,lease,fallback=error");
    EXPECT_EQ(spec.count, 2);
    EXPECT_EQ(spec.min_free, int64_t{8} << 30);
    EXPECT_EQ(spec.min_memory, 40'000'000'000);
    EXPECT_EQ(spec.min_cc, 86);
    EXPECT_DOUBLE_EQ(spec.max_util, 0.2);
    EXPECT_EQ(spec.name_holds, "H100");
    EXPECT_EQ(spec.same, Spec::Same::kNvlink);
    EXPECT_TRUE(spec.homogeneous);
    EXPECT_EQ(spec.exclude, uint32_t{Spec::kEgpu | Spec::kDisplay});
    EXPECT_EQ(spec.kind, "cuda");
    EXPECT_DOUBLE_EQ(spec.wait, 90);
    EXPECT_TRUE(spec.lease);
    EXPECT_EQ(spec.fallback, Spec::Fallback::kError);
}

TEST(DeviceSpec, UnitsAreThoseOfTheirNames)
{
    const std::pair<const char *, int64_t> sizes[] = {{"7B", 7},
                                                      {"1KB", 1000},
                                                      {"1KiB", 1024},
                                                      {"2MB", 2'000'000},
                                                      {"1MiB", 1 << 20},
                                                      {"1.5gib", int64_t{3} << 29},
                                                      {"1 TB", 1'000'000'000'000},
                                                      {"1TiB", int64_t{1} << 40}};
    for (const auto &[text, bytes] : sizes)
        EXPECT_EQ(parse_spec(std::string("auto:min_free=") + text).min_free, bytes) << text;
    EXPECT_DOUBLE_EQ(parse_spec("auto:wait=250ms").wait, 0.25);
    EXPECT_DOUBLE_EQ(parse_spec("auto:wait=2h").wait, 7200);
    EXPECT_EQ(parse_spec("auto:min_cc=12.1").min_cc, 121);
    EXPECT_EQ(parse_spec("auto:min_cc=9").min_cc, 90);
    EXPECT_DOUBLE_EQ(parse_spec("auto:max_util=12.5%").max_util, 0.125);
}

// Refused spec, and the parts of its message.
struct Bad {
    const char *text;
    std::vector<const char *> holds;
};

TEST(DeviceSpec, WhatIsWrongIsNamedByKeyValueAndWhatIsAllowed)
{
    const Bad all[] = {
        {"auto:min_free=8", {"8 has no unit", "min_free=8GiB"}},
        {"auto:wait=60", {"60 has no unit", "wait=60s"}},
        {"auto:min_free=8GX", {"min_free='8GX'", "'GX' is not a unit", "did you mean 'GB'"}},
        {"auto:min_free=lots", {"min_free='lots'", "such as 8GiB"}},
        {"auto:min_free=-1GiB", {"min_free='-1GiB'"}},
        {"auto:min_free=1e99GiB", {"min_free='1e99GiB'"}},
        {"auto:min_free=99999999999TiB", {"min_free"}},
        {"auto:min_fre=8GiB", {"'min_fre'", "'8GiB'", "did you mean 'min_free'", "exclude"}},
        {"auto:n=0", {"n='0'", "a whole number from 1"}},
        {"auto:n=1.5", {"n='1.5'"}},
        {"auto:n=99999999999", {"n='99999999999'"}},
        {"auto:max_util=-1", {"max_util='-1'", "0 to 100"}},
        {"auto:max_util=101", {"max_util='101'", "0 to 100"}},
        {"auto:min_cc=hopper", {"min_cc='hopper'", "such as 8.0"}},
        {"auto:min_cc=8.-1", {"min_cc"}},
        {"auto:min_cc=8.", {"min_cc"}},
        {"auto:same=nvlinks", {"'nvlinks'", "did you mean 'nvlink'", "switch", "numa"}},
        {"auto:exclude=egpu+disply", {"'disply'", "did you mean 'display'", "leased"}},
        {"auto:exclude=egpu+", {"exclude='egpu+'"}},
        {"auto:kind=cpuu", {"'cpuu'", "did you mean 'cpu'"}},
        {"auto:fallback=warning", {"'warning'", "silent"}},
        {"auto:lease=yes", {"lease", "'yes'", "takes no value"}},
        {"auto:min_free", {"min_free", "no value"}},
        {"auto:name=", {"name", "no value"}},
        {"auto:lease,lease", {"lease twice"}},
        {"auto:wait=9999h", {"wait='9999h'", "8784h"}},
        {"auto:", {"empty constraint"}},
        {"auto:lease,", {"empty constraint"}},
        {"auto:kind=cpu,min_cc=8.0", {"contradicts itself", "min_cc"}},
        {"uuid:", {"uuid:GPU-89"}},
        {"pci:", {"pci:0000:65:00.0"}},
        {"pci:slot4", {"0000:65:00.0"}},
        {"cuda:", {"'cuda:'", "cuda:N"}},
        {"cuda:1x", {"'cuda:1x'"}},
        {"cpu:0", {"'cpu:0'", "use 'cpu'"}},
        {"cudda", {"'cudda'", "did you mean 'cuda'"}},
        {"flaot16", {"'flaot16'", "did you mean the dtype 'float16'", "cuda:N"}},
        {"float", {"did you mean the dtype 'float32'"}},
        {"uuid", {"'uuid'", "uuid:GPU-"}},
        {"", {"''", "auto"}},
    };
    for (const Bad &bad : all) {
        try {
            parse_spec(bad.text);
            ADD_FAILURE() << bad.text << " was taken";
        } catch (const Error &error) {
            EXPECT_EQ(error.status(), YOKE_E_VALUE) << bad.text;
            for (const char *part : bad.holds)
                EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
                    << bad.text << " lacks " << part << ": " << error.what();
        }
    }
}

TEST(DeviceSpec, OnlyWhatACpuCanMeetAllowsIt)
{
    for (const char *text : {"auto", "auto:min_free=1GiB", "auto:max_util=20", "auto:exclude=egpu",
                             "auto:kind=cpu", "auto:fallback=silent", "cpu"})
        EXPECT_TRUE(parse_spec(text).allows_cpu()) << text;
    for (const char *text : {"cuda", "cuda:0", "uuid:GPU-1", "pci:65", "auto:min_cc=8.0",
                             "auto:same=nvlink", "auto:lease", "auto:kind=cuda", "auto:name=H100",
                             "auto:fallback=error", "auto:min_cc=7.0,fallback=warn"})
        EXPECT_FALSE(parse_spec(text).allows_cpu()) << text;
}

}  // namespace
}  // namespace yoke
