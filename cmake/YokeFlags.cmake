# yoke_flags: compile flags of all targets. Third-party headers come in as system headers, so the warnings concern
# Yoke's code alone.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON)  # a new libyoke is found when a program starts, and asks for no new link

# Line tables instead of full debug information: a backtrace names its lines, builds stay small.
foreach(lang C CXX)
    set(CMAKE_${lang}_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
    set(CMAKE_${lang}_FLAGS_DEBUG "-O0 -g1")
endforeach()

# For the C and C++ compilers only; kernels/cuda has the flags of nvcc.
set(host "$<COMPILE_LANGUAGE:C,CXX>")
add_library(yoke_flags INTERFACE)
target_include_directories(yoke_flags INTERFACE ${PROJECT_SOURCE_DIR}
                                                ${PROJECT_SOURCE_DIR}/capi/include)
target_compile_options(yoke_flags INTERFACE
    "$<${host}:-Wall;-Wextra;-Wpedantic;-Wshadow>"
    "$<$<AND:${host},$<BOOL:${YOKE_WERROR}>>:-Werror>")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # At -O3 gcc 12 sees an overlap in every `"text" + std::string` (its bug 105651).
    target_compile_options(yoke_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
endif()

# Everything in a process must agree on the sanitizers' runtime, so these are not in yoke_flags.
if(YOKE_SANITIZE)
    add_compile_options("$<${host}:-fsanitize=${YOKE_SANITIZE};-fno-omit-frame-pointer>")
    add_link_options(-fsanitize=${YOKE_SANITIZE})
    if(YOKE_SANITIZE MATCHES undefined)
        add_compile_options("$<${host}:-fno-sanitize-recover=all>")
    endif()
endif()
# clang's fuzzer needs the taken branches.
option(YOKE_FUZZ "Targets for clang's libFuzzer: tests/fuzz" OFF)
if(YOKE_FUZZ)
    add_compile_options("$<${host}:-fsanitize=fuzzer-no-link>")
endif()
option(YOKE_INSTRUMENT "Functions call __cyg_profile_func_enter, as ./dev trip wants it" OFF)
if(YOKE_INSTRUMENT)
    add_compile_options("$<${host}:-finstrument-functions;-finstrument-functions-exclude-file-list=/usr/>")
endif()
# Kernels are templates over many dtypes. Checks of every pointer for null and for its size would more than double
# their compile time. The address sanitizer's redzones replace these checks.
set(yoke_kernel_sanitize "")
if(YOKE_SANITIZE MATCHES address AND YOKE_SANITIZE MATCHES undefined)
    set(yoke_kernel_sanitize -fno-sanitize=null,object-size,pointer-overflow)
endif()
