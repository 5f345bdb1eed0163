// The index of a set of files, whole and with every rule broken singly: core/state/set_index.cpp, set_names.cpp.
#include "core/state/set_index.h"
#include "core/state/set_names.h"
#include "tests/core/expect_error.h"

#include <gtest/gtest.h>

#include <string>

namespace yoke {
namespace {

using test::expect_error;

constexpr const char *kIndexPath = "/there/model.safetensors.index.json";

TEST(SetIndex, ReadsWhatOthersWrite)
{
    const SetIndex found = SetIndex::read(
        R"({"metadata": {"total_size": 12.5, "more": {"a": [{}, "x"]}, "who": "m\u00e9", "none": null},
            "other": [[{"weight_map": 3}]], "weight_map": {"b": "two", "a": "one", "c": "two", "\u0061b": "one"},
            "last": "text"})",
        kIndexPath);
    ASSERT_EQ(found.file_count(), 2u);
    EXPECT_EQ(found.file(0), "one");
    EXPECT_EQ(found.file(1), "two");
    std::string all;
    for (const SetIndex::Entry &entry : found.entries())
        all += std::string(found.name(entry)) + "=" + std::string(found.file(entry.file)) + " ";
    EXPECT_EQ(all, "a=one ab=one b=two c=two ");
    ASSERT_EQ(found.metadata_count(), 1u);
    EXPECT_EQ(found.metadata(0), (std::pair<std::string_view, std::string_view>("who", "mé")));
}

TEST(SetIndex, AnEmptySetIsWhole)
{
    EXPECT_EQ(SetIndex::read(R"({"weight_map": {}})", kIndexPath).entries().size(), 0u);
}

TEST(SetIndex, EveryRuleBrokenSingly)
{
    const struct {
        const char *json, *part;
    } broken[] = {
        {"{}", "it has no 'weight_map'"},
        {R"({"metadata": {}})", "it has no 'weight_map'"},
        {R"({"x": {"weight_map": {}}})", "it has no 'weight_map'"},
        {"[]", "an array where an object with 'weight_map' belongs"},
        {"3", "a number where an object with 'weight_map' belongs"},
        {R"({"weight_map": []})", "an array where an object with 'weight_map' belongs"},
        {R"({"weight_map": null})", "null where an object with 'weight_map' belongs"},
        {R"({"weight_map": "a"})", "a string where an object with 'weight_map' belongs"},
        {R"({"metadata": 1, "weight_map": {}})",
         "a number where an object with 'metadata' belongs"},
        {R"({"weight_map": {"a": 1}})", "a number where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": -1}})", "a number where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": 1.5}})", "a number where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": true}})", "true or false where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": null}})", "null where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": {}}})", "an object where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": ["x"]}})", "an array where the file of tensor 'a' belongs"},
        {R"({"weight_map": {"a": "x", "a": "x"}})", "tensor 'a' twice"},
        {R"({"weight_map": {}, "weight_map": {}})", "'weight_map' twice"},
        {R"({"metadata": {}, "weight_map": {}, "metadata": {}})", "'metadata' twice"},
        {R"({"metadata": {"k": "1", "k": "2"}, "weight_map": {}})",
         "metadata of the index has 'k' twice"},
        {R"({"weight_map": {"a": "x"})", "not JSON at byte"},
        {R"({"weight_map": {"a": "x"}} x)", "not JSON at byte"},
        {"{\"weight_map\": {\"\xff\": \"x\"}}", "not JSON at byte"},
        {"", "not JSON at byte"},
    };
    for (const auto &[json, part] : broken)
        expect_error(YOKE_E_CHECKPOINT, {kIndexPath, part},
                     [&, text = json] { SetIndex::read(text, kIndexPath); });
}

