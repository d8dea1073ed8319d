// SPDX-License-Identifier: Apache-2.0
//
// The module's entry.
#include <utility>

#include "io/ucx/ucx_port.h"

namespace {

std::string open_all(const warpcache::io::UcxSettings& settings,
                     std::vector<std::unique_ptr<warpcache::io::AmPort>>* ports) {
  using warpcache::io::UcxContext;
  using warpcache::io::UcxPort;
  std::shared_ptr<UcxContext> context;
  std::string failure = UcxContext::open(&context, settings.one_sided, settings.transports);
  std::vector<std::unique_ptr<UcxPort>> opened(settings.ports);
  std::vector<UcxPort*> list;
  for (uint32_t i = 0; i < settings.ports && failure.empty(); ++i) {
    failure = UcxPort::open(context, &opened[i]);
    list.push_back(opened[i].get());
  }
  if (failure.empty()) failure = opened[0]->listen(settings.host, settings.port, list);
  if (!failure.empty()) return failure;
  for (auto& port : opened) ports->push_back(std::move(port));
  return "";
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void warpcache_open_ucx_ports(
    const warpcache::io::UcxSettings& settings,
    std::vector<std::unique_ptr<warpcache::io::AmPort>>* ports, std::string* failure) {
  *failure = open_all(settings, ports);
}
