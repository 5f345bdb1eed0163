// Traits of kinds, which the core knows without opening the backends.
#include "core/backend/traits.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(Traits, AKindIsFoundByItsVendorItsNumberAndWhatOthersCallIt)
{
    EXPECT_STREQ(kind_serving("nvidia"), "cuda");
    EXPECT_STREQ(kind_serving("amd"), "");
    EXPECT_STREQ(kind_serving(""), "");
    EXPECT_STREQ(find_dlpack_kind(2)->kind, "cuda");
    EXPECT_STREQ(find_dlpack_kind(1)->kind, "cpu");
    EXPECT_EQ(find_dlpack_kind(10), nullptr);
    EXPECT_STREQ(kind_called("gpu"), "cuda");
    EXPECT_STREQ(kind_called("host"), "cpu");
    EXPECT_EQ(kind_called(""), nullptr);
    EXPECT_STREQ(kind_calling("cudnn"), "cuda");
    EXPECT_STREQ(kind_calling("cufft"), "");
    EXPECT_STREQ(kind_calling(""), "");
}

TEST(Traits, AKindWithoutALineHasNothingOfItsOwn)
{
    const KindTraits &other = traits_of("fake");
    EXPECT_STREQ(other.vendor, "");
    EXPECT_EQ(other.dlpack, 0);
    EXPECT_EQ(other.autocast, YOKE_BF16);
    EXPECT_FALSE(other.is_module || other.keeps_variables || other.has_stream_names);
    EXPECT_EQ(traits_of("cuda").autocast, YOKE_F16);
}

TEST(Traits, ModulesAreCounted)
{
    EXPECT_STREQ(module_kind(0), "cuda");
    EXPECT_EQ(module_kind(1), nullptr);
}

}  // namespace
}  // namespace yoke
