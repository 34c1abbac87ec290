# PLATEAU_SANITIZER = none | address (with undefined behaviour) | thread.
set(PLATEAU_SANITIZER "none" CACHE STRING "none, address (with undefined) or thread")
set_property(CACHE PLATEAU_SANITIZER PROPERTY STRINGS none address thread)
if(PLATEAU_SANITIZER STREQUAL "address")
  # -fno-sanitize=vptr: the type information it wants is hidden inside the LLVM and MLIR shared libraries.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # GCC has no check of that name and refuses the option.
  foreach(language C CXX)
    add_compile_options($<$<COMPILE_LANG_AND_ID:${language},Clang>:-fno-sanitize=function>)
  endforeach()
  add_link_options(-fsanitize=address,undefined)
elseif(PLATEAU_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT PLATEAU_SANITIZER STREQUAL "none")
  message(FATAL_ERROR "PLATEAU_SANITIZER is '${PLATEAU_SANITIZER}': it must be none, address or thread")
endif()
