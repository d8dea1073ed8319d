// SPDX-License-Identifier: Apache-2.0
//
// libbpf, loaded when a NIC cache is asked for, so that the server runs where it is not installed.
#pragma once

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <string>

namespace warpcache::nic_cache {

// The functions that are used.
struct Libbpf {
  decltype(&::libbpf_set_print) set_print;
  decltype(&::libbpf_num_possible_cpus) num_possible_cpus;
  decltype(&::bpf_object__open_mem) object_open_mem;
  decltype(&::bpf_object__load) object_load;
  decltype(&::bpf_object__close) object_close;
  decltype(&::bpf_object__find_map_by_name) object_find_map;
  decltype(&::bpf_object__find_program_by_name) object_find_program;
  decltype(&::bpf_map__set_max_entries) map_set_max_entries;
  decltype(&::bpf_map__fd) map_fd;
  decltype(&::bpf_program__fd) program_fd;
  decltype(&::bpf_program__set_log_buf) set_log_buffer;
  decltype(&::bpf_program__set_log_level) set_log_level;
  decltype(&::bpf_link_create) link_create;
  decltype(&::bpf_obj_get_info_by_fd) get_info;
  decltype(&::bpf_map_create) map_create;
  decltype(&::bpf_map_update_elem) map_update;
  decltype(&::bpf_map_lookup_elem) map_lookup;
  decltype(&::bpf_prog_test_run_opts) test_run;
  decltype(&::ring_buffer__new) ring_new;
  decltype(&::ring_buffer__consume) ring_consume;
  decltype(&::ring_buffer__free) ring_free;
};

// The functions, valid until the process ends. Null: `failure` has the reason.
const Libbpf* load_libbpf(std::string* failure);

}  // namespace warpcache::nic_cache
