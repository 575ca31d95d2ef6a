# Event files for TensorBoard (weft/events/protobuf). The messages are compiled from event.proto, without the
# project's warnings; of protobuf the small runtime is enough. Without it, weft/events/no_protobuf.cpp says so.
option(WEFT_PROTOBUF "Write event files for TensorBoard where protobuf is found" ON)
set(weft_protobuf_found OFF)

if(WEFT_PROTOBUF)
  find_package(Protobuf)
  if(Protobuf_FOUND AND Protobuf_PROTOC_EXECUTABLE AND TARGET protobuf::libprotobuf-lite)
    set(weft_protobuf_found ON)
  endif()
endif()

function(weft_event_messages)
  set(folder ${CMAKE_BINARY_DIR}/generated)
  set(message weft/events/protobuf/event)
  set(source ${CMAKE_SOURCE_DIR}/${message}.proto)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  # While configuring: the largest units see these headers, and would begin last where ninja had to make them first.
  if(${source} IS_NEWER_THAN ${folder}/${message}.pb.h)
    file(MAKE_DIRECTORY ${folder})
    execute_process(
      COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${CMAKE_SOURCE_DIR} --cpp_out=${folder} ${source}
      COMMAND_ERROR_IS_FATAL ANY)
  endif()
  add_library(weft_event_messages STATIC ${folder}/${message}.pb.cc)
  target_include_directories(weft_event_messages SYSTEM PUBLIC ${folder})
  target_link_libraries(weft_event_messages PUBLIC protobuf::libprotobuf-lite)
  if(WEFT_SANITIZE)
    target_compile_options(weft_event_messages PRIVATE -fsanitize=${WEFT_SANITIZE})
  endif()
  set_target_properties(weft_event_messages PROPERTIES UNITY_BUILD OFF POSITION_INDEPENDENT_CODE ON)
endfunction()
