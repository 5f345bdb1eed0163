// Headers of safetensors files, whole and with every rule broken singly: core/state/stored_tensors.cpp,
// safetensors.cpp.
#include "core/select/select.h"
#include "core/state/stored_tensors.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <string>

namespace yoke {
namespace {

using test::expect_error;

constexpr const char *kPath = "/there/model.safetensors";

StoredTensors read_header(const std::string &header, uint64_t data = 24)
{
    return StoredTensors::read(header, 8 + header.size() + data, kPath);
}

std::string tensor(const std::string &dtype, const std::string &shape, const std::string &offsets)
{
    return R"({"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST(Safetensors, ReadsAHeader)
{
    const StoredTensors found = read_header(
        R"({"b":{"data_offsets":[16,24],"shape":[],"dtype":"I64"},)"
        R"("__metadata__":{"format":"pt","ü":"\u0041"},)"
        R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16],"more":[{"x":1},2]}}   )");
    ASSERT_EQ(found.tensors().size(), 2u);
    const auto &[a, b] = std::tie(found.tensors()[0], found.tensors()[1]);
    EXPECT_EQ(found.name(a), "a");
    EXPECT_EQ(a.dtype->dtype, YOKE_F32);
    EXPECT_EQ(std::vector<int64_t>(found.shape(a).begin(), found.shape(a).end()),
              (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(found.name(b), "b");
    EXPECT_TRUE(found.shape(b).empty());
    EXPECT_EQ(b.begin, 16u);
    ASSERT_EQ(found.metadata_count(), 2u);
    EXPECT_EQ(found.metadata(1), (std::pair<std::string_view, std::string_view>("ü", "A")));
}

TEST(Safetensors, NothingIsAWholeFile)
{
    EXPECT_TRUE(read_header("{}", 0).tensors().empty());
    EXPECT_EQ(
        read_header(R"({"x":)" + tensor("\"U8\"", "[3,0,5]", "[0,0]") + "}", 0).tensors().size(),
        1u);
    EXPECT_EQ(read_header(R"({"x":)" + tensor("\"F4\"", "[2,24]", "[0,24]") + "}")
                  .tensors()[0]
                  .dtype->dtype,
              YOKE_NONE);
}

TEST(Safetensors, EveryRuleBrokenSingly)
{
    const std::string whole = tensor("\"F32\"", "[2,3]", "[0,24]");
    ASSERT_EQ(read_header(R"({"x":)" + whole + "}").tensors().size(), 1u);
    const struct {
        std::string header;
        const char *rule;
    } cases[] = {
        {R"( {"x":)" + whole + "}", "does not begin with '{'"},
        {R"({"x":)" + whole + "} }", "not JSON at byte"},
        {R"({"x":)" + whole + ",}", "not JSON at byte"},
        {"{\"x\xff\":" + whole + "}", "not JSON at byte"},
        {R"({"x":)" + whole + R"(,"x":)" + whole + "}", "'x' is in the header twice"},
        {R"({"x":[1]})", "'x' has an array where an object with dtype"},
        {R"({"x":)" + tensor("\"F31\"", "[2,3]", "[0,24]") + "}",
         "dtype 'F31', which the format does not have"},
        {R"({"x":)" + tensor("7", "[2,3]", "[0,24]") + "}",
         "has a number where the name of a dtype"},
        {R"({"x":)" + tensor("\"F32\"", "6", "[0,24]") + "}", "has a number where an array"},
        {R"({"x":)" + tensor("\"F32\"", "[2,-3]", "[0,24]") + "}",
         "a negative number where a whole number"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3.0]", "[0,24]") + "}", "another number where"},
        {R"({"x":)" + tensor("\"F32\"", "[2,[3]]", "[0,24]") + "}",
         "an array where a whole number"},
        {R"({"x":)" + tensor("\"F32\"", "[2,9223372036854775808]", "[0,24]") + "}",
         "a larger number where"},
        {R"({"x":)" + tensor("\"F32\"", "[4294967296,4294967296]", "[0,24]") + "}",
         "more elements than can be counted"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3]", "[0]") + "}", "has 1 data_offsets"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3]", "[0,24,24]") + "}", "has 3 data_offsets"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3]", "[1,25]") + "}",
         "does not begin where the previous tensor ends, at 0"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3]", "[0,20]") + "}",
         "takes 24 bytes by shape and dtype"},
        {R"({"x":)" + tensor("\"F32\"", "[2,3]", "[24,0]") + "}", "does not begin where"},
        {R"({"x":)" + tensor("\"F4\"", "[3]", "[0,1]") + "}", "does not end with a whole byte"},
        {R"({"x":{"shape":[2,3],"data_offsets":[0,24]}})", "'x' has no dtype"},
        {R"({"x":{"dtype":"F32","data_offsets":[0,24]}})", "'x' has no shape"},
        {R"({"x":{"dtype":"F32","shape":[2,3]}})", "'x' has no data_offsets"},
        {R"({"x":{"dtype":"F32","dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})",
         "the key 'dtype' twice"},
        {R"({"__metadata__":{"a":1},"x":)" + whole + "}", "has a number where a string belongs"},
        {R"({"__metadata__":"a","x":)" + whole + "}", "a string where an object of strings"},
        {R"({"__metadata__":{"a":"","a":""},"x":)" + whole + "}", "the metadata has 'a' twice"},
        {R"({"__metadata__":{},"__metadata__":{},"x":)" + whole + "}", "'__metadata__' twice"},
        {R"({"x":)" + tensor("\"F32\"", "[1]", "[0,4]") + "}",
         "the tensors take 4 bytes, but after the header there are 24"},
    };
    for (const auto &[header, rule] : cases)
        expect_error(YOKE_E_CHECKPOINT, {kPath, rule}, [&, &text = header] { read_header(text); });
}

