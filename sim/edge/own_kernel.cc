// SPDX-License-Identifier: Apache-2.0
#include "edge/own_kernel.h"

#include <fmt/core.h>

#include <charconv>
#include <fstream>
#include <random>
#include <sstream>

namespace warpcache::edge_sim {
namespace {

constexpr uint64_t kBufferBytesMax = uint64_t{1} << 30;
constexpr uint64_t kGridMax = 65536;

bool read_number(std::string_view text, uint64_t low, uint64_t high, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= low && *out <= high;
}

bool read_pair(const std::string& text, uint64_t high, uint32_t* x, uint32_t* y) {
  const size_t colon = text.find(':');
  uint64_t first = 0, second = 1;
  if (!read_number(std::string_view(text).substr(0, colon), 1, high, &first)) return false;
  if (colon != std::string::npos &&
      !read_number(std::string_view(text).substr(colon + 1), 1, high, &second))
    return false;
  *x = static_cast<uint32_t>(first);
  *y = static_cast<uint32_t>(second);
  return first * second <= high;
}

bool add_argument(const std::string& text, std::mt19937_64& random, Case* out) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return false;
  const std::string kind = text.substr(0, colon);
  const std::string rest = text.substr(colon + 1);
  const size_t second = rest.find(':');
  uint64_t count = 0, below = 0;
  if (kind == "float") {
    out->launch.push(std::strtof(rest.c_str(), nullptr));
    return true;
  }
  if (kind == "int" || kind == "long") {
    char* end = nullptr;
    const long long value = std::strtoll(rest.c_str(), &end, 0);
    if (end == rest.c_str() || *end != '\0') return false;
    if (kind == "long") {
      out->launch.push(value);
    } else {
      out->launch.push(static_cast<int>(value));
    }
    return true;
  }
  if (!read_number(std::string_view(rest).substr(0, second), 1, kBufferBytesMax / 4, &count))
    return false;
  if (kind == "zeros" && second == std::string::npos) {
    out->launch.push(out->allocate<uint8_t>(count));
    return true;
  }
  if (kind == "floats" && second == std::string::npos) {
    float* const data = out->allocate<float>(count);
    for (uint64_t i = 0; i < count; ++i) data[i] = static_cast<float>(random() >> 40) * 0x1p-24f;
    out->launch.push(data);
    return true;
  }
  if (kind != "ints" || second == std::string::npos) return false;
  if (!read_number(std::string_view(rest).substr(second + 1), 1, uint64_t{1} << 31, &below))
    return false;
  auto* const data = out->allocate<uint32_t>(count);
  for (uint64_t i = 0; i < count; ++i) data[i] = static_cast<uint32_t>(random() % below);
  out->launch.push(data);
  return true;
}

bool choose_entry(const OwnKernel& own, const std::map<std::string, Kernel>& kernels,
                  std::string* name, std::string* why) {
  *name = own.entry;
  if (name->empty() && kernels.size() == 1) *name = kernels.begin()->first;
  if (kernels.contains(*name)) return true;
  std::string all;
  for (const auto& [one, kernel] : kernels) all += (all.empty() ? "" : ", ") + one;
  *why = fmt::format("{} has the kernels {}: name one with --entry", own.path,
                     all.empty() ? "none" : all);
  return false;
}

}  // namespace

bool make_own_case(const OwnKernel& own, uint64_t seed, std::map<std::string, Kernel>* kernels,
                   Case* out, std::string* why) {
  std::ifstream file(own.path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) {
    *why = "cannot read " + own.path;
    return false;
  }
  if (!read_ptx(text.str(), kernels, why)) {
    *why = own.path + ": " + *why;
    return false;
  }
  if (!choose_entry(own, *kernels, &out->kernel, why)) return false;
  Kernel& kernel = kernels->at(out->kernel);
  if (own.registers != 0) kernel.machine_registers = own.registers;
  if (!read_pair(own.grid, kGridMax, &out->launch.grid_x, &out->launch.grid_y) ||
      !read_pair(own.block, 1024, &out->launch.block_x, &out->launch.block_y)) {
    *why = fmt::format("a grid {} of blocks {} is not X or X:Y, at most {} blocks of 1024 threads",
                       own.grid, own.block, kGridMax);
    return false;
  }
  std::mt19937_64 random(seed);
  for (const std::string& argument : own.arguments) {
    if (add_argument(argument, random, out)) continue;
    *why = "an argument " + argument + " is not known";
    return false;
  }
  if (out->launch.parameters.size() != kernel.parameter_bytes) {
    *why = fmt::format("kernel {} takes {} bytes of parameters, --args has {}", out->kernel,
                       kernel.parameter_bytes, out->launch.parameters.size());
    return false;
  }
  out->check = [] { return std::string(); };
  return true;
}

}  // namespace warpcache::edge_sim
