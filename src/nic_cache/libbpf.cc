// SPDX-License-Identifier: Apache-2.0
#include "nic_cache/libbpf.h"

#include <dlfcn.h>

#include <mutex>

namespace warpcache::nic_cache {

namespace {

constexpr char kLibrary[] = "libbpf.so.1";

template <typename Function>
bool find(void* library, const char* name, Function* function, std::string* failure) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) *failure = std::string(kLibrary) + " has no " + name;
  return *function != nullptr;
}

bool find_all(void* library, Libbpf* f, std::string* failure) {
  return find(library, "libbpf_set_print", &f->set_print, failure) &&
         find(library, "libbpf_num_possible_cpus", &f->num_possible_cpus, failure) &&
         find(library, "bpf_object__open_mem", &f->object_open_mem, failure) &&
         find(library, "bpf_object__load", &f->object_load, failure) &&
         find(library, "bpf_object__close", &f->object_close, failure) &&
         find(library, "bpf_object__find_map_by_name", &f->object_find_map, failure) &&
         find(library, "bpf_object__find_program_by_name", &f->object_find_program, failure) &&
         find(library, "bpf_map__set_max_entries", &f->map_set_max_entries, failure) &&
         find(library, "bpf_map__fd", &f->map_fd, failure) &&
         find(library, "bpf_program__fd", &f->program_fd, failure) &&
         find(library, "bpf_program__set_log_buf", &f->set_log_buffer, failure) &&
         find(library, "bpf_program__set_log_level", &f->set_log_level, failure) &&
         find(library, "bpf_link_create", &f->link_create, failure) &&
         find(library, "bpf_obj_get_info_by_fd", &f->get_info, failure) &&
         find(library, "bpf_map_create", &f->map_create, failure) &&
         find(library, "bpf_map_update_elem", &f->map_update, failure) &&
         find(library, "bpf_map_lookup_elem", &f->map_lookup, failure) &&
         find(library, "bpf_prog_test_run_opts", &f->test_run, failure) &&
         find(library, "ring_buffer__new", &f->ring_new, failure) &&
         find(library, "ring_buffer__consume", &f->ring_consume, failure) &&
         find(library, "ring_buffer__free", &f->ring_free, failure);
}

}  // namespace

const Libbpf* load_libbpf(std::string* failure) {
  static std::mutex mutex;
  static Libbpf functions;
  static bool loaded = false;
  const std::lock_guard guard(mutex);
  if (loaded) return &functions;
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *failure = std::string(kLibrary) + " is not installed (Debian: libbpf1)";
    return nullptr;
  }
  if (!find_all(library, &functions, failure)) return nullptr;
  functions.set_print([](libbpf_print_level, const char*, va_list) { return 0; });
  loaded = true;
  return &functions;
}

}  // namespace warpcache::nic_cache
