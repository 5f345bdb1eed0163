// Usable copies of cuDNN, and messages about unusable copies.
#include <dlfcn.h>

#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/cudnn/library.h"
#include "tests/core/fresh_process.h"
#include "tests/cudnn/host.h"

namespace yoke::cuda {

namespace {

const std::string kFolder = FOLDER;

// Restricts the process's search to these folders and the loader's folders.
void look_into(const std::string &folders)
{
    setenv("YOKE_CUDA_LIB_PATH", folders.c_str(), 1);
    setenv("CUDA_HOME", "/nowhere", 1);
    for (const char *variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) unsetenv(variable);
}

void expect_said(const std::vector<std::string> &parts)
{
    const std::string why = cudnn_why_unavailable();
    for (const std::string &part : parts)
        EXPECT_NE(why.find(part), why.npos) << part << "\n" << why;
    EXPECT_EQ(why.find('\n'), why.npos) << why;
    EXPECT_EQ(cudnn_calls(), nullptr);
    EXPECT_EQ(cudnn_version(), 0);
}

}  // namespace

TEST(Copies, NothingIsMappedBeforeItIsAskedFor)
{
    test::in_fresh_process([] {
        look_into(kFolder + "/whole");
        EXPECT_EQ(mapped_folders(), std::set<std::string>());
        EXPECT_STREQ(cudnn_why_unavailable(), "");
        EXPECT_EQ(mapped_folders(), std::set<std::string>({kFolder + "/whole"}));
        EXPECT_EQ(cudnn_version(), 90800);
        EXPECT_NE(cudnn_calls(), nullptr);
    });
}

TEST(Copies, PartsAndNvrtcAreOpenedFromTheFolderThatWasFound)
{
    test::in_fresh_process([] {
        look_into("/nowhere:" + kFolder + "/newer:" + kFolder + "/whole");
        EXPECT_EQ(cudnn_version(), 92600);
        for (const char *part : {"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
                                 "libcudnn_engines_runtime_compiled.so.9"})
            EXPECT_TRUE(dlopen((kFolder + "/newer/" + part).c_str(), RTLD_LAZY | RTLD_NOLOAD))
                << part;
        EXPECT_EQ(mapped_folders(), std::set<std::string>({kFolder + "/newer"}));
    });
}

TEST(Copies, OneThatDoesNotServeIsToldWithItsVersionsAndLeavesNothingMapped)
{
    test::in_fresh_process([] {
        look_into(kFolder + "/old");
        expect_said({"/old/libcudnn_graph.so.9 (the library is version 9.7.1 for CUDA",
                     "9.8 or later", "pip install nvidia-cudnn-cu", "YOKE_CUDA_LIB_PATH"});
        EXPECT_EQ(mapped_folders(), std::set<std::string>());
    });
    test::in_fresh_process([] {
        look_into(kFolder + "/of_another_cuda");
        expect_said(
            {"the library is version 9.26.0 for CUDA", "this module needs 9.8 or later for CUDA"});
    });
    test::in_fresh_process([] {
        look_into(kFolder + "/no_library");
        expect_said({"/no_library/libcudnn_graph.so.9 (", "pip install"});
    });
}

TEST(Copies, PartsThatAreMissingAreNamed)
{
    test::in_fresh_process([] {
        look_into(kFolder + "/in_parts");
        expect_said({"the part libcudnn_engines_precompiled.so.9 cannot be opened",
                     "install all of cuDNN in one folder"});
        EXPECT_EQ(mapped_folders(), std::set<std::string>()) << "those that were opened are closed";
    });
    test::in_fresh_process([] {
        look_into(kFolder + "/without_nvrtc");
        expect_said({"NVRTC is missing, tried ", "/without_nvrtc/libnvrtc.so.", "install NVRTC"});
    });
}

TEST(Copies, AnotherCopyInTheProcessIsRefusedByName)
{
    test::in_fresh_process([] {
        look_into(kFolder + "/newer");
        ASSERT_TRUE(dlopen((kFolder + "/whole/libcudnn_heuristic.so.9").c_str(), RTLD_LAZY));
        expect_said({"this process has loaded another copy of cuDNN, ",
                     "/whole/libcudnn_heuristic.so.9", "YOKE_CUDA_LIB_PATH"});
    });
}

TEST(Copies, TheOneThatIsLoadedComesFirstWhereNoOtherIsAskedFor)
{
    test::in_fresh_process([] {
        look_into("");
        ASSERT_TRUE(dlopen((kFolder + "/newer/libcudnn_heuristic.so.9").c_str(), RTLD_LAZY));
        EXPECT_STREQ(cudnn_why_unavailable(), "");
        EXPECT_EQ(mapped_folders(), std::set<std::string>({kFolder + "/newer"}));
    });
}

}  // namespace yoke::cuda
