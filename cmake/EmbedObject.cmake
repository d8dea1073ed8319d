# SPDX-License-Identifier: Apache-2.0
# cmake -DOBJECT=FILE -DOUT=FILE.cc -P EmbedObject.cmake: makes program_object() (src/nic_cache/object.h) of an object file.
file(READ "${OBJECT}" hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE "${OUT}" "// Made from bpf/nic_cache.bpf.c.
#include \"nic_cache/object.h\"

namespace warpcache::nic_cache {
namespace {
alignas(8) const uint8_t kObject[] = {${bytes}};
}  // namespace
Bytes program_object() { return {kObject, sizeof kObject}; }
}  // namespace warpcache::nic_cache
")
