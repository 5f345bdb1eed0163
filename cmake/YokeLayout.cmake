# Where things lie. The build tree mirrors the install tree closely enough that both work by
# relative RPATHs alone: lib/ for libyoke, python/ and lua/ for what scripts import.
set(YOKE_BUILD_PYTHON ${PROJECT_BINARY_DIR}/python)      # one PYTHONPATH entry
set(YOKE_BUILD_LUA ${PROJECT_BINARY_DIR}/lua)            # LUA_PATH and LUA_CPATH root
set(YOKE_BUILD_LIB ${PROJECT_BINARY_DIR}/lib)            # libyoke and its backend modules

# Scripts are linked, not copied, into the build tree: an edit takes effect at once.
function(yoke_link_scripts from to)
    file(GLOB_RECURSE scripts CONFIGURE_DEPENDS RELATIVE ${from}
         ${from}/*.py ${from}/*.pyi ${from}/py.typed ${from}/*.lua)
    foreach(script IN LISTS scripts)
        cmake_path(GET script PARENT_PATH folder)
        file(MAKE_DIRECTORY ${to}/${folder})
        file(CREATE_LINK ${from}/${script} ${to}/${script} SYMBOLIC)
    endforeach()
endfunction()

# RPATH of a module installed in `folder` (relative to the prefix) that needs libyoke.
function(yoke_install_rpath target folder)
    file(RELATIVE_PATH to_lib /p/${folder} /p/${CMAKE_INSTALL_LIBDIR})
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/${to_lib}")
endfunction()
