// Dtypes, shapes, errors: the values of every other layer.
#include "core/base/deadline.h"
#include "core/base/dtype.h"
#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/base/text.h"
#include "core/base/thread_state.h"
#include "tests/core/expect_error.h"

#include <cstring>

namespace yoke {
namespace {

using test::expect_error;

// States the rule in words, apart from the table: the expected dtype of a promotion.
yoke_dtype expected_promotion(yoke_dtype a, yoke_dtype b)
{
    if (a == b) return a;
    if (a == YOKE_BOOL) return b;
    if (b == YOKE_BOOL) return a;
    if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
    if (is_floating(a)) {
        if (a == YOKE_F64 || b == YOKE_F64) return YOKE_F64;
        const bool small_a = item_size(a) == 1, small_b = item_size(b) == 1;
        if (small_a != small_b) return small_a ? b : a;  // the wider dtype wins over float8
        return YOKE_F32;  // different, without f64: f32 with a half, or two kinds of half
    }
    if (a == YOKE_I64 || b == YOKE_I64) return YOKE_I64;
    return YOKE_I32;  // different, without i64: with i32, or i8 and u8
}

TEST(Dtype, PromotionFollowsTheRuleForEveryPair)
{
    for (yoke_dtype a = 1; a < YOKE_DTYPE_COUNT; ++a)
        for (yoke_dtype b = 1; b < YOKE_DTYPE_COUNT; ++b) {
            EXPECT_EQ(promote(a, b), expected_promotion(a, b)) << name(a) << " with " << name(b);
            EXPECT_EQ(promote(a, b), promote(b, a));
        }
}

TEST(Text, AFieldIsCutAtAWholeCharacter)
{
    char field[6];
    put(field, "añ€");
    EXPECT_STREQ(field, "añ");
    put(field, "añ12");
    EXPECT_STREQ(field, "añ12");
    EXPECT_EQ(cut("añ", 3), "añ");
    EXPECT_EQ(cut("12€" + std::string(40, '3'), 31), "12 ... (cut: it has 45 bytes)");
    put(field, "");
    EXPECT_STREQ(field, "");
}

TEST(Text, ANumberIsParsedFromAllOfTheTextOrNot)
{
    EXPECT_EQ(parsed<int>("-12"), -12);
    EXPECT_EQ(parsed<double>("0.5"), 0.5);
    for (const char *text : {"", "x", "12 ", "12x", "+1", "99999999999"})
        EXPECT_FALSE(parsed<int>(text).has_value()) << text;
}

TEST(Text, BytesAreWrittenInTheirGreatestUnit)
{
    EXPECT_EQ(bytes_text(1023), "1023 bytes");
    EXPECT_EQ(bytes_text(1572864), "1.50 MiB");
    EXPECT_EQ(bytes_text(512, BytesStyle::kPlaces), "512.00 B");
    EXPECT_EQ(bytes_text(-1572864, BytesStyle::kPlaces), "-1.50 MiB");
    EXPECT_EQ(bytes_text(512, BytesStyle::kShort), "512 B");
    EXPECT_EQ(bytes_text(8.0 * (1 << 30), BytesStyle::kShort), "8 GiB");
    EXPECT_EQ(bytes_text(8.5 * (1 << 30), BytesStyle::kShort), "8.5 GiB");
    EXPECT_EQ(bytes_text(143771.0 * (1 << 20), BytesStyle::kShort), "140.4 GiB");
}

TEST(Text, AMeasureIsANumberWithItsUnitOrNone)
{
    const std::optional<Measure> bytes = read_measure("1.5 gib");
    ASSERT_TRUE(bytes && bytes->known);
    EXPECT_EQ(bytes->number * bytes->known->scale, 1.5 * (1 << 30));
    const std::optional<Measure> plain = read_measure("7");
    ASSERT_TRUE(plain);
    EXPECT_EQ(plain->number, 7);
    EXPECT_TRUE(plain->unit.empty() && !plain->known && !plain->meant);
    const std::optional<Measure> wrong = read_measure("2GiBs");
    ASSERT_TRUE(wrong && !wrong->known);
    EXPECT_EQ(wrong->unit, "GiBs");
    EXPECT_STREQ(wrong->meant, "GiB");
    for (const char *none : {"", "GiB", " 1", "-1GiB", "nan", "inf", "+1"})
        EXPECT_FALSE(read_measure(none)) << none;
}

TEST(Text, PartsOfAListAreJoinedBehindWhatIsThere)
{
    EXPECT_EQ(joined(std::vector<std::string>{}), "");
    EXPECT_EQ(joined(std::vector<const char *>{"a", "b"}), "a, b");
    EXPECT_EQ(joined(std::vector<int>{1, 2}, "; ", [](int i) { return std::to_string(i); }),
              "1; 2");
    std::string text;
    add_part(text, "a");
    add_part(text, "b", "/");
    EXPECT_EQ(text, "a/b");
}

TEST(Dtype, ScriptScalarsAreWeak)
{
    for (yoke_dtype d = 1; d < YOKE_DTYPE_COUNT; ++d) {
        EXPECT_EQ(promote_scalar(d, YOKE_ARG_BOOL), d);
        EXPECT_EQ(promote_scalar(d, YOKE_ARG_INT), d == YOKE_BOOL ? YOKE_I64 : d);
        EXPECT_EQ(promote_scalar(d, YOKE_ARG_FLOAT), is_floating(d) ? d : YOKE_F32);
    }
}

TEST(Dtype, NamesLeadBackToTheirDtype)
{
    for (yoke_dtype d = 1; d < YOKE_DTYPE_COUNT; ++d) {
        EXPECT_EQ(dtype_from_name(info(d).name), d);
        EXPECT_EQ(dtype_from_name(info(d).brief), d);
        EXPECT_GT(item_size(d), 0u);
    }
    EXPECT_EQ(dtype_from_name("float"), YOKE_NONE);
    EXPECT_EQ(dtype_from_name("none"), YOKE_NONE);
    EXPECT_STREQ(name(-5), "none");
    EXPECT_EQ(item_size(1000), 0u);
}

TEST(Dtype, ANumberThatIsNoneIsRefusedByName)
{
    for (const yoke_dtype bad : {0, -1, YOKE_DTYPE_COUNT})
        expect_error(YOKE_E_TYPE, {"zeros", "dtype", std::to_string(bad).c_str()},
                     [&] { check_dtype(bad, "zeros"); });
}

TEST(Shape, NumelChecksSignsAndOverflow)
{
    EXPECT_EQ(checked_numel({}, "zeros"), 1);
    EXPECT_EQ(checked_numel(Dims{2, 3, 4}, "zeros"), 24);
    EXPECT_EQ(checked_numel(Dims{5, 0}, "zeros"), 0);
    expect_error(YOKE_E_VALUE, {"zeros", "memory can address"}, [] {
        checked_numel(Dims{int64_t{1} << 62, 0, int64_t{1} << 62}, "zeros");
    });
    EXPECT_EQ(checked_numel(Dims{int64_t{1} << 40, 0}, "zeros"), 0);
    EXPECT_EQ(checked_numel(Dims{INT64_MAX >> 3}, "zeros"), INT64_MAX >> 3);
    expect_error(YOKE_E_VALUE, {"zeros", "[2, -1]", "each size must be 0 or more"}, [] {
        checked_numel(Dims{2, -1}, "zeros");
    });
    for (const int64_t size : {(INT64_MAX >> 3) + 1, INT64_MAX})
        expect_error(YOKE_E_VALUE, {"zeros", "memory"},
                     [&] { checked_numel(Dims{size}, "zeros"); });
    expect_error(YOKE_E_VALUE, {"zeros"}, [] {
        checked_numel(Dims{int64_t{1} << 32, int64_t{1} << 32, 3}, "zeros");
    });
    expect_error(YOKE_E_VALUE, {"zeros", "each size must be 0 or more"}, [] {
        checked_numel(Dims{0, -1}, "zeros");
    });
}

TEST(Shape, AListHoldsAtMostTheMostAxes)
{
    Dims dims(YOKE_MAX_NDIM, 1);
    expect_error(YOKE_E_VALUE, {"17", "16"}, [&] { dims.push_back(1); });
    const std::vector<int64_t> many(40, 1);
    expect_error(YOKE_E_VALUE, {"40", "16"}, [&] { Dims{IntList(many)}; });
    expect_error(YOKE_E_VALUE, {"40"}, [&] { checked_numel(many, "zeros"); });
}

TEST(Shape, InsertAndEraseMoveTheRest)
{
    Dims dims{1, 2, 3};
    dims.insert(1, 9);
    EXPECT_EQ(to_string(dims), "[1, 9, 2, 3]");
    dims.erase(0);
    EXPECT_EQ(to_string(dims), "[9, 2, 3]");
    EXPECT_TRUE(same(dims, Dims{9, 2, 3}));
    EXPECT_FALSE(same(dims, Dims{9, 2}));
    EXPECT_EQ(to_string({}), "[]");
}

TEST(Shape, StridesOfARowMajorTensor)
{
    int64_t strides[3];
    contiguous_strides(Dims{2, 3, 4}, strides);
    EXPECT_EQ(to_string({strides, 3}), "[12, 4, 1]");
    EXPECT_TRUE(is_contiguous(Dims{2, 3, 4}, strides));
    const int64_t other[] = {12, 5, 1}, loose[] = {7, 4, 1};
    EXPECT_FALSE(is_contiguous(Dims{2, 3, 4}, other));
    EXPECT_TRUE(is_contiguous(Dims{1, 3, 4}, loose)) << "the stride of an axis of size 1 is free";
    EXPECT_TRUE(is_contiguous(Dims{0, 3, 4}, other)) << "nothing lies anywhere";
    contiguous_strides(Dims{2, 0, 4}, strides);
    EXPECT_EQ(to_string({strides, 3}), "[4, 4, 1]");
}

TEST(Shape, AxesCountFromEitherEnd)
{
    EXPECT_EQ(normalize_axis(-1, 3, "sum"), 2);
    EXPECT_EQ(normalize_axis(0, 0, "sum"), 0);
    EXPECT_EQ(normalize_axis(-1, 0, "sum"), 0);
    for (const int64_t axis : {int64_t{3}, int64_t{-4}, INT64_MIN, INT64_MAX})
        expect_error(YOKE_E_INDEX, {"sum", std::to_string(axis).c_str(), "-3 to 2"},
                     [&] { normalize_axis(axis, 3, "sum"); });
}

TEST(Shape, ListsOfAxesAreSortedAndUnique)
{
    const int64_t axes[] = {-1, 0}, twice[] = {2, -1};
    const IntList list(axes), repeated(twice), empty;
    EXPECT_EQ(to_string(normalize_axes(&list, 3, "sum")), "[0, 2]");
    EXPECT_EQ(to_string(normalize_axes(nullptr, 3, "sum")), "[0, 1, 2]");
    EXPECT_EQ(to_string(normalize_axes(&empty, 3, "sum")), "[]");
    EXPECT_EQ(to_string(normalize_axes(nullptr, 0, "sum")), "[]");
    expect_error(YOKE_E_VALUE, {"sum", "twice", "[2, -1]"},
                 [&] { normalize_axes(&repeated, 3, "sum"); });
}

TEST(Shape, AnAxisOfAScalarReducesNothing)
{
    const int64_t axes[] = {-1};
    const IntList list(axes);
    EXPECT_EQ(to_string(normalize_axes(&list, 0, "sum")), "[]");
}

TEST(Shape, BroadcastingIsNumpys)
{
    EXPECT_EQ(to_string(broadcast(Dims{3, 1}, Dims{2, 1, 4}, "add")), "[2, 3, 4]");
    EXPECT_EQ(to_string(broadcast({}, Dims{2}, "add")), "[2]");
    EXPECT_EQ(to_string(broadcast(Dims{1}, Dims{0}, "add")), "[0]");
    expect_error(YOKE_E_VALUE, {"add", "[2, 3]", "[2, 4]", "axis 1", "3 and 4"}, [] {
        broadcast(Dims{2, 3}, Dims{2, 4}, "add");
    });
    expect_error(YOKE_E_VALUE, {"0 and 2"}, [] { broadcast(Dims{0}, Dims{2}, "add"); });
    EXPECT_TRUE(broadcasts_to(Dims{1, 4}, Dims{3, 4}));
    EXPECT_FALSE(broadcasts_to(Dims{3, 4}, Dims{4}));
    EXPECT_FALSE(broadcasts_to(Dims{3}, Dims{1}));
}

TEST(ErrorText, AFailureCarriesStatusAndMessage)
{
    expect_error(YOKE_E_INDEX, {"row 7 of 3"}, [] { fail(YOKE_E_INDEX, "row %d of %d", 7, 3); });
    EXPECT_STREQ(status_name(YOKE_OK), "YOKE_OK");
    EXPECT_STREQ(status_name(YOKE_E_INTERNAL), "YOKE_E_INTERNAL");
    EXPECT_STREQ(status_name(17), "YOKE_E_?");
    EXPECT_STREQ(status_name(-1), "YOKE_E_?");
}

TEST(ErrorText, ALongMessageIsCutBetweenCharacters)
{
    for (size_t shift = 0; shift < 4; ++shift) {
        std::string text(shift, 'a');
        while (text.size() < 6000) text += "\xF0\x9F\x90\x82";  // an ox, four bytes
        store_last_error(YOKE_E_VALUE, "yoke_add", text.c_str(), 5);
        const std::string kept = last_error()->message;
        EXPECT_EQ((kept.size() - shift) % 4, 0u);
        EXPECT_GT(kept.size(), sizeof(ErrorRecord::message) - 5);
        EXPECT_LT(kept.size(), sizeof(ErrorRecord::message));
        EXPECT_EQ(text.compare(0, kept.size(), kept), 0);
    }
    EXPECT_EQ(last_error()->native_code, 5);
    EXPECT_STREQ(last_error()->call, "yoke_add");
}

TEST(ErrorText, AMessageThatJustFitsIsKeptWhole)
{
    const std::string text(sizeof(ErrorRecord::message) - 1, 'x');
    store_last_error(YOKE_E_VALUE, "yoke_add", text.c_str(), 0);
    EXPECT_EQ(last_error()->message, text);
    std::string ends_in_umlaut(sizeof(ErrorRecord::message) - 3, 'x');
    ends_in_umlaut += "\xC3\xBC";
    store_last_error(YOKE_E_VALUE, "yoke_add", ends_in_umlaut.c_str(), 0);
    EXPECT_EQ(last_error()->message, ends_in_umlaut);
}

TEST(ErrorText, AnOldMessageOfABackendIsNotReportedAgain)
{
    EXPECT_EQ(set_backend_error(YOKE_E_IO, 9, "disk on fire"), YOKE_E_IO);
    try {
        check_backend(YOKE_E_IO, "copy");
        ADD_FAILURE();
    } catch (const Error &error) {
        EXPECT_STREQ(error.what(), "copy: disk on fire");
        EXPECT_EQ(error.native_code(), 9);
    }
    try {
        check_backend(YOKE_E_IO, "copy");
        ADD_FAILURE();
    } catch (const Error &error) {
        EXPECT_STREQ(error.what(), "copy failed with YOKE_E_IO");
        EXPECT_EQ(error.native_code(), 0);
    }
    set_backend_error(YOKE_E_IO, 9, "disk on fire");
    EXPECT_EQ(take_backend_error(YOKE_E_OOM, "alloc"), "alloc failed with YOKE_E_OOM");
}

TEST(Deadline, SaysNoMoreOfARemainderThanPeopleRead)
{
    const auto said = [](double seconds) {
        return format("%g s", Deadline::after(seconds).given_s());
    };
    EXPECT_EQ(said(1.99989), "2 s");
    EXPECT_EQ(said(0.0499951), "0.05 s");
    EXPECT_EQ(said(2.25), "2.25 s");
    EXPECT_EQ(said(299.994), "300 s");
    EXPECT_EQ(said(600), "600 s");
    EXPECT_EQ(said(4599.6), "4600 s");
    EXPECT_EQ(said(86400), "86400 s");
    EXPECT_EQ(said(0), "0 s");
    EXPECT_EQ(said(-1), "0 s");
}

}  // namespace
}  // namespace yoke