TEST(SetIndex, DepthCostsNothing)
{
    const std::string deep(200'000, '[');
    const std::string closed =
        R"({"x": )" + deep + std::string(deep.size(), ']') + R"(, "weight_map": {}})";
    EXPECT_EQ(SetIndex::read(closed, kIndexPath).file_count(), 0u);
    expect_error(YOKE_E_CHECKPOINT, {"not JSON"},
                 [&] { SetIndex::read(R"({"x": )" + deep, kIndexPath); });
}

TEST(SetIndex, ComesBackAsItWasWritten)
{
    const std::string json = make_set_index({{"two \"2\"", {"c", "a\n"}}, {"one", {"b"}}},
                                            {{"format", "pt"}, {"k", "v"}}, 123);
    const SetIndex found = SetIndex::read(json, kIndexPath);
    ASSERT_EQ(found.entries().size(), 3u);
    EXPECT_EQ(found.name(found.entries()[0]), "a\n");
    EXPECT_EQ(found.file(found.entries()[0].file), "two \"2\"");
    EXPECT_EQ(found.metadata_count(), 2u);
    EXPECT_NE(json.find(R"("total_size": 123)"), json.npos);
}

TEST(SetIndex, IsToldFromASafetensorsFile)
{
    using namespace std::string_view_literals;
    for (const auto json : {"{"sv, "{\n \"met"sv, " \r\n\t{}"sv, "{{{{{{{{"sv})
        EXPECT_TRUE(SetIndex::may_begin(json)) << json;
    for (const auto file : {""sv, "{\0\0\0\0\0\0\0"sv, "x{"sv, "\0\0\0\0\0\0\0\x40"sv, "[]"sv})
        EXPECT_FALSE(SetIndex::may_begin(file)) << file;
}

TEST(SetIndex, NamesOfASetAreItsOwn)
{
    EXPECT_EQ(index_name("model.safetensors"), "model.safetensors.index.json");
    EXPECT_EQ(index_name("run"), "run.index.json");
    EXPECT_EQ(file_of_index("run.index.json"), "run");
    EXPECT_EQ(file_of_index("run.json"), "");
    EXPECT_TRUE(is_index_of_others("pytorch_model.bin.index.json"));
    for (const char *other : {"run.index.json", "a.safetensors.index.json", "a.bin"})
        EXPECT_FALSE(is_index_of_others(other)) << other;
    const std::string index = "model.safetensors.index.json";
    const std::string name = shard_name(index, "0123abcd", 1, 12);
    EXPECT_EQ(name, "model-0123abcd-00002-of-00012.safetensors");
    EXPECT_EQ(shard_name(index, "0123abcd", 123455, 123456),
              "model-0123abcd-123456-of-123456.safetensors");
    EXPECT_EQ(digits_of_shard(name, index), "0123abcd");
    for (const char *other :
         {"model-00002-of-00012.safetensors", "model-0123ABCD-00002-of-00012.safetensors",
          "model-0123abc-00002-of-00012.safetensors", "model-0123abcd-00002-of-00012.bin",
          "model-0123abcd-0002-of-00012.safetensors", "model-0123abcd-00002-of-0001x.safetensors",
          "model-0123abcd-x-00002-of-00012.safetensors",
          "model20123abcd-00002-of-00012.safetensors", "mode-0123abcd-00002-of-00012.safetensors",
          "model-0123abcd200002-of-00012.safetensors", "model"})
        EXPECT_EQ(digits_of_shard(other, index), "") << other;
}

TEST(SetIndex, APartIsToldByItsName)
{
    for (const char *part :
         {"model-00001-of-00002.safetensors", "m-0123abcd-00002-of-00012.safetensors"})
        EXPECT_TRUE(is_one_of_several(part)) << part;
    for (const char *whole : {"model.safetensors", "model-00001-of-00001.safetensors",
                              "a-of-b.safetensors", "00001-of-00002.txt"})
        EXPECT_FALSE(is_one_of_several(whole)) << whole;
}

}  // namespace
}  // namespace yoke
