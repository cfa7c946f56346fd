# C++ that follows from a schema is written when the build is configured, which happens again whenever the schema or its generator
# changes. Files include it as "analyze/gen/answers.h".
set(VS_GENERATED ${CMAKE_BINARY_DIR}/generated)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

# vs_generate(tools/gen_answers.py schema/answers/schema.json [argument]...)
function(vs_generate tool schema)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tool} ${schema} tools/write_changed.py)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/${tool} ${ARGN} ${VS_GENERATED} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
vs_generate(tools/gen_answers.py schema/answers/schema.json)
vs_generate(tools/gen_rpc.py schema/rpc/schema.json server)
