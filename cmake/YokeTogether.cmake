# Sources that are compiled several at a time. Headers of GoogleTest, CLI11 and nlohmann-json cost far more to compile
# than what a source of a test adds. So names at file scope are unique among the sources of such a target.
#
# CMake's own UNITY_BUILD names sources by their absolute paths, so that the compiler cache serves no other clone.
option(YOKE_UNITY "Compile the sources of tests and of the yoke command eight at a time" ON)

# Makes a target compile its C++ sources eight at a time.
function(yoke_compile_together target)
    if(NOT YOKE_UNITY)
        return()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    set(kept ${sources})
    list(FILTER kept EXCLUDE REGEX "[.]cpp$")
    list(FILTER sources INCLUDE REGEX "[.]cpp$")
    set(batch 0)
    while(sources)
        set(text "")
        foreach(_ RANGE 1 8)
            list(POP_FRONT sources source)
            if(source)
                cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
                cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
                string(APPEND text "#include \"${source}\"\n")
            endif()
        endforeach()
        set(file ${CMAKE_CURRENT_BINARY_DIR}/together/${target}/${batch}.cpp)
        file(GENERATE OUTPUT ${file} CONTENT "${text}")
        list(APPEND kept ${file})
        math(EXPR batch "${batch} + 1")
    endwhile()
    set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()