TEST(Safetensors, AHeaderLongerThanItsFile)
{
    expect_error(YOKE_E_CHECKPOINT, {kPath, "in a file of 4"},
                 [] { StoredTensors::read("{}", 4, kPath); });
    expect_error(YOKE_E_CHECKPOINT, {kPath, "in a file of 9"},
                 [] { StoredTensors::read("{}", 9, kPath); });
}

TEST(Safetensors, NamesOfAnybodyAreShownOnOneLine)
{
    expect_error(YOKE_E_CHECKPOINT, {"'a?b?", "…'"},
                 [] { read_header(R"({"a\nb\u0000)" + std::string(500, 'x') + R"(":3})"); });
}

TEST(Safetensors, WhatIsWrittenIsRead)
{
    const auto tensor = [](yoke_dtype dtype, const std::vector<int64_t> &shape) {
        return make_tensor(open_device("cpu"), dtype, shape, "save");
    };
    const std::vector<NamedTensor> tensors = {{"b", tensor(YOKE_BF16, {3})},
                                              {"z\"\n", tensor(YOKE_F32, {})},
                                              {"a", tensor(YOKE_BF16, {2, 1})},
                                              {"i", tensor(YOKE_I64, {0})},
                                              {"m", tensor(YOKE_BOOL, {1})}};
    std::vector<const NamedTensor *> order;
    for (const NamedTensor &each : tensors) order.push_back(&each);
    const std::string bytes = make_stored_header(order, {{"note", "\xc3\xbc\\"}});
    ASSERT_EQ(bytes.size() % 64, 0u);
    uint64_t length = 0;
    for (int i = 7; i >= 0; --i)
        length = length << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
    EXPECT_EQ(length, bytes.size() - 8);
    const StoredTensors found =
        StoredTensors::read(std::string_view(bytes).substr(8), bytes.size() + 15, kPath);
    std::string names;
    for (const auto &each : found.tensors()) names += std::string(found.name(each)) + " ";
    EXPECT_EQ(names, "i z\"\n a b m ");
    EXPECT_EQ(found.metadata(0).second, "\xc3\xbc\\");
    for (yoke_dtype dtype = YOKE_NONE + 1; dtype < YOKE_DTYPE_COUNT; ++dtype) {
        ASSERT_TRUE(stored_dtype(dtype)) << name(dtype);
        EXPECT_EQ(stored_dtype(stored_dtype(dtype)->name), stored_dtype(dtype));
    }
}

}  // namespace
}  // namespace yoke
